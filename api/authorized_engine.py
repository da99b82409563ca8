"""The engine as far as the bearer of a request's key may use it.

What a key's filter hides is not there for its bearer: every count, list and score is of the other documents.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from shardqa import filters, http_schema, keys
from shardqa.api import cursors, problems
from shardqa.api.faults import NotAllowed
from shardqa.engine import Engine
from shardqa.engine.api_keys import ApiKey
from shardqa.engine.ask import CachedReply
from shardqa.engine.corpus_words import check
from shardqa.engine.files import name_of
from shardqa.engine.task_states import TaskStates
from shardqa.errors import NoFile, ShardqaError, UnknownDocument
from shardqa.filters import DocumentFilter, View
from shardqa.question import CorporaChoice, Question
from shardqa.schema import (
    Answer,
    ClusterInfo,
    Corpora,
    Document,
    DocumentList,
    Dropping,
    Explanation,
    Ingested,
    OneCorpus,
    SearchResult,
    SearchTiming,
    Step,
    Suggestions,
)

bearer: ContextVar[ApiKey | None] = ContextVar("bearer")
"""The key of a request that has passed the gate; None where no key is asked for. Nobody else has an engine."""


class AuthorizedEngine:
    """The engine as far as the bearer of this request's key may use it; all of it without a key."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _corpus(self, corpus: str | None) -> str:
        """Raises NotAllowed."""
        name = self._engine.settings.corpus if corpus is None else corpus
        key = bearer.get()
        if key is not None and not _is_for_bearer(name):
            raise NotAllowed(f"the key {key.id} is not for the corpus {problems.shown(name)!r}")
        return name

    async def _asked(self, question: Question, corpus: CorporaChoice) -> Question:
        """The question, for its corpora: sought last, so that what is wrong by itself is said first.

        Raises NotAllowed, SeveralCorpora.
        """
        names = await self._engine.catalogue.asked(corpus, _is_for_bearer, self._filter())
        return await self._engine.words.worded(replace(question, corpora=tuple(map(self._corpus, names))))

    def _filter(self, own: DocumentFilter | None = None) -> DocumentFilter | None:
        key = bearer.get()
        if key is None or key.filter is None:
            return own
        view = View(**dict(key.filter))
        return view if own is None else DocumentFilter(all=[view, own])

    def _shows(self, title: str, metadata: dict[str, Any]) -> bool:
        view = self._filter()
        return view is None or filters.holds(filters.parse(filters.canonical(view)), title, metadata)

    @staticmethod
    def sees_all() -> bool:
        """Whether nothing is hidden from the bearer: neither corpora nor documents."""
        key = bearer.get()
        return key is None or (key.corpora is None and key.filter is None)

    def _question(self, request: http_schema.Question, corpus: CorporaChoice) -> Question:
        return self._engine.question(
            request.question,
            corpus=corpus,
            k=request.k,
            n_best=request.n_best,
            min_score=request.min_score,
            answer_when=request.answer_when,
            form=request.form,
            fresh=request.fresh,
            filter=self._filter(request.filter),
        )

    async def ask(self, request: http_schema.Question, on_step: Callable[[Step], None] | None = None) -> Answer:
        question = await self._asked(self._question(request, request.corpus), request.corpus)
        return await self._engine.ask(question, on_step)

    def cached_reply(self, request: http_schema.Question) -> CachedReply | None:
        asked = self._engine.catalogue.known_asked(request.corpus, _is_for_bearer, self._filter())
        if asked is None:
            return None
        question = self._engine.words.known(self._question(request, list(map(self._corpus, asked))))
        return self._engine.asking.cached_reply(question) if question is not None else None

    async def search(self, request: http_schema.Search) -> SearchResult:
        made = self._engine.question(request.question, corpus=request.corpus, filter=self._filter(request.filter))
        found = await self._engine.search(await self._asked(made, request.corpus), request.limit)
        if self._filter() is None:
            return found
        return found.model_copy(update={"timing": SearchTiming(terms=0, rank=0, load=0, total=found.timing.total)})

    async def explain(self, request: http_schema.Explain) -> Explanation:
        filter_ = self._filter(request.filter)
        made = self._engine.question(request.question, corpus=request.corpus, k=request.k, filter=filter_)
        return await self._engine.explain(await self._asked(made, request.corpus))

    async def documents(self, corpus: str | None, cursor: str | None, limit: int) -> DocumentList:
        """Takes and gives cursors that hold for the bearer and the corpus alone. Raises BadCursor for any other."""
        name, key = self._corpus(corpus), bearer.get()
        owner = f"{name} {key.id if key else ''}"
        catalogue = self._engine.catalogue
        after = None if cursor is None else cursors.opened(await catalogue.cursor_secret(name), owner, cursor)
        page = await catalogue.documents(name, after, limit, self._filter())
        if page.cursor is None:
            return page
        following = cursors.sealed(await catalogue.cursor_secret(name), owner, page.cursor)
        return page.model_copy(update={"cursor": following})

    async def get(self, corpus: str, document: str) -> Document | None:
        found = await self._engine.documents.get(self._corpus(corpus), document)
        return found if found is not None and self._shows(found.title, found.metadata) else None

    async def file(self, corpus: str, id: str) -> tuple[Document, bytes]:
        """A document that the bearer sees, and its file. Raises NotAllowed, UnknownDocument, NoFile."""
        document = await self.get(corpus, id)
        if document is None:
            raise UnknownDocument(f"there is no document {problems.shown(id)!r} in the corpus {corpus!r}")
        content = await self._engine.files.of(corpus, document) if self._may_have_file(document) else None
        if content is None:
            raise NoFile(f"the file of {problems.shown(id)!r} is not kept")
        return document, content

    async def has_file(self, corpus: str, document: Document) -> bool:
        return self._may_have_file(document) and await self._engine.files.has(self._corpus(corpus), document)

    def _may_have_file(self, document: Document) -> bool:
        """A file of several documents holds some that a key with a filter may not show."""
        return self._filter() is None or name_of(document) == document.id

    async def keep_file(self, corpus: str, name: str, documents: Sequence[Document], content: bytes) -> None:
        """Keeps it unless its corpus keeps none."""
        words = await self._engine.words.stored(self._corpus(corpus))
        if words is None or words.keep_files:
            await self._engine.files.keep(corpus, name, documents, content)

    def tasks(self, corpus: str) -> TaskStates:
        """For work on a corpus. Raises NotAllowed."""
        self._corpus(corpus)
        return self._engine.tasks

    async def tasks_under_way(self, corpus: str) -> http_schema.Tasks:
        """Raises NotAllowed."""
        return http_schema.Tasks(tasks=await self.tasks(corpus).under_way(keys.check_corpus(corpus)))

    async def task(self, id: str) -> http_schema.Task:
        """Raises UnknownTask, NotAllowed."""
        task = await self._engine.tasks.of(id)
        self._corpus(task.corpus)
        return task

    async def cancel(self, id: str) -> http_schema.Task:
        """Raises as `task`."""
        await self.task(id)
        return await self._engine.tasks.cancel(id)

    async def put(self, document: Document, replace: bool = True) -> Ingested:
        self._corpus(document.corpus)
        return await self._engine.documents.put(document, replace)

    async def put_each(self, documents: Sequence[Document], replace: bool = True) -> list[Ingested | Exception]:
        """Puts many by `Together.put_each`; what the key is not for is a fault in its place, too."""
        outcomes: dict[int, Ingested | Exception] = {}
        for n, document in enumerate(documents):
            try:
                self._corpus(document.corpus)
            except ShardqaError as fault:
                outcomes[n] = fault
        rest = [n for n in range(len(documents)) if n not in outcomes]
        put = await self._engine.together.put_each([documents[n] for n in rest], replace)
        outcomes |= dict(zip(rest, put, strict=True))
        return [outcomes[n] for n in range(len(documents))]

    async def delete(self, corpus: str, document: str) -> bool:
        return await self._engine.documents.delete(self._corpus(corpus), document)

    async def corpora(self) -> Corpora:
        every = await self._engine.catalogue.corpora(self._filter())
        return every.model_copy(update={"corpora": [one for one in every.corpora if _is_for_bearer(one.name)]})

    async def corpus(self, name: str) -> OneCorpus:
        return await self._engine.catalogue.corpus(self._corpus(name), self._filter())

    async def words(self, corpus: str) -> http_schema.CorpusWords:
        return await self._engine.words.stored(self._corpus(corpus)) or http_schema.CorpusWords()

    async def store_words(self, corpus: str, words: http_schema.CorpusWords) -> None:
        """Raises BadWords."""
        await self._engine.words.store(keys.check_corpus(self._corpus(corpus)), check(words))

    async def suggestions(self, corpus: str) -> Suggestions:
        return await self._engine.suggesting.of(self._corpus(corpus), self._filter())

    async def cluster(self) -> ClusterInfo:
        """Counts the corpora and documents that the key is for."""
        key = bearer.get()
        return await self._engine.cluster.nodes(None if key is None else key.corpora, self._filter())

    async def note_feedback(self, feedback: http_schema.Feedback) -> None:
        await self._engine.feedback.add(self._corpus(feedback.corpus), feedback)

    async def note_asked(self, answer: Answer) -> None:
        await self._engine.question_log.add(answer)

    async def asked(self, corpus: str) -> list[http_schema.AskedQuestion]:
        return await self._engine.question_log.latest(self._corpus(corpus))

    async def drop(self, corpus: str) -> Dropping:
        dropping = await self._engine.catalogue.drop(self._corpus(corpus))
        await self._engine.question_log.forget(corpus)
        return dropping


def _is_for_bearer(corpus: str) -> bool:
    key = bearer.get()
    return key is None or key.is_for(corpus)
