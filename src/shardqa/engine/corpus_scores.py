"""Scores that a corpus has of its own."""

import math
from collections.abc import Sequence

from shardqa import keys
from shardqa.engine.connections import Shards
from shardqa.engine.corpus_values import Believed, CorpusValues
from shardqa.models.corpus_scoring import CorpusScoring

READERS: Believed[CorpusScoring] = Believed(None, math.inf)


class CorpusScores(CorpusValues[CorpusScoring]):
    def __init__(self, shards: Shards) -> None:
        super().__init__(shards, keys.corpus_scoring, CorpusScoring.parsed)

    def believed_of(self, corpora: Sequence[str]) -> Believed[CorpusScoring] | None:
        """Returns what `believed` does. Several corpora have the reader's: one's say nothing of others'."""
        return READERS if len(corpora) > 1 else self.believed(corpora[0])

    async def of_all(self, corpora: Sequence[str]) -> CorpusScoring | None:
        """Returns what `of` does, and for several what `believed_of` does."""
        return None if len(corpora) > 1 else await self.of(corpora[0])
