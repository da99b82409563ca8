"""Values that a corpus has of its own beside documents: read from Redis, and believed for a few seconds.

One asyncio loop owns a CorpusValues. Where the node that holds one can't be asked, what was known last counts.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from shardqa.engine.connections import Shards
from shardqa.errors import ClusterUnavailable, ShardqaError

BELIEVED_SECONDS = 5.0  # until they are read again: how long another process may go on with older ones
CORPORA = 1_000  # remembered; more are forgotten all at once, and read again

log = logging.getLogger("shardqa.engine")

Value = TypeVar("Value", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Believed(Generic[Value]):
    own: Value | None  # None: the corpus has none
    until: float  # monotonic seconds


class CorpusValues(Generic[Value]):
    def __init__(self, shards: Shards, key: Callable[[str], str], parse: Callable[[Any], Value | None]) -> None:
        self._shards = shards
        self._key = key
        self._parsed = parse
        self._believed: dict[str, Believed[Value]] = {}  # by corpus

    def believed(self, corpus: str) -> Believed[Value] | None:
        """Returns what is known without asking; None where that is too old, or not known."""
        value = self._believed.get(corpus)
        return value if value is not None and monotonic() < value.until else None

    async def of(self, corpus: str) -> Value | None:
        """The corpus's own, or None where it has none."""
        belief = self.believed(corpus)
        if belief is not None:
            return belief.own
        try:
            own = await self.stored(corpus)
        except ClusterUnavailable as fault:
            last = self._believed.get(corpus)
            log.warning("%s can't be read, what was known counts: %s", self._key(corpus), fault)
            return last.own if last else None
        self._believe(corpus, own)
        return own

    async def stored(self, corpus: str) -> Value | None:
        """Returns what Redis holds now. Raises ClusterUnavailable."""
        value = await self._shards.by_key(self._key(corpus), "GET")
        own = self._parsed(value) if value is not None else None
        if value is not None and own is None:
            log.warning("%s holds nothing of this version, and counts as none", self._key(corpus))
        return own

    async def store(self, corpus: str, own: Value | None) -> None:
        """Gives a corpus its own, or by None takes it away. Raises ClusterUnavailable, WritesRefused."""
        key = self._key(corpus)
        if own is None:
            await self._shards.by_key(key, "UNLINK")
        else:
            await self._shards.by_key(key, "SET", own.model_dump_json())
        self._believe(corpus, own)

    async def forget(self, corpus: str) -> None:
        """Removes what a corpus had that is dropped; whoever may drop it need not be allowed this."""
        try:
            await self.store(corpus, None)
        except ShardqaError as fault:
            log.warning("%s stays, and its corpus is dropped: %s", self._key(corpus), fault)

    def _believe(self, corpus: str, own: Value | None) -> None:
        if len(self._believed) >= CORPORA:
            self._believed.clear()
        self._believed[corpus] = Believed(own, monotonic() + BELIEVED_SECONDS)
