"""The passages of an index that one question is ranked over: all, or those that a filter lets through.

Each passage of a selection has a row. The rows of all passages are their slots; those of chosen ones count these alone,
so that a filter that keeps few costs little. For one question: nothing of it may live when the index changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardqa.analysis import Query
from shardqa.gears_functions.index import bm25
from shardqa.gears_functions.index.bm25 import Kind
from shardqa.gears_functions.index.postings import Counts, Postings
from shardqa.statistics import CorpusStatistics

NOTHING = np.zeros(0)
A_LOOK_UP = 8  # places that can be tested one by one in the time of finding a passage's among all


@dataclass(frozen=True, slots=True)
class Chosen:
    """Passages that a filter lets through: living ones, of whole documents."""

    slots: NDArray[np.intp]  # rising
    mask: NDArray[np.bool_]  # the same, by slot
    document: NDArray[np.intp]  # by row: number among these documents
    passages_of: NDArray[np.int32]  # by that number: passages alive

    @classmethod
    def of(cls, mask: NDArray[np.bool_], document: NDArray[np.int32], passages_of: NDArray[np.int32]) -> Chosen:
        slots = np.flatnonzero(mask)
        numbers, new_numbers = np.unique(document[slots], return_inverse=True)
        return cls(slots, mask, new_numbers, passages_of[numbers])


class Field:
    """The postings of body or title in a selection; each term is looked up once."""

    def __init__(self, postings: Postings, mask: NDArray[np.bool_] | None, choice: Chosen | None) -> None:
        self._postings, self._mask, self._chosen = postings, mask, choice
        self._places: dict[str, NDArray[np.int32]] = {}
        self._counts: dict[str, Counts] = {}

    def term(self, term: str) -> Counts:
        """Returns (rows that hold the term, each once; how often each does)."""
        if term not in self._counts:
            self._counts[term] = self._in_rows(self._postings.counted(self._of(term)))
        return self._counts[term]

    def times(self, term: str) -> int:
        """Returns how often a term stands in all rows."""
        return self._postings.times(term) if self._mask is None else len(self._of(term))

    def pair(self, first: str, second: str) -> Counts:
        """Returns (rows that hold two terms in a row, each once; how often each does)."""
        return self._in_rows(
            self._postings.counted(self._postings.in_a_row(first, self._of(first), second, self._of(second)))
        )

    def _of(self, term: str) -> NDArray[np.int32]:
        if term not in self._places:
            self._places[term] = self._among(self._postings.places(term))
        return self._places[term]

    def _among(self, places: NDArray[np.int32]) -> NDArray[np.int32]:
        if self._mask is None or not len(places):
            return places
        if self._chosen is not None and len(self._chosen.slots) * A_LOOK_UP < len(places):
            return self._postings.inside(places, self._chosen.slots)
        return self._postings.among(places, self._mask)

    def _in_rows(self, counts: Counts) -> Counts:
        slots, tf = counts
        return (slots if self._chosen is None else np.searchsorted(self._chosen.slots, slots).astype(np.int32)), tf


@dataclass(frozen=True, slots=True)
class Signal:
    """What one term, or two in a row, add to the scores of the rows that hold them."""

    kind: Kind
    term: str  # of a pair both, with a blank between
    df: int  # passages of the whole corpus
    idf: float
    rows: NDArray[np.int32]  # each once
    tf: NDArray[np.int32]  # how often, by those rows
    gains: NDArray[np.float64]  # by those rows


@dataclass(frozen=True, slots=True)
class Selection:
    body: Field
    title: Field
    words: NDArray[np.int32]  # by row, as the next
    title_words: NDArray[np.int32]

    def scores(self, query: Query, statistics: CorpusStatistics) -> NDArray[np.float64]:
        """Returns the rows' scores, float64 [rows]: the sums of their signals, in order."""
        scores = np.zeros(len(self.words))
        for signal in self.signals(query, statistics):
            scores[signal.rows] += signal.gains
        return scores

    def signals(self, query: Query, statistics: CorpusStatistics) -> Iterator[Signal]:
        """Yields all that the score of words is the sum of: BM25 of body and title by term, then that of pairs."""
        for term in query.terms:
            yield self._signal(Kind.BODY, term, self.body.term(term), statistics)
            yield self._signal(Kind.TITLE, term, self.title.term(term), statistics)
        for pair in query.pairs:
            yield self._signal(Kind.PAIR, " ".join(pair), self.body.pair(*pair), statistics)

    def _signal(self, kind: Kind, term: str, counts: Counts, statistics: CorpusStatistics) -> Signal:
        """Most shards have no passage of most titles and pairs."""
        (rows, tf), df, (weight, b) = counts, statistics.df.get(term, 0), bm25.WEIGHTS[kind]
        lengths = self.title_words if kind is Kind.TITLE else self.words
        length = statistics.title_length if kind is Kind.TITLE else statistics.length
        idf, average = bm25.idf(df, statistics.passages), max(length, 1) / statistics.passages
        gains = weight * idf * bm25.bm25(tf, lengths[rows], average, b) if len(rows) else NOTHING
        return Signal(kind, term, df, idf, rows, tf, gains)
