"""/v1/files: whole files, one as it is or many by a form, read as `shardqa ingest` reads them."""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response
from starlette.datastructures import FormData, UploadFile

from shardqa import keys
from shardqa.api import bearer, problems
from shardqa.api.faults import BadForm, NotForm
from shardqa.api.gate import Route, operation
from shardqa.api.limits import MAX_DOCUMENTS_BODY
from shardqa.api.requests import as_json, content_type, revalidated, until_disconnect
from shardqa.api.state import Shared, State
from shardqa.engine.files import name_of
from shardqa.errors import BadDocument, NoFile, ShardqaError, UnknownTask
from shardqa.extras import need
from shardqa.files import formats
from shardqa.files.source_file import Item, Lost, Recognized, Skipped, Textless
from shardqa.http_schema import FileFormat, FileOutcome, Formats, LeftOut, SentFile, SentFiles, Task
from shardqa.schema import Document, Ingested

MAX_DOCUMENTS = 10_000  # of one file: one reply names each
MAX_FILES = 1_000  # of one form
SLICE = 250  # documents of a file that are put between two steps of its task
FORM = "multipart/form-data"
FORM_SCHEMA = {
    "type": "object",
    "properties": {"file": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1}},
    "required": ["file"],
}
BINARY = {"schema": {"type": "string", "format": "binary"}}

PRIVATE = {"Cache-Control": "private, max-age=300"}
FILE: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": BINARY}}}
PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": BINARY}}}
Name = Annotated[str, Path(description="The document's id, percent-encoded; it may hold slashes.")]
Corpus = Annotated[str | None, Query(description="Its corpus; without it, the server's default corpus.")]

router = APIRouter(prefix="/v1", tags=["documents"], route_class=Route)


@dataclass(frozen=True, slots=True)
class _Way:
    """Where files go, and how."""

    corpus: str
    replace: bool
    ocr: bool = False


@router.get("/formats", **operation("ask", "List the formats of files"))
async def get_formats() -> Formats:
    """Each may be gzipped (`.gz`)."""
    return Formats(formats=[FileFormat(title=one.title, suffixes=list(one.suffixes)) for one in formats.FORMATS])


@router.put(
    "/files/{name:path}",
    max_body_size=MAX_DOCUMENTS_BODY,
    status_code=201,
    responses={
        200: {"model": FileOutcome, "description": "All of it was there already"},
        201: {"model": FileOutcome, "description": "Added or changed"},
        207: {"model": FileOutcome, "description": "A part was left out, with the reason"},
    },
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": BINARY}}},
    **operation("ingest", "Add a file"),
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
    outcome = await until_disconnect(request, _add(content, name, _Way(into, replace), state))
    return as_json(outcome, _status(outcome))


@router.get("/files/{name:path}", response_class=Response, responses=FILE, **operation("ask", "Download a file"))
async def get_file(name: Name, request: Request, state: Shared, corpus: Corpus = None) -> Response:
    """The file that a document was read from, as it was uploaded or ingested. 404 where none is kept."""
    document, content = await state.engine.documents.file(state.corpus_of(corpus), name)
    own = name_of(document.id, document.origin).rpartition("/")[2]
    disposition = f"attachment; filename*=UTF-8''{quote(own, safe='')}"
    return revalidated(request, content, {"Content-Disposition": disposition, **PRIVATE}, "application/octet-stream")


@router.get("/pages/{name:path}", response_class=Response, responses=PAGE, **operation("ask", "Show a page"))
async def get_page(
    name: Name,
    request: Request,
    state: Shared,
    start: Annotated[int, Query(description="First character of the document that is marked.", ge=0)],
    end: Annotated[int, Query(description="The character after the last one.", ge=0)],
    corpus: Corpus = None,
) -> Response:
    """The page of a PDF that a part of its text stands on, as a PNG with that part marked."""
    document, content = await state.engine.documents.file(state.corpus_of(corpus), name)
    if name_of(document.id, document.origin) != document.id:
        raise NoFile(f"{problems.shown(document.id)!r} stands in a file of several documents")
    number, before = _page_of(document, start)
    words = document.text[start:end]
    picture = await until_disconnect(request, state.readers.page(content, name, number, before, words))
    return Response(picture, headers=PRIVATE, media_type="image/png")


def _page_of(document: Document, start: int) -> tuple[int, str]:
    """Returns the number of the page that a character stands on, and the page's text before it. Raises NoFile."""
    pages = [(first, place.page) for first, place in document.places if first <= start]
    number = pages[-1][1] if pages else None
    if number is None:
        raise NoFile(f"{problems.shown(document.id)!r} has no pages there")
    return number, document.text[next(first for first, page in pages if page == number) : start]


@router.post(
    "/files",
    max_body_size=MAX_DOCUMENTS_BODY,
    responses={
        200: {"model": SentFiles, "description": "All were taken"},
        202: {"model": Task, "description": "With `wait=false`: the work goes on, `Location` tells how far it is"},
        207: {"model": SentFiles, "description": "Some were refused, or a part was left out"},
    },
    openapi_extra={"requestBody": {"required": True, "content": {FORM: {"schema": FORM_SCHEMA}}}},
    **operation("ingest", "Add files by a form"),
)
async def post_files(
    request: Request,
    state: Shared,
    corpus: Annotated[str | None, Query(description="Without it, the server's default corpus.")] = None,
    replace: Annotated[bool, Query(description="Take the place of other files' documents of these ids.")] = False,
    ocr: Annotated[bool, Query(description="Recognize text in pictures and in pages without text; slow.")] = False,
    wait: Annotated[bool, Query(description="Reply when all are read; without, with a task at once.")] = True,
    idempotency_key: Annotated[str | None, Header(description="Of a task: the same key finds the same one.")] = None,
) -> Response:
    """`multipart/form-data` with any number of files, as browsers and `curl -F file=@handbook.pdf` send it.

    Each file has its own outcome. Fields that are no files are refused.
    """
    way = _Way(state.corpus_of(corpus), replace, ocr)
    if not wait:
        return await _begin(request, way, idempotency_key, state)
    return await until_disconnect(request, _add_form(request, way, state))


async def _form(request: Request) -> tuple[FormData, list[UploadFile]]:
    """Reads the form and its files. Raises NotForm, BadForm."""
    if content_type(request) != FORM:
        raise NotForm(f"the Content-Type is {request.headers.get('content-type', '')[:80]!r}, and {FORM} is wanted")
    form = await request.form(max_files=MAX_FILES, max_fields=0, max_part_size=0)
    files = [part for _, part in form.multi_items() if isinstance(part, UploadFile)]
    if not files:
        raise BadForm("the form holds no file; send at least one part with a filename")
    return form, files


async def _add_form(request: Request, way: _Way, state: State) -> Response:
    form, uploads = await _form(request)
    request_id = problems.request_id(request.scope)
    try:
        results = [await _add_one(part, way, request_id, state) for part in uploads]
    finally:
        await form.close()
    refusals = sum(one.problem is not None for one in results)
    files = SentFiles(results=results, taken=len(results) - refusals, refused=refusals)
    is_complete = all(one.status in (200, 201) for one in results)
    return as_json(files, 200 if is_complete else 207, without_none=True)


async def _begin(request: Request, way: _Way, sent_key: str | None, state: State) -> Response:
    states = state.engine.tasks.states(keys.check_corpus(way.corpus))
    id = _task_id(sent_key, way.corpus)
    with suppress(UnknownTask):
        known = await states.of(id)
        if known.stage != "broken":
            return _task_reply(known)
    form, files = await _form(request)
    task = Task(id=id, corpus=way.corpus, total=len(files))
    request_id = problems.request_id(request.scope)

    async def work() -> None:
        try:
            for part in files:
                task.file, task.texts, task.stored, task.page, task.pages = part.filename, 0, 0, 0, 0
                result = await _add_one(part, way, request_id, state, task)
                task.results.append(result)
                task.documents += len(result.outcome.documents) if result.outcome else 0
                task.refused += result.problem is not None
        finally:
            await form.close()

    await state.background.start(states, task, work())
    return _task_reply(task)


def _task_id(idempotency_key: str | None, corpus: str) -> str:
    """Returns the task's id, one for each Idempotency-Key of a bearer and a corpus: a repeated call finds its task."""
    if idempotency_key is None:
        return secrets.token_hex(16)
    key = bearer.key.get()
    return blake2b("\0".join((key.id if key else "", corpus, idempotency_key)).encode(), digest_size=16).hexdigest()


def _task_reply(task: Task) -> Response:
    return as_json(task, 202, {"Location": f"/v1/tasks/{task.id}"}, without_none=True)


async def _add_one(part: UploadFile, way: _Way, request_id: str, state: State, task: Task | None = None) -> SentFile:
    name = part.filename or "file"
    try:
        outcome = await _add(await part.read(), name, way, state, task)
    except ShardqaError as fault:
        problem = problems.of(fault, request_id)
        return SentFile(file=name, status=problem.status, problem=problem)
    return SentFile(file=name, status=_status(outcome), outcome=outcome)


async def _add(content: bytes, name: str, way: _Way, state: State, task: Task | None = None) -> FileOutcome:
    items = await _read(content, name, way.ocr, state, task)
    textless = [item for item in items if isinstance(item, Textless)]
    outcome = FileOutcome(
        file=name,
        documents=[],
        skipped=[LeftOut(place=item.place, reason=item.reason) for item in items if isinstance(item, Skipped)],
        lost=[LeftOut(place=item.place, reason=item.reason) for item in items if isinstance(item, Lost)],
    )
    documents = [item.model_copy(update={"corpus": way.corpus}) for item in items if isinstance(item, Document)]
    every: list[Ingested | Exception] = []
    for first in range(0, len(documents), SLICE):
        if task:
            task.texts, task.stored = len(documents), first
        every += await state.engine.documents.put_each(documents[first : first + SLICE], way.replace)
    if own := [document for document, result in zip(documents, every, strict=True) if isinstance(result, Ingested)]:
        await state.engine.documents.keep_file(way.corpus, name, own, content)
    for document, result in zip(documents, every, strict=True):
        if isinstance(result, Ingested):
            outcome.documents.append(result)
            state.metrics.documents.labels("changed" if result.changed else "unchanged").inc()
        elif len(items) == 1 or not isinstance(result, ShardqaError):
            raise result
        else:
            outcome.skipped.append(LeftOut(place=problems.shown(document.id), reason=str(result)))
    state.metrics.documents.labels("refused").inc(len(outcome.skipped))
    if not outcome.documents:
        reasons = [f"{one.place}: {one.reason}" for one in outcome.skipped]
        reasons += [f"{one.place}: {one.reason}" for one in textless]
        raise BadDocument("; ".join(reasons[:3]) or f"{name} is empty")
    return outcome


async def _read(content: bytes, name: str, ocr: bool, state: State, task: Task | None) -> list[Item]:
    def tell(page: Recognized) -> None:
        if task:
            task.page, task.pages = page.page, page.pages

    if ocr:
        need("rapidocr", extra="ocr")
    items = await state.readers.read(content, name, MAX_DOCUMENTS + 1, ocr, tell)
    if len(items) > MAX_DOCUMENTS:
        raise BadDocument(f"{name} holds more than {MAX_DOCUMENTS:,} documents; split it, or use 'shardqa ingest'")
    return items


def _status(outcome: FileOutcome) -> int:
    if outcome.skipped or outcome.lost:
        return 207
    return 201 if any(done.changed for done in outcome.documents) else 200
