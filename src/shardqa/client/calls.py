"""Each call of the API as data: what is sent, and how the reply is read. Both clients send them. Pure functions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

import httpx2
import orjson
from pydantic import BaseModel, ValidationError

from shardqa import http_schema as http
from shardqa.client.faults import RequestFailed
from shardqa.errors import BadDocument, BadDocumentId
from shardqa.filters import DocumentFilter
from shardqa.question import CorporaChoice
from shardqa.schema import Answer, DocumentList, Dropping, Explanation, Facets, Ingested, OneCorpus, SearchResult

DEFAULT_URL = "http://127.0.0.1:8080"
TIMEOUT = 60.0  # seconds of one attempt: a document of the largest size takes a while
BATCH = 1_000  # documents of one request
BATCH_BYTES = 16 * 1024 * 1024  # of their JSON, unless one alone is larger; the server takes 64 MiB
DOT_SEGMENTS = (".", "..")  # which HTTP clients take out of an address, however encoded

Filter: TypeAlias = DocumentFilter | Mapping[str, Any]
Result = TypeVar("Result")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    method: str
    path: str
    read: Callable[[httpx2.Response], Result]
    query: Mapping[str, Any] = field(default_factory=dict)
    json: bytes | None = None
    content: bytes | None = None
    files: Sequence[tuple[str, bytes]] = ()  # names and contents of a form
    gone_is_done: bool = False  # a repeated call that finds nothing was made before, and its reply was lost

    def request(self) -> dict[str, Any]:
        """Arguments of httpx2' `request`."""
        body = self.json if self.json is not None else self.content
        headers = {"content-type": "application/json"} if self.json is not None else {}
        query = {name: value for name, value in self.query.items() if value is not None}
        content = {"files": [("file", one) for one in self.files]} if self.files else {"content": body}
        return {"method": self.method, "url": self.path, "params": query, "headers": headers, **content}


def headers(key: str | None) -> dict[str, str]:
    """The headers of every request; `key` is an API key."""
    return {"accept": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}


def _as(model: type[Model]) -> Callable[[httpx2.Response], Model]:
    def read(reply: httpx2.Response) -> Model:
        try:
            return model.model_validate_json(reply.content)
        except ValidationError as error:
            first = error.errors()[0]
            what = f"{reply.request.url} replies what is no {model.__name__} ({first['loc']}: {first['msg']})"
            raise RequestFailed(f"{what}; is shardqa's API there, and of this version?", "bad_reply", 502) from None

    return read


def ask(question: http.Question, filter: Filter | None) -> Call[Answer]:
    return Call("POST", "/v1/ask", _as(Answer), json=orjson.dumps(_fields(question, filter)))


def ask_batch(questions: Iterable[str | http.Question], corpus: CorporaChoice) -> Call[list[http.Asked]]:
    every = [q if isinstance(q, http.Question) else http.Question.model_construct(question=q) for q in questions]
    own_corpus = {} if corpus is None else {"corpus": corpus}
    body = orjson.dumps({"questions": [{**own_corpus, **_fields(question, question.filter)} for question in every]})
    read = _as(http.Answers)
    return Call("POST", "/v1/ask/batch", lambda reply: read(reply).results, json=body)


def search(request: http.Search, filter: Filter | None) -> Call[SearchResult]:
    return Call("POST", "/v1/search", _as(SearchResult), json=orjson.dumps(_fields(request, filter)))


def explain(request: http.Explain, filter: Filter | None) -> Call[Explanation]:
    return Call("POST", "/v1/explain", _as(Explanation), json=orjson.dumps(_fields(request, filter)))


def _fields(request: http.Question | http.Search | http.Explain, filter: Filter | None) -> dict[str, Any]:
    """The fields that a request sets; a null in its filter is a condition, and stays."""
    fields = request.model_dump(exclude_none=True, exclude={"filter"})
    if isinstance(filter, DocumentFilter):
        filter = filter.model_dump(mode="json", exclude_unset=True)
    return fields if filter is None else {**fields, "filter": dict(filter)}


def add(document: http.NewDocument) -> Call[Ingested]:
    return Call("POST", "/v1/documents", _as(Ingested), json=document.model_dump_json().encode())


def add_many(documents: bytes, corpus: str | None) -> Call[list[http.Outcome]]:
    read = _as(http.Outcomes)
    return Call("POST", "/v1/documents", lambda reply: read(reply).results, {"corpus": corpus}, json=documents)


def batches(documents: Iterable[http.NewDocument | Mapping[str, Any]]) -> Iterator[bytes]:
    """Lists of documents as JSON, each within what one request may hold."""
    batch, size = list[bytes](), 0
    for document in documents:
        json = orjson.dumps(document.model_dump() if isinstance(document, http.NewDocument) else dict(document))
        if batch and (len(batch) == BATCH or size + len(json) > BATCH_BYTES):
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 0
        batch.append(json)
        size += len(json)
    if batch:
        yield b"[" + b",".join(batch) + b"]"


def outcomes(results: list[http.Outcome]) -> http.Outcomes:
    refusals = sum(one.problem is not None for one in results)
    return http.Outcomes(results=results, taken=len(results) - refusals, refused=refusals)


def add_file(file: Path | str, name: str | None, corpus: str | None, replace: bool) -> Call[http.FileOutcome]:
    """Raises BadDocument for a file that can't be read."""
    path = Path(file)
    content = _content(path)
    query = {"corpus": corpus, "replace": "true" if replace else None}
    return Call("PUT", f"/v1/files/{_id(name or path.name)}", _as(http.FileOutcome), query, content=content)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadDocument(f"{path} can't be read: {error.strerror}") from None


def add_files(files: Iterable[Path | str], corpus: str | None, replace: bool, ocr: bool) -> Call[http.Task]:
    """Raises BadDocument for a file that can't be read."""
    parts = [(Path(file).name, _content(Path(file))) for file in files]
    flags = {"replace": replace or None, "ocr": ocr or None, "wait": False}
    query = {"corpus": corpus, **{name: str(flag).lower() for name, flag in flags.items() if flag is not None}}
    return Call("POST", "/v1/files", _as(http.Task), query, files=parts)


def task(id: str) -> Call[http.Task]:
    return Call("GET", f"/v1/tasks/{_id(id)}", _as(http.Task))


def tasks(corpus: str | None) -> Call[http.Tasks]:
    return Call("GET", "/v1/tasks", _as(http.Tasks), {"corpus": corpus})


def cancel(id: str) -> Call[http.Task]:
    return Call("DELETE", f"/v1/tasks/{_id(id)}", _as(http.Task))


def document(id: str, corpus: str | None) -> Call[http.StoredDocument]:
    return Call("GET", f"/v1/documents/{_id(id)}", _as(http.StoredDocument), {"corpus": corpus})


def file(id: str, corpus: str | None) -> Call[bytes]:
    return Call("GET", f"/v1/files/{_id(id)}", lambda reply: reply.content, {"corpus": corpus})


def page(id: str, start: int, end: int, corpus: str | None) -> Call[bytes]:
    query = {"corpus": corpus, "start": start, "end": end}
    return Call("GET", f"/v1/pages/{_id(id)}", lambda reply: reply.content, query)


def change(id: str, changes: http.DocumentChanges, corpus: str | None) -> Call[Ingested]:
    body = changes.model_dump_json(exclude_unset=True).encode()
    return Call("PATCH", f"/v1/documents/{_id(id)}", _as(Ingested), {"corpus": corpus}, json=body)


def delete(id: str, corpus: str | None) -> Call[None]:
    return Call("DELETE", f"/v1/documents/{_id(id)}", lambda reply: None, {"corpus": corpus}, gone_is_done=True)


def documents(corpus: str | None, cursor: str | None, limit: int) -> Call[DocumentList]:
    return Call("GET", "/v1/documents", _as(DocumentList), {"corpus": corpus, "cursor": cursor, "limit": limit})


def corpus(name: str) -> Call[OneCorpus]:
    return Call("GET", f"/v1/corpora/{_id(name)}", _as(OneCorpus))


def facets(corpus: str) -> Call[Facets]:
    return Call("GET", f"/v1/corpora/{_id(corpus)}/facets", _as(Facets))


def words(corpus: str) -> Call[http.CorpusWords]:
    return Call("GET", f"/v1/corpora/{_id(corpus)}/words", _as(http.CorpusWords))


def set_words(corpus: str, new: http.CorpusWords) -> Call[http.StoredWords]:
    return Call("PUT", f"/v1/corpora/{_id(corpus)}/words", _as(http.StoredWords), json=new.model_dump_json().encode())


def drop(name: str) -> Call[Dropping]:
    return Call("DELETE", f"/v1/corpora/{_id(name)}", _as(Dropping))


def corpora() -> Call[http.Listed]:
    return Call("GET", "/v1/corpora", _as(http.Listed))


def formats() -> Call[http.Formats]:
    return Call("GET", "/v1/formats", _as(http.Formats))


def version() -> Call[http.Version]:
    return Call("GET", "/v1/version", _as(http.Version))


def ready() -> Call[http.Ready]:
    return Call("GET", "/readyz", _as(http.Ready))


def _id(id: str) -> str:
    """An id as a part of an address. Raises BadDocumentId for what no address can hold."""
    if not id or any(part in DOT_SEGMENTS for part in id.split("/")):
        raise BadDocumentId(f"the id {id!r} can't stand in an address; choose one without the path segments . and ..")
    try:
        return quote(id, safe="/")
    except UnicodeEncodeError:
        raise BadDocumentId(f"document id {id[:80]!r} is not valid Unicode; re-encode it as UTF-8") from None
