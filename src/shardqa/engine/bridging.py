"""Asks the shards for the documents whose titles stand in a question's first passages (shardqa/bridges.py)."""

from collections.abc import Sequence

import orjson

from shardqa import bridges
from shardqa.bridges import Bridges, FirstPassage
from shardqa.description import record_of
from shardqa.engine.connections import Argument, Shards, values_and_failures
from shardqa.question import Question


class Bridge:
    """The titles that lead on from one question's first passages, and the nodes that were asked for them."""

    def __init__(self, shards: Shards, question: Question, titled: frozenset[str]) -> None:
        self._shards = shards
        self._question = question
        self._titled = titled  # nodes whose documents have titles: no other is asked
        self._destinations = frozenset[str]()  # nodes that hold a document which a title leads to
        self.epochs: dict[str, int] = {}  # by tag, of those that were asked
        self.failed: list[str] = []
        self.bridges: Bridges | None = None

    async def look(self, first: Sequence[FirstPassage], passages: int) -> None:
        """Follows the words of the first passages, in a corpus of so many passages."""
        if not first:
            return
        command: list[Argument] = [
            "RG.TRIGGER",
            "Bridge",
            self._question.corpus,
            orjson.dumps([passage.words for passage in first]),
        ]
        command += [self._question.view] if self._question.view else []
        replies, self.failed = values_and_failures(
            await self._shards.everywhere(*command, but=self.others()), record_of, others_are_known=True
        )
        self.epochs = {str(reply["tag"]): int(reply["epoch"]) for _, reply in replies}
        named = {node: bridges.NamedTitles.parse(reply) for node, reply in replies}
        self.bridges = bridges.build(first, bridges.counted(named.values()), passages)
        if self.bridges is not None:
            leading = self.bridges.titles.keys()
            self._destinations = frozenset(node for node, titles in named.items() if leading & titles.titles.keys())

    def others(self) -> set[str]:
        """Nodes that nothing leads to, before and after `look`."""
        useful = self._titled if self.bridges is None else self._destinations
        return {str(node.name) for node in self._shards.nodes()} - useful
