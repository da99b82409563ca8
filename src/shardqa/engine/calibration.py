"""What a corpus's own scores are fitted on: the passages of a question with all that was read in them."""

import asyncio
from dataclasses import dataclass

from shardqa import checks, keys
from shardqa.config import MAX_K, Settings
from shardqa.engine.ask import between
from shardqa.engine.reading import Readers
from shardqa.engine.search import Searching
from shardqa.errors import AnswerTimeout, ClusterUnavailable
from shardqa.models.corpus_scoring import ReadPassage
from shardqa.models.scoring import Scoring, shipped_scoring


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    passages: tuple[ReadPassage, ...]  # best first
    readers: Scoring  # of the reader, whatever the corpus has


class Calibrating(Searching):
    async def read_passages(self, question: str, corpus: str | None = None, k: int | None = None) -> ReadQuestion:
        """The best `k` passages, all of them read. Raises as `ask`, and ClusterUnavailable where a shard is missing."""
        corpus = keys.check_corpus(self.settings.corpus if corpus is None else corpus)
        k = between("k", self.settings.k if k is None else k, 1, MAX_K)
        asked = checks.question(question)
        try:
            async with asyncio.timeout(self.settings.timeout):
                ranked = await self.rank(asked, corpus, k)
                reading = await Readers(_all_of(self.settings), self.masters).staged(ranked, asked, k, fresh=False)
        except TimeoutError:
            raise AnswerTimeout(f"reading {k} passages took more than {self.settings.timeout:g} s") from None
        if reading.failed:
            raise ClusterUnavailable(f"{', '.join(reading.failed)} did not answer; see 'shardqa status'")
        found = reading.scored(len(ranked.passages))
        passages = (
            ReadPassage(
                one.document, one.score, tuple(span.spanned for span in found if span.span["passage"] == one.key)
            )
            for one in ranked.passages
        )
        return ReadQuestion(tuple(passages), found[0].scoring if found else shipped_scoring())


def _all_of(settings: Settings) -> Settings:
    """No stage is sure enough to stop."""
    return settings.model_copy(update={"sure": 1.0})
