"""What bridges (shardqa/bridges.py) do on one shard: which documents they lead to, and what a passage gains."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    def of(cls, named: Lead, score: float, ceiling: float) -> Carried:
        """Of a passage below the ceiling."""
        return cls(named.title, named.source.passage, named.source.share * (ceiling - score))

    def record(self) -> dict[str, Any]:
        return asdict(self)


def sources(found: Bridges, titles: Titles) -> dict[str, Lead]:
    """By document that bears one of the titles: what carries it most."""
    led = dict[str, Lead]()
    for title in sorted(found.titles):
        for document in titles.bearers(title):
            source = found.best(title, document)
            if source is not None and (document not in led or source.share > led[document].source.share):
                led[document] = Lead(title, source)
    return led
