"""Every route stands behind the gate: what each needs, and who gets what by whatever spelling."""

import http.client
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from shardqa.api.app import create_app
from shardqa.api.gate import Route
from shardqa.config import Settings
from shardqa.engine import api_keys
from shardqa.filters import DocumentFilter
from tests.api.conftest import NOBODY, KeyOf, Serve, Server, bearer, problem

QUESTION = "Who built the mill?"
ASKED = {"question": QUESTION, "corpus": "CORPUS"}
WHERE = "corpus=CORPUS"

# operation -> (scope, address, body, status for who may): CORPUS is one with two documents
TABLE: dict[str, tuple[str | None, str, object, int]] = {
    "GET /healthz": (None, "/healthz", None, 200),
    "GET /readyz": (None, "/readyz", None, 200),
    "GET /v1/version": (None, "/v1/version", None, 200),
    "GET /metrics": ("metrics", "/metrics", None, 200),
    "GET /v1/cluster": ("metrics", "/v1/cluster", None, 200),
    "POST /v1/ask": ("ask", "/v1/ask", ASKED, 200),
    "GET /v1/ask": ("ask", f"/v1/ask?q=mill&{WHERE}", None, 200),
    "POST /v1/ask/batch": ("ask", "/v1/ask/batch", {"questions": [ASKED]}, 200),
    "POST /v1/search": ("ask", "/v1/search", ASKED, 200),
    "GET /v1/search": ("ask", f"/v1/search?q=mill&{WHERE}", None, 200),
    "POST /v1/explain": ("ask", "/v1/explain", ASKED, 200),
    "GET /v1/explain": ("ask", f"/v1/explain?q=mill&{WHERE}", None, 200),
    "GET /v1/formats": ("ask", "/v1/formats", None, 200),
    "GET /v1/corpora": ("ask", "/v1/corpora", None, 200),
    "GET /v1/corpora/{corpus}": ("ask", "/v1/corpora/CORPUS", None, 200),
    "GET /v1/corpora/{corpus}/suggestions": ("ask", "/v1/corpora/CORPUS/suggestions", None, 200),
    "GET /v1/corpora/{corpus}/facets": ("ask", "/v1/corpora/CORPUS/facets", None, 200),
    "GET /v1/corpora/{corpus}/words": ("ingest", "/v1/corpora/CORPUS/words", None, 200),
    "PUT /v1/corpora/{corpus}/words": ("ingest", "/v1/corpora/CORPUS/words", {"synonyms": ["mill, works"]}, 200),
    "DELETE /v1/corpora/{corpus}": ("admin", "/v1/corpora/CORPUS-none", None, 404),
    "GET /v1/documents": ("ask", f"/v1/documents?{WHERE}", None, 200),
    "GET /v1/documents/{id}": ("ask", f"/v1/documents/Bob?{WHERE}", None, 200),
    "POST /v1/documents": ("ingest", f"/v1/documents?{WHERE}", {"id": "x", "text": "A weir."}, 201),
    "PATCH /v1/documents/{id}": ("ingest", f"/v1/documents/Bob?{WHERE}", {"metadata": {"a": 1}}, 200),
    "DELETE /v1/documents/{id}": ("ingest", f"/v1/documents/nobody?{WHERE}", None, 404),
    "GET /v1/files/{name}": ("ask", f"/v1/files/Bob?{WHERE}", None, 404),
    "GET /v1/pages/{name}": ("ask", f"/v1/pages/Bob?{WHERE}&start=0&end=3", None, 404),
    "POST /v1/files": ("ingest", f"/v1/files?{WHERE}", None, 415),
    "GET /v1/tasks": ("ingest", f"/v1/tasks?{WHERE}", None, 200),
    "GET /v1/tasks/{id}": ("ingest", "/v1/tasks/none", None, 404),
    "DELETE /v1/tasks/{id}": ("ingest", "/v1/tasks/none", None, 404),
    "PUT /v1/files/{name}": ("ingest", f"/v1/files/weir.txt?{WHERE}", "A weir.", 201),
}
OF_NO_CORPUS = (
    "/metrics",
    "/v1/cluster",
    "/v1/formats",
    "/v1/corpora",
    "/v1/ask/batch",
    "/v1/tasks/none",
)  # no corpus, or one each
KEYS: dict[str, dict[str, Any]] = {
    **{scope: {"scopes": [scope]} for scope in api_keys.SCOPES},
    "elsewhere": {"scopes": ["ask", "ingest", "metrics"], "corpora": ["elsewhere"]},
    "filter": {"scopes": ["ask"], "filter": DocumentFilter(metadata={"year": 1901})},
}


Keys = dict[str, str | None]


@pytest.fixture
def keys_of(key_of: KeyOf) -> Keys:
    return {"nobody": None, **{name: key_of(**fields) for name, fields in KEYS.items()}}


def send(server: Server, method: str, path: str, key: str | None, body: object = None) -> tuple[int, bytes]:
    """(status, body) of an address sent as it is written."""
    content = None if body is None else body if isinstance(body, str) else json.dumps(body)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=90)
    headers = {"Content-Type": "application/json", **bearer(key)}
    try:
        connection.request(method, path, content, headers)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def asked_of(operation: str, corpus: str) -> tuple[str, str, object]:
    """(method, address, body)."""
    _, path, body, _ = TABLE[operation]
    text = json.dumps(body).replace("CORPUS", corpus)
    return operation.partition(" ")[0], path.replace("CORPUS", corpus), json.loads(text)


def expected(operation: str, name: str) -> int:
    scope, path, _, status = TABLE[operation]
    if scope is None:
        return status
    if name == "nobody":
        return 401
    scopes = KEYS[name]["scopes"]
    if scope not in scopes and "admin" not in scopes:
        return 403
    return 403 if name == "elsewhere" and path not in OF_NO_CORPUS and operation != "POST /v1/files" else status


def test_every_route_is_behind_the_gate_or_open() -> None:
    app = create_app(Settings(redis=NOBODY, http_openings="openai,feedback"))
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, Mount):
            assert isinstance(route.app, StaticFiles), route.path
        elif context.path != "/openapi.json":
            assert isinstance(route, Route), context.path


def test_a_route_that_does_not_say_what_it_needs_is_refused() -> None:
    router = APIRouter(route_class=Route)
    with pytest.raises(TypeError, match="needs"):
        router.add_api_route("/v1/secrets", lambda: None)


def scope_in(operation: dict[str, Any]) -> str | None:
    """The scope that the description names."""
    security: list[dict[str, list[str]]] = operation.get("security", [])
    scopes = [scope for one in security for scope in one.get("key", [])]
    assert len(scopes) <= 1
    return scopes[0] if scopes else None


def test_the_table_has_every_operation() -> None:
    paths = create_app(Settings(redis=NOBODY)).openapi()["paths"]
    scopes = {
        f"{method.upper()} {path}": scope_in(one)
        for path, operations in paths.items()
        for method, one in operations.items()
    }
    assert scopes == {operation: needed for operation, (needed, *_) in TABLE.items()}


@pytest.mark.usefixtures("filled")
def test_each_key_gets_what_the_table_says(locked: Server, corpus: str, keys_of: Keys) -> None:
    codes = {
        (operation, name): send(locked, method, path, key, body)[0]
        for operation in TABLE
        for method, path, body in [asked_of(operation, corpus)]
        for name, key in keys_of.items()
    }
    wanted = {(operation, name): expected(operation, name) for operation, name in codes}
    again = {200, 201}  # what was added is there already
    assert {at: status for at, status in codes.items() if status != wanted[at] and {status, wanted[at]} != again} == {}


SPELLINGS: dict[str, Callable[[str], str]] = {
    "a letter escaped": lambda path: f"/%{ord(path[1]):02x}{path[2:]}",
    "all escaped": lambda path: "/" + "".join(f"%{ord(one):02X}" if one.isalnum() else one for one in path[1:]),
    "slashes escaped": lambda path: path[0] + path[1:].replace("/", "%2f"),
    "a slash doubled": lambda path: "/" + path,
    "slashes doubled": lambda path: path.replace("/", "//"),
    "a dot": lambda path: "/." + path,
    "dots": lambda path: "/healthz/.." + path,
    "escaped dots": lambda path: "/static/%2e%2e" + path,
    "a slash behind": lambda path: path + "/",
    "capitals": str.upper,
    "a parameter": lambda path: path + ";a=b",
    "a nul": lambda path: path + "%00",
    "absolute": lambda path: "http://127.0.0.1" + path,
}
ELSEWHERE = {400, 404, 405}  # no such address


@pytest.mark.usefixtures("filled")
def test_no_spelling_of_an_address_passes_the_gate(locked: Server, corpus: str, keys_of: Keys) -> None:
    wrong: dict[tuple[str, ...], int] = {}
    for operation, (scope, *_) in TABLE.items():
        method, address, body = asked_of(operation, corpus)
        path, mark, query = address.partition("?")
        twice = f"{path}?{query}&{query}" if query else f"{path}?a=1&a=2"
        spelt = {name: spell(path) + mark + query for name, spell in SPELLINGS.items()} | {"twice": twice}
        name = "ingest" if scope == "metrics" else "metrics"  # a key without the scope
        for spelling, written in spelt.items():
            for who, allowed in (("nobody", {401}), (name, {403})):
                status, _ = send(locked, method, written, keys_of[who], body)
                if scope is not None and status not in allowed | ELSEWHERE:
                    wrong[operation, spelling, who] = status
        for other in ("HEAD", "OPTIONS"):
            status, _ = send(locked, other, address, None)
            if scope is not None and status not in ({401, 405} if other == "HEAD" else {405}):
                wrong[operation, other] = status
    assert wrong == {}


def test_two_authorization_headers_are_refused(root: httpx.Client, root_key: str) -> None:
    for other in ("Bearer x", f"Bearer {root_key}", ""):
        headers = [("Authorization", f"Bearer {root_key}"), ("Authorization", other)]
        problem(httpx.get(root.base_url.join("/v1/corpora"), headers=headers), 401, "key_refused")


@pytest.fixture
def busy() -> FastAPI:
    """An app that serves as many requests as it may."""
    app = create_app(Settings(redis=NOBODY, concurrency=1))
    app.state.shardqa.gate.limits.serving = 1
    return app


def test_whatever_reads_documents_waits_for_a_place(busy: FastAPI, serve: Serve) -> None:
    server = serve(busy)
    for operation, (needed, *_) in TABLE.items():
        method, path, body = asked_of(operation, "c")
        status = send(server, method, path, None, body)[0]
        assert (status == 429) == (needed is not None), operation
    pages = ("/", "/?q=who", "/?q=who&%70lain=1", "/docs", "/openapi.json", "/llms.txt")
    assert {send(server, "GET", path, None)[0] for path in pages} == {200}
