"""The engine as far as the bearer of a request's key may use it.

What a key's filter hides is not there for its bearer: every count, list and score is of the other documents.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from shardqa import filters
from shardqa.api import problems
from shardqa.api.faults import NotAllowed
from shardqa.api_keys import ApiKey
from shardqa.engine import Engine
from shardqa.engine.ask import CachedReply
from shardqa.filters import DocumentFilter
from shardqa.http_schema import Question
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
    Step,
    Suggestions,
)

bearer: ContextVar[ApiKey | None] = ContextVar("bearer")
"""Whose request this is, once it has passed the gate: None where no key is asked for. Nobody else has an engine."""


class AuthorizedEngine:
    """The engine as far as the bearer of this request's key may use it; all of it without a key."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _corpus(self, corpus: str | None) -> str:
        """Raises NotAllowed."""
        name = self._engine.settings.corpus if corpus is None else corpus
        key = bearer.get()
        if key is not None and not key.is_for(name):
            raise NotAllowed(f"the key {key.id} is not for the corpus {problems.shown(name)!r}")
        return name

    def _filter(self, given: DocumentFilter | None) -> DocumentFilter | None:
        key = bearer.get()
        if key is None or key.filter is None:
            return given
        return key.filter if given is None else DocumentFilter(all=[key.filter, given])

    def _shows(self, title: str, metadata: dict[str, Any]) -> bool:
        wanted = self._filter(None)
        return wanted is None or filters.holds(filters.parse(filters.canonical(wanted)), title, metadata)

    async def ask(self, asked: Question, told: Callable[[Step], None] | None = None) -> Answer:
        return await self._engine.ask(
            asked.question,
            self._corpus(asked.corpus),
            asked.k,
            asked.n_best,
            asked.min_score,
            asked.fresh,
            asked.answer_when,
            told,
            self._filter(asked.filter),
        )

    def cached_reply(self, asked: Question) -> CachedReply | None:
        return self._engine.cached_reply(
            asked.question,
            self._corpus(asked.corpus),
            asked.k,
            asked.n_best,
            asked.min_score,
            asked.answer_when,
            self._filter(asked.filter),
        )

    async def search(
        self, question: str, corpus: str | None, limit: int, filter: DocumentFilter | None = None
    ) -> SearchResult:
        return await self._engine.search(question, self._corpus(corpus), limit, self._filter(filter))

    async def explain(
        self, question: str, corpus: str | None, k: int | None, filter: DocumentFilter | None = None
    ) -> Explanation:
        return await self._engine.explain(question, self._corpus(corpus), k, self._filter(filter))

    async def documents(self, corpus: str | None, cursor: str | None, limit: int) -> DocumentList:
        """A page may be short of those that the key's filter leaves out."""
        page = await self._engine.documents(self._corpus(corpus), cursor, limit)
        shown = [one for one in page.documents if self._shows(one.title, one.metadata)]
        return page.model_copy(update={"documents": shown})

    async def get(self, corpus: str, document: str) -> Document | None:
        found = await self._engine.get(self._corpus(corpus), document)
        return found if found is not None and self._shows(found.title, found.metadata) else None

    async def put(self, document: Document, replace: bool = True) -> Ingested:
        self._corpus(document.corpus)
        return await self._engine.put(document, replace)

    async def delete(self, corpus: str, document: str) -> bool:
        return await self._engine.delete(self._corpus(corpus), document)

    async def corpora(self) -> Corpora:
        found, key = await self._engine.corpora(), bearer.get()
        shown = [one for one in found.corpora if key is None or key.is_for(one.name)]
        return found.model_copy(update={"corpora": shown})

    async def corpus(self, name: str) -> OneCorpus:
        return await self._engine.corpus(self._corpus(name))

    async def suggestions(self, corpus: str) -> Suggestions:
        """None for a key that sees a part of the documents."""
        name, key = self._corpus(corpus), bearer.get()
        if key is not None and key.filter is not None:
            return Suggestions(corpus=name, suggestions=[])
        return await self._engine.suggestions(name)

    async def cluster(self) -> ClusterInfo:
        return await self._engine.cluster()

    async def drop(self, corpus: str) -> Dropping:
        return await self._engine.drop(self._corpus(corpus))
