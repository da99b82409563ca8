"""What each shard told of a corpus' terms, kept while its epoch stands: a question of known words needs no first round.

The numbers of a term are exact for an epoch, and the engine follows epochs. They are kept by word, least used first to
go, with one row more for a shard's totals. Only numbers of shards that make terms as this process does, and none where
passages have vectors: their number changes within an epoch. One asyncio loop owns a TermMemory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from shardqa.analysis import Query, fingerprint
from shardqa.statistics import COUNTS, CorpusStatistics

TOTALS = ""  # the row of the shards' totals: no term is empty
ROW_BYTES = 400  # of a word, beside its characters: entry, dict, key (sys.getsizeof)
CELL_BYTES = 280  # of a shard in it: a dict's slot, a tuple of four, numbers past 256

Cell: TypeAlias = tuple[Any, ...]  # epoch, then: df, cf, titles of a term; or node and COUNTS


@dataclass(frozen=True, slots=True)
class TermsReply:
    """What a shard tells of a question's terms."""

    node: str
    tag: str
    epoch: int
    statistics: CorpusStatistics
    titled: Mapping[str, int] | None  # passages by term that their title holds; None: it does not say
    analysis: str = ""  # how it makes terms

    @classmethod
    def parse(cls, node: str, reply: dict[str, Any]) -> TermsReply:
        statistics, titled = CorpusStatistics.parse(reply), reply.get("titled")
        return cls(node, str(reply["tag"]), int(reply["epoch"]), statistics, titled, str(reply.get("analysis", "")))

    @property
    def has_none(self) -> bool:
        """Whether no passage of the shard can rank by words: none holds one of the question's, in text or title."""
        return self.titled is not None and not any(self.statistics.df.values()) and not any(self.titled.values())


class TermMemory:
    def __init__(self, megabytes: int) -> None:
        self._limit = megabytes * 1_000_000
        self._rows: OrderedDict[tuple[str, str], dict[str, Cell]] = OrderedDict()  # (corpus, word) -> tag -> cell
        self.size = 0  # bytes, estimated

    def remember(self, corpus: str, told: TermsReply) -> None:
        if not self._limit or told.titled is None or told.analysis != fingerprint() or told.statistics.vectors:
            return
        numbers, epoch = told.statistics, told.epoch
        self._put(corpus, TOTALS, told.tag, (epoch, told.node, *(getattr(numbers, name) for name in COUNTS)))
        for word, df in numbers.df.items():
            cell = (epoch, df, numbers.cf.get(word, 0), told.titled.get(word, 0))
            self._put(corpus, word, told.tag, cell)
        while self.size > self._limit:
            (_, word), row = self._rows.popitem(last=False)
            self.size -= _bytes(word) + CELL_BYTES * len(row)

    def recall(self, corpus: str, epochs: Mapping[str, int], query: Query) -> list[TermsReply]:
        """What those shards would say that have told all of it at these epochs (by tag)."""
        rows = {name: self._used(corpus, name) for name in (TOTALS, *query.names)}
        told = [_told(tag, epoch, rows, query) for tag, epoch in epochs.items()]
        return [one for one in told if one is not None]

    def _used(self, corpus: str, name: str) -> Mapping[str, Cell]:
        row = self._rows.get((corpus, name))
        if row is None:
            return {}
        self._rows.move_to_end((corpus, name))
        return row

    def _put(self, corpus: str, word: str, tag: str, cell: Cell) -> None:
        row = self._rows.get((corpus, word))
        if row is None:
            row = self._rows[corpus, word] = {}
            self.size += _bytes(word)
        if tag not in row:
            self.size += CELL_BYTES
        row[tag] = cell
        self._rows.move_to_end((corpus, word))


def _told(tag: str, epoch: int, rows: Mapping[str, Mapping[str, Cell]], query: Query) -> TermsReply | None:
    """None where some of it is not known. A pair stands nowhere where one of its terms does not, told or not."""
    cells = {name: cell for name, row in rows.items() if (cell := row.get(tag)) is not None and cell[0] == epoch}
    if TOTALS not in cells or not all(term in cells for term in query.terms):
        return None
    _, node, *counts = cells[TOTALS]
    df = {term: cells[term][1] for term in query.terms}
    for first, second in query.pairs:
        name = f"{first} {second}"
        if name not in cells and df[first] and df[second]:
            return None
        df[name] = cells[name][1] if name in cells else 0
    cf = {term: cells[term][2] for term in query.terms}
    titled = {term: cells[term][3] for term in query.terms if cells[term][3]}
    statistics = CorpusStatistics(**dict(zip(COUNTS, counts, strict=True)), df=df, cf=cf)
    return TermsReply(node, tag, epoch, statistics, titled, fingerprint())


def _bytes(word: str) -> int:
    return ROW_BYTES + 2 * len(word)
