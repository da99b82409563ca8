"""Errors as RFC 9457 problem details.

Every reply of status 400 and above is `application/problem+json` with a stable `code`. `type` is a relative
reference to this server's own list of codes (/docs#<code>); `instance` is the request's id, which the log has too.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from shardqa.api import faults
from shardqa.errors import ShardqaError
from shardqa.http_schema import FieldError, Problem

MEDIA_TYPE = "application/problem+json"
NOTHING = Path(__file__).parent / "page" / "404.html"
RETRY_SECONDS = {429: 1, 503: 2}  # Retry-After: a slot frees in about one question; a shard is back in seconds
CLIENT_LEFT = 499  # nginx's number for it; nobody reads this reply, but the log and the metrics do
SHOWN = 80  # characters of a refused value that a problem repeats

log = logging.getLogger("shardqa.api")

# code -> (title, the remedy for every such fault; `detail` names the one at hand)
TITLES: Mapping[str, tuple[str, str]] = {
    "bad_corpus_name": ("Not a corpus name", "Use lower case letters, digits, dot, underscore and hyphen."),
    "bad_cursor": ("Not a cursor", "Send the `cursor` of the page before, as it is; without one, the list begins."),
    "bad_backup": ("A backup is damaged", "Take another copy of the file, or another backup."),
    "bad_data": ("A file breaks its format", "Correct the file at the place named."),
    "bad_document": ("A document that can't be used", "The detail says why; its text as UTF-8 may do."),
    "bad_document_id": ("Not a document id", "Use 1 to 512 bytes of text without control characters."),
    "bad_filter": ("Not a filter", """Like {"metadata": {"year": {"gte": 2020}}}; bounds are numbers or dates."""),
    "bad_form": ("Not a form of files", "Send multipart/form-data whose parts are files, each with a filename."),
    "bad_http": ("Not HTTP as this server takes it", "Use a library for HTTP/1.1, and wait for replies."),
    "bad_json": ("The body is not JSON", "Send one JSON value, encoded as UTF-8."),
    "bad_key": ("Not a key of this form", "Use the form that the detail names."),
    "bad_limit": ("A number outside its range", "Use a number inside the range named."),
    "bad_model": ("A model that can't be used", "Store the model again, from a folder that passes its checks."),
    "bad_words": ("Not synonyms", "Each line is `pto, paid time off` (both ways) or `k8s => kubernetes`."),
    "body_too_large": ("The body is too large", "Send the documents in several requests."),
    "cluster_unavailable": ("A part of the cluster is missing", "GET /readyz says what; try again once it is ready."),
    "user_refused": ("Redis refuses the server's user", "Give it its password, and the rights in docs/operating.md."),
    "corpus_dropping": ("The corpus is being dropped", "GET /v1/corpora/{corpus} is 404 once it is gone; then add."),
    "document_changed": ("The document has changed", "Read it again, and send If-Match with its new ETag."),
    "document_too_large": ("The document is too large", "Split it into several documents."),
    "duplicate_document": ("One id twice in a request", "Give each document of a request an id of its own."),
    "bad_question": ("The question is no Unicode text", "Encode the question as UTF-8."),
    "encoded_body": ("The body is compressed", "Send it as it is, without Content-Encoding."),
    "empty_question": ("The question has no words", "Ask with at least one word."),
    "error": ("The request failed", "The detail says what to change."),
    "head_too_large": ("The request's head is too large", "Send fewer and shorter headers."),
    "indexing": ("The shards read their documents", "GET /readyz says how far they are; try again once it is ready."),
    "internal": ("A fault of the server", "Try again; if it stays, report the instance, which the log has."),
    "invalid_request": ("The request has a wrong field", "Correct the fields named in errors; /docs lists them all."),
    "method_not_allowed": ("Not a method of this address", "Use a method named in the Allow header."),
    "no_file": ("No file is kept", "GET /v1/documents/{id} has its text; upload the file again to keep it."),
    "no_such_route": ("No such address", "GET /docs lists all addresses."),
    "key_wanted": ("A key is needed", "Send Authorization: Bearer KEY; 'shardqa keys create' makes one."),
    "key_refused": ("Not a valid key", "Ask whoever runs the server for a new key ('shardqa keys create')."),
    "not_allowed": ("The key is not for this", "Use a key with the scope and the corpus that the detail names."),
    "too_many_of_key": ("Too many requests with one key", "Wait for the seconds named in Retry-After."),
    "unknown_key": ("No such key", "'shardqa keys ls' lists them."),
    "file_too_slow": ("The file takes too long to read", "Split it, or send its text."),
    "not_form": ("The body has another type", "Send files as multipart/form-data, or one by PUT /v1/files/{name}."),
    "not_json": ("The body has another type", "Send JSON with the header Content-Type: application/json."),
    "question_too_long": ("The question is too long", "Ask it in one short sentence."),
    "setup": ("The server lacks something", "Run `shardqa doctor` on the server."),
    "shard_failed": ("A shard failed", "Try again; the shard's log says why it failed."),
    "slow_head": ("The request's head came too slowly", "Send request line and headers at once."),
    "slow_body": ("The body came too slowly", "Send it again over a faster connection, or in smaller parts."),
    "timeout": ("The answer took too long", "Ask again: what was computed is kept. Or ask with a smaller k."),
    "too_many_connections": ("Too many connections", "Close some, or keep one open for many requests."),
    "too_many_requests": ("Too many requests at once", "Wait for the seconds named in Retry-After, then try again."),
    "several_corpora": ("Several corpora", "Send `corpus` with the question; GET /v1/corpora lists them."),
    "unknown_corpus": ("No such corpus", "GET /v1/corpora lists the corpora; adding a document makes a new one."),
    "unknown_document": ("No such document", "Check its id and corpus; an id in an address is percent-encoded."),
    "unknown_task": ("No such task", "Send the files again; the reply's Location is the task's address."),
    "id_taken": ("Another file's document has this id", "Give it another id, or delete the one that is there first."),
    "writes_refused": ("Redis stores nothing now", "GET /readyz says why: memory, disk or replicas."),
    "url_too_long": ("The address is too long", "Send the question in the body of POST /v1/ask."),
    "wrong_host": ("Another host's name", "Name this server's host in SHARDQA_HTTP_HOSTS, or use its address."),
    "wrong_origin": ("Another site's page", "Name the page's origin in SHARDQA_HTTP_ORIGINS."),
    "no_encoder": ("A shard has no encoder", "Run `shardqa dense push`."),
    "wrong_shard": ("A slot moved meanwhile", "Ask again: the shards are ranked anew."),
}


def of(error: ShardqaError, request_id: str, errors: list[FieldError] | None = None) -> Problem:
    title, remedy = TITLES.get(error.code, TITLES["error"])
    return Problem(
        type=f"/docs#{error.code}",
        title=title,
        status=error.status,
        detail=str(error) or title,
        instance=f"urn:uuid:{request_id}",
        code=error.code,
        remedy=remedy,
        errors=errors,
    )


def explain(error: Exception, request_id: str) -> Problem:
    """Returns the problem for an error; one that nobody foresaw goes to the log with its cause."""
    if isinstance(error, ShardqaError):
        return of(error, request_id)
    log.error("a part of request %s failed", request_id, exc_info=error)
    return of(faults.InternalError("an unexpected fault; the server's log has its cause"), request_id)


def reply(
    error: ShardqaError, scope: Scope, errors: list[FieldError] | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Returns the HTTP response for `error`; 429 and 503 have a Retry-After, 401 a WWW-Authenticate."""
    problem = of(error, request_id(scope), errors)
    values = dict(headers or {})
    if isinstance(error, faults.TooManyOfKey):
        values["Retry-After"] = str(error.wait)
    elif problem.status in RETRY_SECONDS:
        values["Retry-After"] = str(RETRY_SECONDS[problem.status])
    if problem.status == faults.KeyWanted.status:
        values["WWW-Authenticate"] = "Bearer"
    return Response(problem.model_dump_json(exclude_none=True), problem.status, values, MEDIA_TYPE)


def request_id(scope: Scope) -> str:
    """Returns the id that the access log gave this request."""
    own = scope["state"]["request_id"]
    assert isinstance(own, str)
    return own


def fields(errors: Iterable[Mapping[str, Any]]) -> list[FieldError]:
    """Returns Pydantic's errors with short values: a refused value may be megabytes long."""
    return [
        FieldError(at=".".join(str(part) for part in error["loc"]), message=error["msg"], got=shown(error.get("input")))
        for error in errors
    ]


def shown(value: object) -> str:
    """Returns a short, printable form of a value: cut before it is formatted, escaped where it is no valid Unicode."""
    if isinstance(value, (str, bytes)):
        value = value[: SHOWN + 1]
    elif isinstance(value, Mapping):
        value = f"an object with the fields {sorted(str(key)[:20] for key in value)[:8]}"
    elif isinstance(value, Sequence):
        value = f"a list of {len(value)}"
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def invalid(errors: Iterable[Mapping[str, Any]]) -> tuple[faults.InvalidRequest, list[FieldError]]:
    """Returns the fault and the fields for Pydantic's errors; the fault's sentence names the first."""
    all_fields = fields(errors)
    first = all_fields[0]
    more = f" (and {len(all_fields) - 1} more)" if len(all_fields) > 1 else ""
    return faults.InvalidRequest(f"{first.at}: {first.message}, got {first.got!r}{more}"), all_fields


def install(app: FastAPI) -> None:
    """Has `app` reply to each fault by a problem; unexpected ones are left to `shardqa.api.access`."""

    async def shardqa_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ShardqaError)
        return reply(error, request.scope)

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        fault, headers = _of_http(request, error)
        if error.status_code == 404 and request.headers.get("accept", "").startswith("text/html"):  # a browser's
            return HTMLResponse(NOTHING.read_text(encoding="utf-8"), 404)
        return reply(fault, request.scope, headers=headers)

    async def validation_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = error.errors()
        if errors[0]["type"] == "json_invalid":
            reason = errors[0]["ctx"]["error"].removesuffix(" at")
            place = errors[0]["loc"][-1]
            return reply(faults.BadJson(f"the body is not JSON: {reason} (at character {place})"), request.scope)
        fault, at = invalid(errors)
        return reply(fault, request.scope, at)

    async def client_left(request: Request, error: Exception) -> Response:
        return Response(status_code=CLIENT_LEFT)

    app.add_exception_handler(ShardqaError, shardqa_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, validation_error)
    app.add_exception_handler(faults.ClientLeft, client_left)


def _of_http(request: Request, error: HTTPException) -> tuple[ShardqaError, Mapping[str, str]]:
    """Returns (fault, headers) for Starlette's own errors: no route, a wrong method, a body that is no text."""
    path = shown(request.url.path)
    if error.status_code == 404:
        return faults.NoSuchRoute(f"there is nothing at {path}"), {}
    if error.status_code == 405:
        methods = _allowed(request)
        return faults.MethodNotAllowed(f"{path} does not take {request.method}; it takes {methods}"), {"Allow": methods}
    if error.status_code == 400 and request.headers.get("content-type", "").startswith("multipart/"):
        return faults.BadForm(f"the form can't be read: {error.detail}"), {}
    if error.status_code == 400:
        return faults.BadJson(f"the body can't be read: {error.detail}"), {}
    log.error("no problem is written for the HTTP error %s %s", error.status_code, error.detail)
    return faults.InternalError(f"the server raised an unexpected HTTP error {error.status_code}"), {}


def _allowed(request: Request) -> str:
    """Returns the methods of an address; Starlette's own header names those of its first route only."""
    methods = {method.upper() for method in operations(request)}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def operations(request: Request) -> Mapping[str, Any]:
    """Returns the operations that the description has for the request's address; GET alone where it has none."""
    route = getattr(request.scope.get("route"), "path_format", None)
    entries: Mapping[str, Any] = request.app.openapi()["paths"].get(route, {"get": {}})
    return entries
