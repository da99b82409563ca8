"""Reads what a corpus's own scores are fitted on: the passages of a question with every span in them."""

import asyncio
from dataclasses import dataclass, replace

from shardqa.config import Settings
from shardqa.engine.connections import Shards
from shardqa.engine.rank import Ranking
from shardqa.engine.reading import Readers
from shardqa.errors import AnswerTimeout, ClusterUnavailable
from shardqa.models.corpus_scoring import ReadPassage
from shardqa.models.scoring import Scoring, shipped_scoring
from shardqa.question import Question


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    passages: tuple[ReadPassage, ...]  # best first
    readers: Scoring  # of the reader, whatever the corpus has
    size: int  # passages of the corpus


class Calibration:
    def __init__(self, settings: Settings, shards: Shards, ranking: Ranking) -> None:
        self._timeout = settings.timeout
        self._ranking = ranking
        self._readers = Readers(settings, shards)

    async def read(self, question: Question) -> ReadQuestion:
        """The best `k` passages, all of them read. Raises as `ask`, and ClusterUnavailable where a shard is missing."""
        try:
            async with asyncio.timeout(self._timeout):
                ranked = await self._ranking.rank(replace(question, sure=1.0), question.k)
                reading = await self._readers.staged(ranked)
        except TimeoutError:
            raise AnswerTimeout(f"reading {question.k} passages took more than {self._timeout:g} s") from None
        if reading.failed:
            raise ClusterUnavailable(f"{', '.join(reading.failed)} did not answer; see 'shardqa status'")
        spans = reading.scored(len(ranked.passages))
        passages = (
            ReadPassage(
                passage.document,
                passage.score,
                tuple(one.span.spanned for one in spans if one.span.fields["passage"] == passage.key),
            )
            for passage in ranked.passages
        )
        return ReadQuestion(tuple(passages), spans[0].span.scoring if spans else shipped_scoring(), ranked.size)
