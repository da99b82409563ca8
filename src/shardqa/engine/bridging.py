"""Asks the shards for the documents whose titles stand in a question's first passages (shardqa/bridges.py)."""

import json
from collections.abc import Sequence
from typing import Any

from shardqa import bridges
from shardqa.bridges import Bridges
from shardqa.description import record_of
from shardqa.engine.connected import came_and_failed
from shardqa.engine.connections import Shards


class Bridge:
    """One question's: what leads on, who has it, and who was asked in vain."""

    def __init__(self, masters: Shards, corpus: str, titled: frozenset[str], view: str) -> None:
        self._masters = masters
        self._corpus = corpus
        self._view = view
        self._titled = titled  # nodes whose documents have titles: no other is asked
        self.epochs: dict[str, int] = {}  # by tag, of those that were asked
        self.failed: list[str] = []
        self.found: Bridges | None = None
        self.leads_to = frozenset[str]()  # nodes that hold a document of those

    async def look(self, ranks: Sequence[tuple[str, dict[str, Any]]], passages: int) -> None:
        """From the shards' lists, with the words of their first passages, in a corpus of so many passages."""
        first = bridges.first_passages((reply["passages"], reply.get("words", ())) for _, reply in ranks)
        if not first:
            return
        command = ["RG.TRIGGER", "Bridge", self._corpus, json.dumps([one.words for one in first])]
        command += [self._view] if self._view else []
        replies, self.failed = came_and_failed(
            await self._masters.everywhere(*command, but=self.others()), record_of, others_are_known=True
        )
        self.epochs = {str(reply["tag"]): int(reply["epoch"]) for _, reply in replies}
        told = {node: bridges.NamedTitles.parse(reply) for node, reply in replies}
        self.found = bridges.build(first, bridges.counted(told.values()), passages)
        if self.found is not None:
            named = self.found.titles.keys()
            self.leads_to = frozenset(node for node, of in told.items() if named & of.titles.keys())

    def others(self) -> set[str]:
        """Nodes that nothing leads to, before and after `look`."""
        wanted = self._titled if self.found is None else self.leads_to
        return {str(node.name) for node in self._masters.nodes()} - wanted
