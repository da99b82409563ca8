"""Asks the shards for the documents whose titles stand in a question's first passages (shardqa/bridges.py)."""

from collections.abc import Sequence

from shardqa import bridges, rounds
from shardqa.bridges import Bridges, FirstPassage
from shardqa.engine.connections import Shards
from shardqa.engine.epochs import PartEpochs
from shardqa.engine.shard_parts import ShardPart, asked
from shardqa.question import Question
from shardqa.rounds import BridgeReply


class Bridge:
    """The titles that lead on from one question's first passages, and the shards that were asked for them."""

    def __init__(self, shards: Shards, question: Question, parts_with_titles: frozenset[ShardPart]) -> None:
        self._shards = shards
        self._question = question
        self._titled = parts_with_titles  # those whose documents have titles: no other is asked
        self._destinations = frozenset[ShardPart]()  # those with a document which a title leads to
        self.epochs: PartEpochs = {}  # of those that were asked
        self.failed: list[str] = []
        self.bridges: Bridges | None = None

    async def look(self, first: Sequence[FirstPassage], passages: int) -> None:
        """Follows the words of the first passages, in a corpus of so many passages."""
        if not first:
            return
        replies, self.failed = await asked(
            self._shards,
            self._question,
            lambda corpus: rounds.bridge(corpus, first, self._question.view),
            BridgeReply.parse,
            self.others(),
            others_are_known=True,
        )
        self.epochs = {(part.corpus, reply.tag): reply.epoch for part, reply in replies}
        titles_of = {part: reply.named for part, reply in replies}
        self.bridges = bridges.build(first, bridges.counted(titles_of.values()), passages)
        if self.bridges is not None:
            leading = self.bridges.titles.keys()
            self._destinations = frozenset(part for part, titles in titles_of.items() if leading & titles.titles.keys())

    def others(self) -> set[ShardPart]:
        """The parts that nothing leads to, before and after `look`."""
        useful = self._titled if self.bridges is None else self._destinations
        nodes = [str(node.name) for node in self._shards.nodes()]
        return {ShardPart(corpus, node) for corpus in self._question.corpora for node in nodes} - useful
