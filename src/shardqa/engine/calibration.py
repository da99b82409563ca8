"""What a corpus's own scores are fitted on: the passages of a question with all that was read in them."""

import asyncio
from dataclasses import dataclass

from shardqa.config import Settings
from shardqa.engine.reading import Readers
from shardqa.engine.search import Searching
from shardqa.errors import AnswerTimeout, ClusterUnavailable
from shardqa.models.corpus_scoring import ReadPassage
from shardqa.models.scoring import Scoring, shipped_scoring
from shardqa.question import Question


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    passages: tuple[ReadPassage, ...]  # best first
    readers: Scoring  # of the reader, whatever the corpus has


class Calibrating(Searching):
    async def read_passages(self, question: Question) -> ReadQuestion:
        """The best `k` passages, all of them read. Raises as `ask`, and ClusterUnavailable where a shard is missing."""
        try:
            async with asyncio.timeout(self.settings.timeout):
                ranked = await self.rank(question, question.k)
                reading = await Readers(_all_of(self.settings), self.masters).staged(ranked)
        except TimeoutError:
            raise AnswerTimeout(f"reading {question.k} passages took more than {self.settings.timeout:g} s") from None
        if reading.failed:
            raise ClusterUnavailable(f"{', '.join(reading.failed)} did not answer; see 'shardqa status'")
        spans = reading.scored(len(ranked.passages))
        passages = (
            ReadPassage(
                passage.document,
                passage.score,
                tuple(span.spanned for span in spans if span.span["passage"] == passage.key),
            )
            for passage in ranked.passages
        )
        return ReadQuestion(tuple(passages), spans[0].scoring if spans else shipped_scoring())


def _all_of(settings: Settings) -> Settings:
    """No stage is sure enough to stop."""
    return settings.model_copy(update={"sure": 1.0})
