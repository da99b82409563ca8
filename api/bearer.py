"""The bearer of a request's key, and what it may see: corpora, and of their documents those that its filter shows."""

from contextvars import ContextVar

from shardqa import filters
from shardqa.api import problems
from shardqa.api.faults import NotAllowed
from shardqa.engine.api_keys import ApiKey
from shardqa.filters import DocumentFilter, View
from shardqa.schema import Document

key: ContextVar[ApiKey | None] = ContextVar("key")
"""The key of a request that has passed the gate; None where no key is needed. Nobody else has an engine."""
client: ContextVar[str] = ContextVar("client", default="")
"""Whom shares of a request are counted under: its key, or its address where no key is needed."""


def may_use(corpus: str) -> bool:
    own = key.get()
    return own is None or own.is_for(corpus)


def check(corpus: str) -> str:
    """Returns the corpus. Raises NotAllowed where the key is for others."""
    own = key.get()
    if own is not None and not own.is_for(corpus):
        raise NotAllowed(f"the key {own.id} is not for the corpus {problems.shown(corpus)!r}")
    return corpus


def view(wish: DocumentFilter | None = None) -> DocumentFilter | None:
    """Returns the filter of the key's documents and of the request's `wish`; None where both are for all."""
    own = key.get()
    if own is None or own.filter is None:
        return wish
    filter_ = View(**dict(own.filter))
    return filter_ if wish is None else DocumentFilter(all=[filter_, wish])


def sees(document: Document) -> bool:
    clauses = filters.parse(filters.canonical(view()))
    return filters.holds(clauses, document.title, document.source, document.metadata)


def sees_all() -> bool:
    """Returns whether nothing is hidden from the bearer: neither corpora nor documents."""
    own = key.get()
    return own is None or (own.corpora is None and own.filter is None)
