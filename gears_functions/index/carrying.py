"""Bridges (shardqa/bridges.py) on one shard: which documents they lead to, and what a passage gains."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shardqa.bridges import Bridges, NamedBy
from shardqa.gears_functions.index.titles import Titles


@dataclass(frozen=True, slots=True)
class Lead:
    """A title, and the first passage that carries most."""

    title: str
    source: NamedBy


@dataclass(frozen=True, slots=True)
class Carried:
    title: str
    passage: str  # that names it
    score: float  # what it adds

    @classmethod
    def of(cls, lead: Lead, score: float, ceiling: float) -> Carried:
        """Scores a passage that lies below the ceiling."""
        return cls(lead.title, lead.source.passage, lead.source.share * (ceiling - score))

    def record(self) -> dict[str, Any]:
        return asdict(self)


def sources(crossings: Bridges, titles: Titles) -> dict[str, Lead]:
    """Returns what carries a title most, by document that bears it."""
    led = dict[str, Lead]()
    for title in sorted(crossings.titles):
        for document in titles.bearers(title):
            carrier = crossings.best(title, document)
            if carrier is not None and (document not in led or carrier.share > led[document].source.share):
                led[document] = Lead(title, carrier)
    return led
