"""/v1/files: whole files, one as it is or many by a form, read as `shardqa ingest` reads them."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from starlette.datastructures import UploadFile

from shardqa.api import problems
from shardqa.api.faults import BadForm, NotForm
from shardqa.api.gate import Route, needs
from shardqa.api.limits import MAX_DOCUMENTS_BODY
from shardqa.api.requests import content_type, until_disconnect
from shardqa.api.state import Shared, State
from shardqa.errors import BadDocument, ShardqaError
from shardqa.http_schema import FileFormat, FileOutcome, Formats, LeftOut, SentFile, SentFiles
from shardqa.loader import formats
from shardqa.loader.source_file import Item, Lost, Skipped, Textless
from shardqa.schema import Ingested

MAX_DOCUMENTS = 10_000  # of one file: one reply names each
MAX_FILES = 1_000  # of one form
AT_ONCE = 8  # documents of one file on their way to shards
FORM = "multipart/form-data"
FORM_SCHEMA = {
    "type": "object",
    "properties": {"file": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1}},
    "required": ["file"],
}

router = APIRouter(prefix="/v1", tags=["documents"], route_class=Route)


@router.get("/formats", summary="List the formats of files", dependencies=[needs("ask")])
async def get_formats() -> Formats:
    """Each may be gzipped (`.gz`)."""
    return Formats(formats=[FileFormat(title=one.title, suffixes=list(one.suffixes)) for one in formats.FORMATS])


@router.put(
    "/files/{name:path}",
    summary="Add a file",
    dependencies=[needs("ingest")],
    max_body_size=MAX_DOCUMENTS_BODY,
    status_code=201,
    responses={
        200: {"model": FileOutcome, "description": "All of it was there already"},
        201: {"model": FileOutcome, "description": "Added or changed"},
        207: {"model": FileOutcome, "description": "A part was left out, with the reason"},
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def put_file(
    request: Request,
    state: Shared,
    name: Annotated[str, Path(description="Its name, by whose suffix it is read; the id of its document.")],
    corpus: Annotated[str | None, Query(description="Without it, the server's default corpus.")] = None,
    replace: Annotated[bool, Query(description="Take the place of another file's document of this id.")] = False,
) -> Response:
    """The body is the file as it is: PDF, Word, HTML and all that `/v1/formats` lists.

    A mailbox, an archive, a table or lines of JSON hold many documents, named `<name>/…`.
    """
    content = await request.body()
    into = state.corpus_of(corpus)
    outcome = await until_disconnect(request, _add(content, name, into, replace, state))
    return Response(outcome.model_dump_json(), _status(outcome), media_type="application/json")


@router.post(
    "/files",
    summary="Add files by a form",
    dependencies=[needs("ingest")],
    max_body_size=MAX_DOCUMENTS_BODY,
    responses={
        200: {"model": SentFiles, "description": "All were taken"},
        207: {"model": SentFiles, "description": "Some were refused, or a part was left out"},
    },
    openapi_extra={"requestBody": {"required": True, "content": {FORM: {"schema": FORM_SCHEMA}}}},
)
async def post_files(
    request: Request,
    state: Shared,
    corpus: Annotated[str | None, Query(description="Without it, the server's default corpus.")] = None,
    replace: Annotated[bool, Query(description="Take the place of other files' documents of these ids.")] = False,
) -> Response:
    """`multipart/form-data` with any number of files, as browsers and `curl -F file=@handbook.pdf` send it.

    Each file has its own outcome. Fields that are no files are refused.
    """
    into = state.corpus_of(corpus)
    return await until_disconnect(request, _add_form(request, into, replace, state))


async def _add_form(request: Request, corpus: str, replace: bool, state: State) -> Response:
    if content_type(request) != FORM:
        raise NotForm(f"the Content-Type is {request.headers.get('content-type', '')[:80]!r}, and {FORM} is wanted")
    async with request.form(max_files=MAX_FILES, max_fields=0, max_part_size=0) as form:
        sent = [part for _, part in form.multi_items() if isinstance(part, UploadFile)]
        if not sent:
            raise BadForm("the form holds no file; send at least one part with a filename")
        request_id = problems.request_id(request.scope)
        results = [await _add_one(part, corpus, replace, request_id, state) for part in sent]
    refused = sum(one.problem is not None for one in results)
    files = SentFiles(results=results, taken=len(results) - refused, refused=refused)
    is_complete = all(one.status in (200, 201) for one in results)
    return Response(
        files.model_dump_json(exclude_none=True), 200 if is_complete else 207, media_type="application/json"
    )


async def _add_one(part: UploadFile, corpus: str, replace: bool, request_id: str, state: State) -> SentFile:
    name = part.filename or "file"
    try:
        outcome = await _add(await part.read(), name, corpus, replace, state)
    except ShardqaError as fault:
        problem = problems.of(fault, request_id)
        return SentFile(file=name, status=problem.status, problem=problem)
    return SentFile(file=name, status=_status(outcome), outcome=outcome)


async def _add(content: bytes, name: str, corpus: str, replace: bool, state: State) -> FileOutcome:
    items = await _read(content, name, state)
    places = asyncio.Semaphore(AT_ONCE)
    outcome = FileOutcome(file=name, documents=[], skipped=[], lost=[])

    textless = [item for item in items if isinstance(item, Textless)]

    async def put(item: Item) -> Ingested | LeftOut | None:
        if isinstance(item, Textless):
            return None
        if isinstance(item, Skipped | Lost):
            (outcome.skipped if isinstance(item, Skipped) else outcome.lost).append(
                LeftOut(place=item.place, reason=item.reason)
            )
            return None
        try:
            async with places:
                return await state.engine.put(item.model_copy(update={"corpus": corpus}), replace)
        except ShardqaError as fault:
            if len(items) == 1:
                raise
            return LeftOut(place=problems.shown(item.id), reason=str(fault))

    for done in await asyncio.gather(*(put(item) for item in items)):
        if isinstance(done, Ingested):
            outcome.documents.append(done)
            state.metrics.documents.labels("changed" if done.changed else "unchanged").inc()
        elif done is not None:
            outcome.skipped.append(done)
    state.metrics.documents.labels("refused").inc(len(outcome.skipped))
    if not outcome.documents:
        reasons = [f"{one.place}: {one.reason}" for one in outcome.skipped]
        reasons += [f"{one.place}: {one.reason}" for one in textless]
        raise BadDocument("; ".join(reasons[:3]) or f"{name} is empty")
    return outcome


async def _read(content: bytes, name: str, state: State) -> list[Item]:
    items = await state.readers.read(content, name, MAX_DOCUMENTS + 1)
    if len(items) > MAX_DOCUMENTS:
        raise BadDocument(f"{name} holds more than {MAX_DOCUMENTS:,} documents; split it, or use 'shardqa ingest'")
    return items


def _status(outcome: FileOutcome) -> int:
    if outcome.skipped or outcome.lost:
        return 207
    return 201 if any(done.changed for done in outcome.documents) else 200
