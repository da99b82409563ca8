"""Words of corpora as Redis holds them, believed for a few seconds.

One asyncio loop owns a StoredWords. Where the node that holds a corpus' words can't be asked, what was known last
counts.
"""

import logging
from dataclasses import dataclass
from time import monotonic

from pydantic import ValidationError

from shardqa import keys
from shardqa.engine.connections import Shards
from shardqa.errors import ClusterUnavailable, ShardqaError
from shardqa.http_schema import CorpusWords as Words

BELIEVED_SECONDS = 5.0  # until they are read again: how long another process may go on with older ones
CORPORA = 1_000  # remembered; more are forgotten all at once, and read again

log = logging.getLogger("shardqa.engine")


@dataclass(frozen=True, slots=True)
class Believed:
    words: Words | None  # None: the corpus has none
    until: float  # monotonic seconds


class StoredWords:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._believed: dict[str, Believed] = {}  # by corpus

    def believed(self, corpus: str) -> Believed | None:
        """Returns what is known without asking; None where that is too old, or not known."""
        value = self._believed.get(corpus)
        return value if value is not None and monotonic() < value.until else None

    async def of(self, corpus: str) -> Words | None:
        """The corpus's own, or None where it has none."""
        belief = self.believed(corpus)
        if belief is not None:
            return belief.words
        try:
            words = await self.stored(corpus)
        except ClusterUnavailable as fault:
            last = self._believed.get(corpus)
            log.warning("%s can't be read, what was known counts: %s", keys.corpus_words(corpus), fault)
            return last.words if last else None
        self._believe(corpus, words)
        return words

    async def stored(self, corpus: str) -> Words | None:
        """Returns what Redis holds now. Raises ClusterUnavailable."""
        value = await self._shards.by_key(keys.corpus_words(corpus), "GET")
        try:
            return Words.model_validate_json(value) if value is not None else None
        except ValidationError:
            log.warning("%s holds nothing of this version, and counts as none", keys.corpus_words(corpus))
            return None

    async def store(self, corpus: str, words: Words | None) -> None:
        """Gives a corpus its own, or by None takes it away. Raises ClusterUnavailable, WritesRefused."""
        key = keys.corpus_words(corpus)
        if words is None:
            await self._shards.by_key(key, "UNLINK")
        else:
            await self._shards.by_key(key, "SET", words.model_dump_json())
        self._believe(corpus, words)

    async def forget(self, corpus: str) -> None:
        """Removes what a corpus had that is dropped; whoever may drop it need not be allowed this."""
        try:
            await self.store(corpus, None)
        except ShardqaError as fault:
            log.warning("%s stays, and its corpus is dropped: %s", keys.corpus_words(corpus), fault)

    def _believe(self, corpus: str, words: Words | None) -> None:
        if len(self._believed) >= CORPORA:
            self._believed.clear()
        self._believed[corpus] = Believed(words, monotonic() + BELIEVED_SECONDS)
