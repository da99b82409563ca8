"""API keys: ASGI middleware that checks a request's key, and an engine limited to what that key allows.

Loopback needs no key, unless SHARDQA_HTTP_KEYS says so. Keys are read from Redis as a whole, at most every TRUSTED
seconds, so a request costs no round trip and a revoked key is refused within that time. One event loop.
"""

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from shardqa import api_keys, filters
from shardqa.address import is_loopback
from shardqa.api import problems
from shardqa.api.allowances import Allowances
from shardqa.api.connection import Connection
from shardqa.api.faults import KeyRefused, KeyWanted, NotAllowed
from shardqa.api_keys import ApiKey
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.engine.ask import CachedReply
from shardqa.errors import ClusterUnavailable, ShardqaError
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

TRUSTED = 2.0  # seconds that keys are believed without being read again
STALE = 30.0  # seconds that they are believed while Redis can't be asked
GUARDED = ("/v1/", "/metrics")  # the page, health and the API's description hold nobody's documents
READING = frozenset({"GET", "HEAD", "OPTIONS"})

bearer: ContextVar[ApiKey | None] = ContextVar("bearer", default=None)
"""Whose request this is; None where no key is asked for."""


def scope_of(method: str, path: str) -> api_keys.Scope:
    """What a key must allow for a request."""
    if path in ("/metrics", "/v1/cluster"):
        return "metrics"
    if path.startswith("/v1/corpora/") and method not in READING:
        return "admin"
    if path.startswith(("/v1/documents", "/v1/files")) and method not in READING:
        return "ingest"
    return "ask"


def _is_guarded(scope: Scope) -> bool:
    """The page itself is open, but not where it comes with an answer, for browsers without JavaScript."""
    path: str = scope["path"]
    return path.startswith(GUARDED) or (path == "/" and b"plain" in scope["query_string"])


class Authentication:
    def __init__(self, app: ASGIApp, settings: Settings, connection: Connection) -> None:
        self.app = app
        self._wanted = settings.http_keys
        self._keys = KnownKeys(connection)
        self._allowances = Allowances(connection)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_guarded(scope) or self._is_open(scope):
            await self.app(scope, receive, send)
            return
        try:
            key = await self._checked(scope)
        except ShardqaError as fault:
            headers = {"WWW-Authenticate": "Bearer"} if fault.status == KeyWanted.status else {}
            await problems.reply(fault, scope, headers=headers)(scope, receive, send)
            return
        token = bearer.set(key)
        try:
            await self.app(scope, receive, send)
        finally:
            bearer.reset(token)

    def _is_open(self, scope: Scope) -> bool:
        client = scope.get("client")
        return self._wanted == "none" or (self._wanted == "others" and client is not None and is_loopback(client[0]))

    async def _checked(self, scope: Scope) -> ApiKey:
        """Raises KeyWanted, KeyRefused, NotAllowed, TooManyOfKey, ClusterUnavailable."""
        given = Headers(scope=scope).get("authorization", "")
        kind, _, sent = given.partition(" ")
        parsed = api_keys.parse(sent.strip()) if kind.lower() == "bearer" else None
        if not given:
            raise KeyWanted("this request needs a key: send 'Authorization: Bearer sq-…'")
        found = (await self._keys.current()).get(parsed[0]) if parsed else None
        if parsed is None or found is None or not api_keys.is_of(parsed[1], found):
            raise KeyRefused("the key sent is unknown, or was revoked")
        if found.has_expired(datetime.now(UTC)):
            raise KeyRefused(f"the key {found.id} expired at {found.expires:%Y-%m-%d %H:%M} UTC")
        await self._allowances.take(found)
        needed = scope_of(scope["method"], scope["path"])
        if not found.allows(needed):
            raise NotAllowed(f"the key {found.id} is for {', '.join(found.scopes)}, and this needs {needed}")
        return found


class KnownKeys:
    """All keys by id, as Redis had them at most TRUSTED seconds ago."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, ApiKey] = {}
        self._read = float("-inf")  # monotonic seconds of the last reading
        self._lock = asyncio.Lock()

    async def current(self) -> dict[str, ApiKey]:
        """Raises ClusterUnavailable where they were not read for STALE seconds."""
        if time.monotonic() - self._read < TRUSTED:
            return self._known
        async with self._lock:
            started = time.monotonic()
            if started - self._read < TRUSTED:
                return self._known
            try:
                self._known = {key.id: key for key in await self._connection.engine.api_keys()}
                self._read = started
            except ShardqaError as error:
                if started - self._read > STALE:
                    raise ClusterUnavailable(f"keys can't be checked now: {error}") from None
            return self._known


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
