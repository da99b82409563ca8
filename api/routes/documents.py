"""/v1/documents: add one or many, list them, read one, delete one."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response
from pydantic import ValidationError

from shardqa.api import problems
from shardqa.api.faults import BadJson, DuplicateDocument, InternalError
from shardqa.api.leaving import unless_left
from shardqa.api.limits import MAX_DOCUMENTS_BODY
from shardqa.api.state import Shared, State, json_only
from shardqa.engine.catalogue import MAX_PAGE
from shardqa.errors import BadLimit, ShardqaError, UnknownDocument
from shardqa.http_schema import FieldError, NewDocument, Outcome, Outcomes
from shardqa.schema import Document, DocumentList, Ingested

MAX_DOCUMENTS = 10_000  # of one request: one reply names each
AT_ONCE = 8  # documents of one request on their way to shards

log = logging.getLogger("shardqa.api")
router = APIRouter(prefix="/v1", tags=["documents"])

DocumentId = Annotated[str, Path(description="The document's id, percent-encoded; it may hold slashes.")]
Corpus = Annotated[str | None, Query(description="Its corpus; without it, the server's default corpus.")]
CorpusOfAll = Annotated[
    str | None, Query(description="Of the documents that name none; without it, the server's default corpus.")
]


@router.post(
    "/documents",
    summary="Add documents",
    dependencies=[Depends(json_only)],
    status_code=201,
    responses={
        200: {"model": Ingested | Outcomes, "description": "Unchanged, or a list of which all were taken"},
        201: {"model": Ingested, "description": "Added or changed"},
        207: {"model": Outcomes, "description": "A list of which some were refused"},
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "oneOf": [
                            {"$ref": "#/components/schemas/NewDocument"},
                            {
                                "type": "array",
                                "items": {"$ref": "#/components/schemas/NewDocument"},
                                "minItems": 1,
                                "maxItems": MAX_DOCUMENTS,
                            },
                        ]
                    }
                }
            },
        }
    },
)
async def post_documents(request: Request, state: Shared, corpus: CorpusOfAll = None) -> Response:
    """One object, or a list of them. Each document can be asked about once its outcome is here."""
    name = corpus if corpus is not None else state.settings.corpus
    sent = _parse(await request.body())
    if isinstance(sent, list):
        return await unless_left(request, _add_list(sent, name, request, state))
    return await unless_left(request, _add_one(sent, name, request, state))


@router.get("/documents", response_model=DocumentList, summary="List documents")
async def get_documents(
    state: Shared,
    corpus: Corpus = None,
    cursor: Annotated[str | None, Query(description="That of the page before; without it, the list begins.")] = None,
    limit: Annotated[int, Query(description=f"Documents of a page, 1 to {MAX_PAGE:,}.")] = 100,
) -> Response:
    """In pages; `cursor` is null on the last. A document that is there all along is listed once, while slots move too.

    The order is that of hash buckets, not of names.
    """
    page = await state.engine.documents(corpus, cursor, limit)
    return Response(page.model_dump_json(), media_type="application/json")


@router.get("/documents/{id:path}", response_model=Document, summary="Read a document")
async def get_document(id: DocumentId, state: Shared, corpus: Corpus = None) -> Response:
    """The whole document; an answer's `start` and `end` count the characters (code points) of its `text`."""
    name = corpus if corpus is not None else state.settings.corpus
    document = await state.engine.get(name, id)
    if document is None:
        raise _unknown(id, name)
    return Response(document.model_dump_json(), media_type="application/json")


@router.delete("/documents/{id:path}", status_code=204, summary="Delete a document")
async def delete_document(id: DocumentId, state: Shared, corpus: Corpus = None) -> Response:
    """Removes the document with its passages; answers that came from it are gone with it."""
    name = corpus if corpus is not None else state.settings.corpus
    if not await state.engine.delete(name, id):
        raise _unknown(id, name)
    state.metrics.documents.labels("deleted").inc()
    return Response(status_code=204)


def _unknown(document: str, corpus: str) -> UnknownDocument:
    return UnknownDocument(f"there is no document {problems.shown(document)!r} in the corpus {corpus!r}")


def _parse(body: bytes) -> dict[str, Any] | list[Any]:
    try:
        sent = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"the body is not JSON: {error}") from None
    if not isinstance(sent, (dict, list)):
        raise BadJson(f"the body is {problems.shown(sent)!r}; send a document as an object, or a list of them")
    if isinstance(sent, list) and not 1 <= len(sent) <= MAX_DOCUMENTS:
        raise BadLimit(
            f"the list holds {len(sent):,} documents; send 1 to {MAX_DOCUMENTS:,} per request "
            f"(and at most {MAX_DOCUMENTS_BODY:,} bytes)"
        )
    return sent


async def _add_one(sent: dict[str, Any], corpus: str, request: Request, state: State) -> Response:
    try:
        document = NewDocument.model_validate(sent).document(corpus)
    except ValidationError as error:
        fault, at = problems.invalid(error.errors())
        state.metrics.documents.labels("refused").inc()
        return problems.reply(fault, request.scope, at)
    ingested = await _put(document, state)
    return Response(ingested.model_dump_json(), 201 if ingested.changed else 200, media_type="application/json")


async def _add_list(sent: Sequence[Any], corpus: str, request: Request, state: State) -> Response:
    request_id = problems.request_id(request.scope)
    places = asyncio.Semaphore(AT_ONCE)
    first: dict[tuple[str | None, str], int] = {}  # (corpus, id) -> its place in the list

    async def add(n: int, one: Any) -> Outcome:
        try:
            document = NewDocument.model_validate(one).document(corpus)
        except ValidationError as error:
            fault, at = problems.invalid(error.errors())
            return _refused(None, fault, request_id, at)
        earlier = first.setdefault((document.corpus, document.id), n)
        if earlier != n:
            fault_twice = DuplicateDocument(
                f"document {problems.shown(document.id)!r} is number {earlier} and {n} of the list; the first was taken"
            )
            return _refused(document.id, fault_twice, request_id)
        try:
            async with places:
                ingested = await _put(document, state)
        except ShardqaError as fault_met:
            return _refused(document.id, fault_met, request_id)
        except Exception:  # one that nobody foresaw must not take along the outcomes of those that are stored
            log.exception("document %d of request %s failed", n, request_id)
            return _refused(
                document.id, InternalError("an unexpected fault; the server's log has its cause"), request_id
            )
        return Outcome(document=document.id, status=201 if ingested.changed else 200, ingested=ingested)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(add(n, one)) for n, one in enumerate(sent)]
    results = [task.result() for task in tasks]
    refused = sum(result.problem is not None for result in results)
    outcomes = Outcomes(results=results, taken=len(results) - refused, refused=refused)
    state.metrics.documents.labels("refused").inc(refused)
    return Response(outcomes.model_dump_json(exclude_none=True), 207 if refused else 200, media_type="application/json")


async def _put(document: Document, state: State) -> Ingested:
    ingested = await state.engine.put(document)
    state.metrics.documents.labels("changed" if ingested.changed else "unchanged").inc()
    return ingested


def _refused(document: str | None, fault: ShardqaError, request_id: str, at: list[FieldError] | None = None) -> Outcome:
    problem = problems.of(fault, request_id, at)
    return Outcome(document=document, status=problem.status, problem=problem)
