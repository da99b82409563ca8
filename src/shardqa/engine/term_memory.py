"""The shards' numbers of a corpus' terms, kept while its epoch stands: known words need no first round.

The numbers of a term are exact for an epoch, and the engine follows epochs. They are kept by word, least used first to
go, with one row more for a shard's totals. Only numbers of shards that make terms as this process does, and none where
passages have vectors: their number changes within an epoch. One asyncio loop owns a TermMemory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shardqa.analysis import Query, fingerprint
from shardqa.statistics import CorpusStatistics

TOTALS = ""  # the row of the shards' totals: no term is empty
ROW_BYTES = 400  # of a word, beside its characters: entry, dict, key (sys.getsizeof)
CELL_BYTES = 280  # of a shard in it: a dict's slot, a tuple of four, numbers past 256


class WordCell(NamedTuple):
    """One shard's numbers of a word or a pair of words."""

    epoch: int
    df: int
    cf: int
    titled: int  # passages whose title holds it


class TotalsCell(NamedTuple):
    """One shard's numbers of a corpus, whatever the words."""

    epoch: int
    node: str
    statistics: CorpusStatistics  # without terms


@dataclass(frozen=True, slots=True)
class TermsReply:
    """A shard's numbers of a question's terms."""

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
        self._rows: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()  # (corpus, word) -> tag -> cell
        self.size = 0  # bytes, estimated

    def remember(self, corpus: str, terms: TermsReply) -> None:
        if not self._limit or terms.titled is None or terms.analysis != fingerprint() or terms.statistics.vectors:
            return
        numbers, epoch = terms.statistics, terms.epoch
        self._put(corpus, TOTALS, terms.tag, TotalsCell(epoch, terms.node, replace(numbers, df={}, cf={})))
        for word, df in numbers.df.items():
            cell = WordCell(epoch, df, numbers.cf.get(word, 0), terms.titled.get(word, 0))
            self._put(corpus, word, terms.tag, cell)
        while self.size > self._limit:
            (_, word), row = self._rows.popitem(last=False)
            self.size -= _bytes(word) + CELL_BYTES * len(row)

    def recall(self, corpus: str, epochs: Mapping[str, int], query: Query) -> list[TermsReply]:
        """The replies of those shards (by tag) whose numbers of all terms are known at these epochs."""
        rows = {name: self._used(corpus, name) for name in (TOTALS, *query.names)}
        replies = (_reply(tag, epoch, rows, query) for tag, epoch in epochs.items())
        return [reply for reply in replies if reply is not None]

    def _used(self, corpus: str, name: str) -> Mapping[str, Any]:
        row = self._rows.get((corpus, name))
        if row is None:
            return {}
        self._rows.move_to_end((corpus, name))
        return row

    def _put(self, corpus: str, word: str, tag: str, cell: WordCell | TotalsCell) -> None:
        row = self._rows.get((corpus, word))
        if row is None:
            row = self._rows[corpus, word] = {}
            self.size += _bytes(word)
        if tag not in row:
            self.size += CELL_BYTES
        row[tag] = cell
        self._rows.move_to_end((corpus, word))


def _reply(tag: str, epoch: int, rows: Mapping[str, Mapping[str, Any]], query: Query) -> TermsReply | None:
    """None where some of it is not known. A pair stands nowhere where one of its terms does not, known or not."""
    totals: TotalsCell | None = rows[TOTALS].get(tag)
    if totals is None or totals.epoch != epoch:
        return None
    words = {name: rows[name].get(tag) for name in query.names}
    cells: dict[str, WordCell] = {name: cell for name, cell in words.items() if cell and cell.epoch == epoch}
    if not all(term in cells for term in query.terms):
        return None
    df = {term: cells[term].df for term in query.terms}
    for first, second in query.pairs:
        name = f"{first} {second}"
        if name not in cells and df[first] and df[second]:
            return None
        df[name] = cells[name].df if name in cells else 0
    cf = {term: cells[term].cf for term in query.terms}
    titled = {term: cells[term].titled for term in query.terms if cells[term].titled}
    statistics = replace(totals.statistics, df=df, cf=cf)
    return TermsReply(totals.node, tag, epoch, statistics, titled, fingerprint())


def _bytes(word: str) -> int:
    return ROW_BYTES + 2 * len(word)
