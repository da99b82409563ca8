"""/v1/documents: add one or many, list them, read one, delete one."""

from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import ValidationError

from shardqa.api import problems
from shardqa.api.faults import BadJson, DocumentChanged, DuplicateDocument
from shardqa.api.gate import Route, operation
from shardqa.api.limits import MAX_DOCUMENTS_BODY
from shardqa.api.requests import JSON, LINES, as_json, content_type, etag, revalidated, until_disconnect
from shardqa.api.state import Shared, State
from shardqa.engine.catalogue import MAX_PAGE
from shardqa.errors import BadLimit, ShardqaError, UnknownDocument
from shardqa.http_schema import DocumentChanges, FieldError, NewDocument, Outcome, Outcomes, StoredDocument
from shardqa.schema import Document, DocumentList, Ingested

MAX_DOCUMENTS = 10_000  # of one request: one reply names each
LINES_AT_ONCE = 256  # lines whose documents are on their way to shards
NEW = {"$ref": "#/components/schemas/NewDocument"}
MANY = {"type": "array", "items": NEW, "minItems": 1, "maxItems": MAX_DOCUMENTS}
LINE = {"schema": {"type": "string", "description": "A NewDocument on each line"}}
BODY = {"required": True, "content": {JSON: {"schema": {"oneOf": [NEW, MANY]}}, LINES: LINE}}

router = APIRouter(prefix="/v1", tags=["documents"], route_class=Route)

DocumentId = Annotated[str, Path(description="The document's id, percent-encoded; it may hold slashes.")]
Corpus = Annotated[str | None, Query(description="Its corpus; without it, the server's default corpus.")]
CorpusOfAll = Annotated[str | None, Query(description="Of documents that name none; else the server's default corpus.")]


@router.post(
    "/documents",
    max_body_size=MAX_DOCUMENTS_BODY,
    status_code=201,
    responses={
        200: {
            "model": Ingested | Outcomes,
            "description": "Unchanged, or a list of which all were taken; for lines, an Outcome on each line",
            "content": {LINES: {"schema": {"type": "string"}}},
        },
        201: {"model": Ingested, "description": "Added or changed"},
        207: {"model": Outcomes, "description": "A list of which some were refused"},
    },
    openapi_extra={"requestBody": BODY},
    **operation("ingest", "Add documents", takes=(JSON, LINES)),
)
async def post_documents(request: Request, state: Shared, corpus: CorpusOfAll = None) -> Response:
    """One object, or a list of them. Each document can be asked about once its outcome is here.

    With `Content-Type: application/x-ndjson`, one object on each line; each line of the reply is the outcome of one.
    """
    name = state.corpus_of(corpus)
    if content_type(request) == LINES:
        return StreamingResponse(_add_lines(await request.body(), name, request, state), media_type=LINES)
    content = _parse(await request.body())
    if isinstance(content, list):
        return await until_disconnect(request, _add_list(content, name, request, state))
    return await until_disconnect(request, _add_one(content, name, request, state))


@router.get("/documents", **operation("ask", "List documents", DocumentList))
async def get_documents(
    state: Shared,
    corpus: Corpus = None,
    cursor: Annotated[str | None, Query(description="That of the page before; without it, the list begins.")] = None,
    limit: Annotated[int, Query(description=f"Documents of a page, 1 to {MAX_PAGE:,}.")] = 100,
) -> Response:
    """In pages; `cursor` is null on the last. A document that is there all along is listed once, while slots move too.

    The order is that of hash buckets, not of names.
    """
    return as_json(await state.engine.documents.page(state.corpus_of(corpus), cursor, limit))


@router.get("/documents/{id:path}", **operation("ask", "Read a document", StoredDocument))
async def get_document(id: DocumentId, request: Request, state: Shared, corpus: Corpus = None) -> Response:
    """The whole document; an answer's `start` and `end` count the characters (code points) of its `text`."""
    _, body = await _stored(id, state.corpus_of(corpus), state)
    return revalidated(request, body, {}, JSON)


@router.patch("/documents/{id:path}", **operation("ingest", "Change a document's metadata", Ingested, takes=(JSON,)))
async def patch_document(
    id: DocumentId, changes: DocumentChanges, request: Request, state: Shared, corpus: Corpus = None
) -> Response:
    """Its title, source and metadata, without its text. With `If-Match` only while it has that `ETag`, else 412."""
    document, body = await _stored(id, state.corpus_of(corpus), state)
    if request.headers.get("if-match", "*").strip() not in ("*", etag(body)):
        raise DocumentChanged(f"document {problems.shown(id)!r} has another ETag now: somebody has changed it")
    return as_json(await _put(changes.of(document), state))


@router.delete("/documents/{id:path}", status_code=204, **operation("ingest", "Delete a document"))
async def delete_document(id: DocumentId, state: Shared, corpus: Corpus = None) -> Response:
    """Removes the document with its passages; answers that came from it are gone with it."""
    name = state.corpus_of(corpus)
    if not await state.engine.documents.delete(name, id):
        raise _unknown(id, name)
    state.metrics.documents.labels("deleted").inc()
    return Response(status_code=204)


async def _stored(id: str, corpus: str, state: State) -> tuple[Document, bytes]:
    """Returns a document that the bearer sees, and it as the API shows it. Raises UnknownDocument."""
    document = await state.engine.documents.get(corpus, id)
    if document is None:
        raise _unknown(id, corpus)
    stored = StoredDocument(**dict(document), has_file=await state.engine.documents.has_file(corpus, document))
    return document, stored.model_dump_json().encode()


def _unknown(document: str, corpus: str) -> UnknownDocument:
    return UnknownDocument(f"there is no document {problems.shown(document)!r} in the corpus {corpus!r}")


def _parse(body: bytes) -> dict[str, Any] | list[Any]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"the body is not JSON: {error}") from None
    if not isinstance(content, (dict, list)):
        raise BadJson(f"the body is {problems.shown(content)!r}; send a document as an object, or a list of them")
    if isinstance(content, list) and not 1 <= len(content) <= MAX_DOCUMENTS:
        raise BadLimit(
            f"the list holds {len(content):,} documents; send 1 to {MAX_DOCUMENTS:,} per request "
            f"(and at most {MAX_DOCUMENTS_BODY:,} bytes)"
        )
    return content


async def _add_one(fields: dict[str, Any], corpus: str, request: Request, state: State) -> Response:
    try:
        document = NewDocument.model_validate(fields).document(corpus)
    except ValidationError as error:
        fault, at = problems.invalid(error.errors())
        state.metrics.documents.labels("refused").inc()
        return problems.reply(fault, request.scope, at)
    outcome = await _put(document, state)
    return as_json(outcome, 201 if outcome.changed else 200)


async def _add_list(rows: Sequence[Any], corpus: str, request: Request, state: State) -> Response:
    request_id = problems.request_id(request.scope)
    first: dict[tuple[str | None, str], int] = {}  # (corpus, id) -> its place in the list

    def read(n: int, record: Any) -> Document | Outcome:
        try:
            document = NewDocument.model_validate(record).document(corpus)
        except ValidationError as error:
            fault, at = problems.invalid(error.errors())
            return _refused(None, fault, request_id, at)
        earlier = first.setdefault((document.corpus, document.id), n)
        if earlier == n:
            return document
        fault_twice = DuplicateDocument(
            f"document {problems.shown(document.id)!r} is number {earlier} and {n} of the list; the first was taken"
        )
        return _refused(document.id, fault_twice, request_id)

    results = await _add_each([read(n, one) for n, one in enumerate(rows)], request_id, state)
    refusals = sum(result.problem is not None for result in results)
    outcomes = Outcomes(results=results, taken=len(results) - refusals, refused=refusals)
    return as_json(outcomes, 207 if refusals else 200, without_none=True)


async def _add_lines(body: bytes, corpus: str, request: Request, state: State) -> AsyncIterator[bytes]:
    """Yields the outcome of each line, in order, a batch at a time."""
    request_id = problems.request_id(request.scope)
    lines = (line for line in body.splitlines() if line.strip())
    while some := list(islice(lines, LINES_AT_ONCE)):
        for outcome in await _add_each([_read_line(line, corpus, request_id) for line in some], request_id, state):
            yield outcome.model_dump_json(exclude_none=True).encode() + b"\n"


def _read_line(line: bytes, corpus: str, request_id: str) -> Document | Outcome:
    try:
        return NewDocument.model_validate_json(line).document(corpus)
    except ValidationError as error:
        faults = error.errors()
        if faults[0]["type"] == "json_invalid":
            return _refused(None, BadJson(f"the line is not JSON: {faults[0]['ctx']['error']}"), request_id)
        fault, at = problems.invalid(faults)
        return _refused(None, fault, request_id, at)


async def _add_each(read: Sequence[Document | Outcome], request_id: str, state: State) -> list[Outcome]:
    """Puts the documents; returns all outcomes in order, with those of lines that could not be read."""
    put = iter(await state.engine.documents.put_each([one for one in read if isinstance(one, Document)]))
    outcomes = [_outcome(one, next(put), request_id, state) if isinstance(one, Document) else one for one in read]
    state.metrics.documents.labels("refused").inc(sum(outcome.problem is not None for outcome in outcomes))
    return outcomes


def _outcome(document: Document, result: Ingested | Exception, request_id: str, state: State) -> Outcome:
    if isinstance(result, Exception):
        problem = problems.explain(result, request_id)
        return Outcome(document=document.id, status=problem.status, problem=problem)
    state.metrics.documents.labels("changed" if result.changed else "unchanged").inc()
    return Outcome(document=document.id, status=201 if result.changed else 200, ingested=result)


async def _put(document: Document, state: State) -> Ingested:
    outcome = await state.engine.documents.put(document)
    state.metrics.documents.labels("changed" if outcome.changed else "unchanged").inc()
    return outcome


def _refused(document: str | None, fault: ShardqaError, request_id: str, at: list[FieldError] | None = None) -> Outcome:
    problem = problems.of(fault, request_id, at)
    return Outcome(document=document, status=problem.status, problem=problem)
