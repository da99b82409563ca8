"""Bridges (shardqa/bridges.py) on one shard: which documents they lead to, and what a passage gains."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa.bridges import Bridges, NamedBy
from shardqa.gears_functions.index.passage_table import PassageTable, as_array
from shardqa.gears_functions.index.selection import Chosen
from shardqa.gears_functions.index.titles import Titles


@dataclass(frozen=True, slots=True)
class Lead:
    """A title, and the best of the first passages that name it."""

    title: str
    source: NamedBy


@dataclass(frozen=True, slots=True)
class Carried:
    title: str
    passage: str  # that names it
    score: float  # what it adds

    @classmethod
    def of(cls, lead: Lead, score: float, ceiling: float) -> Carried:
        """Returns what a bridge adds to a passage's `score`; `ceiling` is the first passage's."""
        return cls(lead.title, lead.source.passage, lead.source.share * (ceiling - score))

    def record(self) -> dict[str, Any]:
        return asdict(self)


def sources(crossings: Bridges, titles: Titles) -> dict[str, Lead]:
    """Returns the lead of each document whose title the first passages name, by document."""
    leads = dict[str, Lead]()
    for title in sorted(crossings.titles):
        for document in titles.bearers(title):
            carrier = crossings.best(title, document)
            if carrier is not None and (document not in leads or carrier.share > leads[document].source.share):
                leads[document] = Lead(title, carrier)
    return leads


def gains(
    scores: NDArray[np.float64], crossings: Bridges, table: PassageTable, titles: Titles, choice: Chosen | None
) -> dict[int, Carried]:
    """Returns what bridges add to the best passage of each document that they lead to, by row of the scores."""
    leads = {table.numbers[name]: lead for name, lead in sources(crossings, titles).items() if name in table.numbers}
    is_led_to = np.zeros(len(table.passages_of), dtype=np.bool_)
    is_led_to[list(leads)] = True
    slots = np.flatnonzero(is_led_to[as_array(table.document)] & (table.living() if choice is None else choice.mask))
    rows = slots if choice is None else np.searchsorted(choice.slots, slots)
    best = dict[int, tuple[float, str, int]]()  # by document: the least of (-score, key), and its row
    for slot, row, number in zip(slots.tolist(), rows.tolist(), as_array(table.document)[slots].tolist(), strict=True):
        candidate = (-float(scores[row]), table.keys[slot], row)
        best[number] = min(best.get(number, candidate), candidate)
    return {
        row: Carried.of(leads[number], -negative, crossings.ceiling)
        for number, (negative, _, row) in best.items()
        if -negative < crossings.ceiling
    }
