"""Scores that a corpus has of its own (`shardqa calibrate`): read from Redis, and believed for a few seconds.

One asyncio loop owns a CorpusScores. Where the node that holds them can't be asked, what was known last counts.
"""

import logging
from dataclasses import dataclass
from time import monotonic

from shardqa import keys
from shardqa.engine.connections import Shards
from shardqa.errors import ClusterUnavailable, ShardqaError
from shardqa.models.corpus_scoring import CorpusScoring

BELIEVED_SECONDS = 5.0  # until they are read again: how long another process may go on with older ones
CORPORA = 1_000  # remembered; more are forgotten all at once, and read again

log = logging.getLogger("shardqa.engine")


@dataclass(frozen=True, slots=True)
class Believed:
    own: CorpusScoring | None  # None: the corpus has the reader's
    until: float  # monotonic seconds


class CorpusScores:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._believed: dict[str, Believed] = {}  # by corpus

    def believed(self, corpus: str) -> Believed | None:
        """The scores that are known without asking; None where they are too old, or not known."""
        found = self._believed.get(corpus)
        return found if found is not None and monotonic() < found.until else None

    async def of(self, corpus: str) -> CorpusScoring | None:
        """The corpus's own, or None where it has the reader's."""
        found = self.believed(corpus)
        if found is not None:
            return found.own
        try:
            own = await self.stored(corpus)
        except ClusterUnavailable as fault:
            known = self._believed.get(corpus)
            log.warning("scores of %s can't be read, older ones count: %s", corpus, fault)
            return known.own if known else None
        self._believe(corpus, own)
        return own

    async def stored(self, corpus: str) -> CorpusScoring | None:
        """As it stands in Redis now. Raises ClusterUnavailable."""
        value = await self._shards.by_key(keys.corpus_scoring(corpus), "GET")
        found = CorpusScoring.parsed(value) if value is not None else None
        if value is not None and found is None:
            log.warning("%s holds no scores of this version, the reader's count", keys.corpus_scoring(corpus))
        return found

    async def store(self, corpus: str, own: CorpusScoring | None) -> None:
        """None: the reader's from now on. Raises ClusterUnavailable, WritesRefused."""
        key = keys.corpus_scoring(corpus)
        if own is None:
            await self._shards.by_key(key, "UNLINK")
        else:
            await self._shards.by_key(key, "SET", own.model_dump_json())
        self._believe(corpus, own)

    async def forget(self, corpus: str) -> None:
        """With a corpus that is dropped; whoever may drop it need not be allowed this."""
        try:
            await self.store(corpus, None)
        except ShardqaError as fault:
            log.warning("the scores of %s stay, which is dropped: %s", corpus, fault)

    def _believe(self, corpus: str, own: CorpusScoring | None) -> None:
        if len(self._believed) >= CORPORA:
            self._believed.clear()
        self._believed[corpus] = Believed(own, monotonic() + BELIEVED_SECONDS)
