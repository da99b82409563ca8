"""The client for asyncio. tools/blocking_clients.py generates blocking.py from this file."""

import ssl
from asyncio import sleep
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from shardqa import http_schema as http
from shardqa.answer_forms import FormChoice
from shardqa.answer_lines import AnswerWhen
from shardqa.client import calls
from shardqa.client.calls import DEFAULT_URL, TIMEOUT, Call, Filter, headers
from shardqa.client.exchange import Exchange
from shardqa.client.in_order import answers_in_order_async
from shardqa.client.retries import Budget, Retries
from shardqa.errors import ClusterUnavailable
from shardqa.question import CorporaChoice
from shardqa.schema import Answer, DocumentInfo, Dropping, Explanation, Facets, Ingested, OneCorpus, SearchResult

Result = TypeVar("Result")


class AsyncClient:
    """Calls the API at `url`. One event loop owns it. `key` is an API key, where the server wants one.

    Every call raises a ShardqaError: that of the server, by its code, or Unreachable. `retries` says which calls are
    made again; `timeout` bounds each attempt, in seconds. `transport` is httpx2', for proxies, sockets and tests.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        verify: ssl.SSLContext | bool = True,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._budget = Budget(retries or Retries())
        self._http = httpx2.AsyncClient(
            base_url=self.url, headers=headers(key), timeout=timeout, verify=verify, transport=transport
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def ask(
        self,
        question: str,
        corpus: CorporaChoice = None,
        *,
        k: int | None = None,
        n_best: int | None = None,
        min_score: float | None = None,
        answer_when: AnswerWhen | None = None,
        form: FormChoice | None = None,
        fresh: bool = False,
        filter: Filter | None = None,
    ) -> Answer:
        """The answer from documents that `filter` lets through, in a `form`; `answer` is None where they don't say."""
        request = http.Question.model_construct(  # the server checks it, so that every client has the same faults
            question=question,
            corpus=corpus,
            k=k,
            n_best=n_best,
            min_score=min_score,
            answer_when=answer_when,
            form=form,
            fresh=fresh,
        )
        return await self._send(calls.ask(request, filter))

    def ask_many(
        self, questions: Iterable[str], corpus: CorporaChoice = None, *, concurrency: int = 4, **options: Any
    ) -> AsyncIterator[Answer]:
        """Answers in the order of the questions, which may be without end; options are those of `ask`."""
        ask = partial(self.ask, corpus=corpus, **options)
        return answers_in_order_async(ask, questions, concurrency)

    async def ask_batch(
        self, questions: Iterable[str | http.Question], corpus: CorporaChoice = None
    ) -> list[http.Asked]:
        """Asks up to a hundred questions in one request, each with its answer or its problem."""
        return await self._send(calls.ask_batch(questions, corpus))

    async def search(
        self, question: str, corpus: CorporaChoice = None, limit: int = 10, *, filter: Filter | None = None
    ) -> SearchResult:
        """The passages that rank best, with the question's words marked; nothing is read."""
        request = http.Search.model_construct(question=question, corpus=corpus, limit=limit)
        return await self._send(calls.search(request, filter))

    async def explain(
        self, question: str, corpus: CorporaChoice = None, k: int | None = None, *, filter: Filter | None = None
    ) -> Explanation:
        """The answer, and everything it was made of."""
        request = http.Explain.model_construct(question=question, corpus=corpus, k=k)
        return await self._send(calls.explain(request, filter))

    async def add(
        self,
        text: str,
        id: str | None = None,
        corpus: str | None = None,
        *,
        title: str = "",
        source: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Ingested:
        """Puts one document, and returns when it can be asked about; without an id, the text's hash is it."""
        more = dict(metadata or {})
        new = http.NewDocument(text=text, id=id, corpus=corpus, title=title, source=source, metadata=more)
        return await self._send(calls.add(new))

    async def add_many(
        self, documents: Iterable[http.NewDocument | Mapping[str, Any]], corpus: str | None = None
    ) -> http.Outcomes:
        """Puts any number, a request for each thousand; one that is refused does not harm the others."""
        results = [one for batch in calls.batches(documents) for one in await self._send(calls.add_many(batch, corpus))]
        return calls.outcomes(results)

    async def add_file(
        self, file: Path | str, corpus: str | None = None, *, name: str | None = None, replace: bool = False
    ) -> http.FileOutcome:
        """Puts a file as it is: PDF, Word, HTML and all that `formats` lists. Its name is its document's id."""
        return await self._send(calls.add_file(file, name, corpus, replace))

    async def add_files(
        self, files: Iterable[Path | str], corpus: str | None = None, *, replace: bool = False, ocr: bool = False
    ) -> http.Task:
        """Sends many at once, and returns while they are read (`ocr`: pictures, too): `task` tells how far that is."""
        return await self._send(calls.add_files(files, corpus, replace, ocr))

    async def task(self, id: str) -> http.Task:
        """Tells how far a task is, and each file's outcome. Raises UnknownTask."""
        return await self._send(calls.task(id))

    async def tasks(self, corpus: str | None = None) -> list[http.Task]:
        """Lists those of a corpus that are under way, without the outcomes of their files."""
        return (await self._send(calls.tasks(corpus))).tasks

    async def cancel(self, id: str) -> http.Task:
        """Ends a task within seconds; what it has done stays. Raises UnknownTask."""
        return await self._send(calls.cancel(id))

    async def documents(self, corpus: str | None = None, page: int = 100) -> AsyncIterator[DocumentInfo]:
        """Yields all documents of a corpus, page by page. Raises ClusterUnavailable where a shard is missing."""
        cursor = None
        while True:
            reply = await self._send(calls.documents(corpus, cursor, page))
            if reply.partial:
                raise ClusterUnavailable(f"{', '.join(reply.failed)} did not answer: some documents are not listed")
            for document in reply.documents:
                yield document
            cursor = reply.cursor
            if cursor is None:
                return

    async def corpus(self, name: str) -> OneCorpus:
        """The size of a corpus, or how far its removal is. Raises UnknownCorpus."""
        return await self._send(calls.corpus(name))

    async def facets(self, corpus: str) -> Facets:
        """Documents of a corpus by folder and tag. Raises UnknownCorpus."""
        return await self._send(calls.facets(corpus))

    async def words(self, corpus: str) -> http.CorpusWords:
        """Synonyms and pinned answers of a corpus."""
        return await self._send(calls.words(corpus))

    async def set_words(self, corpus: str, words: http.CorpusWords) -> http.StoredWords:
        """Gives a corpus its words, in place of those before. Raises BadWords."""
        return await self._send(calls.set_words(corpus, words))

    async def drop(self, name: str) -> Dropping:
        """Ends a corpus: it can't be asked from now on, and the shards go on removing it."""
        return await self._send(calls.drop(name))

    async def document(self, id: str, corpus: str | None = None) -> http.StoredDocument:
        """Raises UnknownDocument."""
        return await self._send(calls.document(id, corpus))

    async def file(self, id: str, corpus: str | None = None) -> bytes:
        """The file that a document was read from. Raises UnknownDocument, NoFile."""
        return await self._send(calls.file(id, corpus))

    async def page(self, id: str, start: int, end: int, corpus: str | None = None) -> bytes:
        """The page of a PDF that these characters stand on, as a PNG with them marked. Raises as `file`."""
        return await self._send(calls.page(id, start, end, corpus))

    async def change(self, id: str, changes: http.DocumentChanges, corpus: str | None = None) -> Ingested:
        """Changes title, source or fields of the metadata; the text stays. Raises UnknownDocument."""
        return await self._send(calls.change(id, changes, corpus))

    async def delete(self, id: str, corpus: str | None = None) -> None:
        """Removes a document with all that belongs to it. Raises UnknownDocument.

        A call that is made again after its reply was lost finds the document gone: that is no fault then.
        """
        await self._send(calls.delete(id, corpus))

    async def corpora(self) -> http.Listed:
        """Names and sizes, and which one is asked by default."""
        return await self._send(calls.corpora())

    async def formats(self) -> http.Formats:
        """The formats of files that `add_file` takes."""
        return await self._send(calls.formats())

    async def version(self) -> http.Version:
        """The server's version, and its reader's name."""
        return await self._send(calls.version())

    async def ready(self) -> http.Ready:
        """Whether questions can be answered. Raises ClusterUnavailable while none can."""
        return await self._send(calls.ready())

    async def _send(self, call: Call[Result]) -> Result:
        """Raises a ShardqaError."""
        exchange = Exchange(call, self._budget, self.url)
        while True:
            try:
                reply = await self._http.request(**call.request())
            except httpx2.TransportError as error:
                await sleep(exchange.pause_after_error(error))
                continue
            if exchange.is_done(reply):
                return call.read(reply)
            await sleep(exchange.pause_after_reply(reply))
