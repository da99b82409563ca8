"""Documents, their files and the tasks that read them, as far as the bearer of a request's key may use them."""

from collections.abc import Sequence

from shardqa import http_schema, keys
from shardqa.api import bearer, problems
from shardqa.engine import Engine
from shardqa.engine.files import name_of, text_mark
from shardqa.engine.task_states import TaskStates
from shardqa.errors import NoFile, ShardqaError, UnknownDocument
from shardqa.schema import Document, DocumentList, Ingested


class AuthorizedDocuments:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def page(self, corpus: str, cursor: str | None, limit: int) -> DocumentList:
        """Returns a page of what the bearer sees; its cursor is its last document. Raises NotAllowed, BadCursor."""
        return await self._engine.catalogue.documents(bearer.check(corpus), cursor, limit, bearer.view())

    async def get(self, corpus: str, document: str) -> Document | None:
        own = await self._engine.documents.get(bearer.check(corpus), document)
        return own if own is not None and bearer.sees(own) else None

    async def file(self, corpus: str, id: str) -> tuple[Document, bytes]:
        """Returns a document that the bearer sees, and its file. Raises NotAllowed, UnknownDocument, NoFile."""
        document = await self.get(corpus, id)
        if document is None:
            raise UnknownDocument(f"there is no document {problems.shown(id)!r} in the corpus {corpus!r}")
        content = await self._engine.files.of(corpus, document) if self._may_have_file(document) else None
        if content is None:
            raise NoFile(f"the file of {problems.shown(id)!r} is not kept")
        return document, content

    async def has_file(self, corpus: str, document: Document) -> bool:
        return self._may_have_file(document) and await self._engine.files.has(bearer.check(corpus), document)

    def _may_have_file(self, document: Document) -> bool:
        """Returns whether a key with a filter may show the file: one of several documents holds others, too."""
        return bearer.view() is None or name_of(document.id, document.origin) == document.id

    async def keep_file(self, corpus: str, name: str, documents: Sequence[Document], content: bytes) -> None:
        """Keeps the file of these documents, unless the corpus keeps none."""
        words = await self._engine.words.stored(bearer.check(corpus))
        if words is None or words.keep_files:
            texts = {document.id: text_mark(document) for document in documents}
            await self._engine.files.keep(corpus, name, texts, content)

    def _check(self, document: Document) -> None:
        bearer.check(self._engine.settings.corpus if document.corpus is None else document.corpus)

    async def put(self, document: Document, replace: bool = True) -> Ingested:
        self._check(document)
        return await self._engine.documents.put(document, replace)

    async def put_each(self, documents: Sequence[Document], replace: bool = True) -> list[Ingested | Exception]:
        """Puts many by `Together.put_each`; a document that the key is not for has NotAllowed in its place."""
        outcomes: dict[int, Ingested | Exception] = {}
        for n, document in enumerate(documents):
            try:
                self._check(document)
            except ShardqaError as fault:
                outcomes[n] = fault
        rest = [n for n in range(len(documents)) if n not in outcomes]
        put = await self._engine.together.put_each([documents[n] for n in rest], replace)
        outcomes |= dict(zip(rest, put, strict=True))
        return [outcomes[n] for n in range(len(documents))]

    async def delete(self, corpus: str, document: str) -> bool:
        return await self._engine.documents.delete(bearer.check(corpus), document)


class AuthorizedTasks:
    def __init__(self, states: TaskStates) -> None:
        self._states = states

    def states(self, corpus: str) -> TaskStates:
        """Returns the states for a new task of a corpus. Raises NotAllowed."""
        bearer.check(corpus)
        return self._states

    async def under_way(self, corpus: str) -> http_schema.Tasks:
        """Returns the running tasks of a corpus. Raises NotAllowed."""
        return http_schema.Tasks(tasks=await self.states(corpus).under_way(keys.check_corpus(corpus)))

    async def of(self, id: str) -> http_schema.Task:
        """Returns a task by its id. Raises UnknownTask, NotAllowed."""
        task = await self._states.of(id)
        bearer.check(task.corpus)
        return task

    async def cancel(self, id: str) -> http_schema.Task:
        """Ends a task; returns its state. Raises UnknownTask, NotAllowed."""
        await self.of(id)
        return await self._states.cancel(id)
