"""Vectors of a shard's passages, in memory: how near each is to a question's vector, by an exact scan.

A passage is as near as the nearest of its vectors: that of its whole, which comes first, and those of its parts. Seven
in ten passages are so far as a whole that their parts are not looked at, which finds the same in half the time.

Products are sums of whole numbers below 2^24, exact in float32 in any order, so that a passage is as near on every
shard. Vectors of different encoders are never compared: each encoder has rows of its own. A scan takes 512 rows at a
time to float32, which is an eighth of the memory of a float32 copy of all.
Rejected: an index of neighbours (usearch, hnswlib). It finds nearly all, not all, so that what is found depends on how
a corpus is cut; and the sum with the lexical score needs every passage's own number. Owned by an Index; one thread.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa.gears_functions.index.postings import NOBODY
from shardqa.models.embedding import HALF, LEVELS, STEPS, WIDTH
from shardqa.statistics import QuestionVector

COSINE_WEIGHT = 1.5  # what a cosine of 1 adds to a score, in sums of the question's idf; all its words add about 2
COVERED = 2.0  # score of a passage with all of the question's words, in sums of their idf
FLOOR = 0.1  # cosine of a passage's whole below which its parts are not looked at: of few questions' own passages
BLOCK = 512  # rows turned to float32 at a time: they stay in the processor's cache
FIRST_ROWS = 256
GROWTH = 8  # rows grow by an eighth when they are full


def word_score(words: NDArray[np.float64], idf: float) -> NDArray[np.float64]:
    """Returns the part of a score that words have beside nearness: `words` times the share of `idf` that they are.

    So a passage with most of the question's weight in words leads, while a few common words count for little against
    what a passage means. A power of 1.5 or 3, or the sum of reciprocal ranks, found less (docs/benchmarks.md).
    """
    return words * (words / (COVERED * idf)) if idf else words


def near_score(cosines: NDArray[np.float64], idf: float) -> NDArray[np.float64]:
    """Returns what nearness adds to a score; never takes from it, so that shared words still count.

    It grows with the sum of the question's `idf`, as the most that words can add does: so many unknown or common words
    in a question don't drown what it means.
    """
    return COSINE_WEIGHT * idf * np.maximum(cosines, 0.0)


def fused(words: NDArray[np.float64], cosines: NDArray[np.float64], idf: float) -> NDArray[np.float64]:
    """Returns the scores of words and nearness together; NaN stands for a passage without a vector."""
    return word_score(words, idf) + near_score(filled(cosines, words, idf), idf)


def filled(cosines: NDArray[np.float64], words: NDArray[np.float64], idf: float) -> NDArray[np.float64]:
    """Returns the cosines; where there is none, the share of the question that a passage's `words` (their score) cover.

    A document that was put in a moment ago is so found beside those that have vectors.
    """
    return np.where(np.isnan(cosines), words / (COVERED * idf) if idf else 0.0, cosines)


class Vectors:
    """Vectors of all encoders; a passage has those of one at most."""

    def __init__(self) -> None:
        self._of: dict[str, _Rows] = {}  # by the encoder's id

    def put(self, slot: int, encoder: str, vectors: bytes) -> None:
        self.remove(slot)
        self._of.setdefault(encoder, _Rows()).put(slot, np.frombuffer(vectors, dtype=np.uint8).reshape(-1, HALF))

    def remove(self, slot: int) -> None:
        for encoder, rows in list(self._of.items()):
            rows.remove(slot)
            if not len(rows):
                del self._of[encoder]

    def has(self, slot: int, encoder: str) -> bool:
        rows = self._of.get(encoder)
        return rows is not None and slot in rows

    def slots(self, encoder: str) -> NDArray[np.int32]:
        """Returns the passages that have vectors of this encoder."""
        rows = self._of.get(encoder)
        return np.zeros(0, dtype=np.int32) if rows is None else rows.slots()

    def counts(self) -> dict[str, int]:
        """Returns how many passages have vectors, by encoder."""
        return {encoder: len(rows) for encoder, rows in self._of.items()}

    def cosines(self, encoder: str, question: bytes, slots: int) -> NDArray[np.float64]:
        """Returns the cosines of the passages of all slots, float64 [slots]; NaN without a vector of this encoder."""
        cosines = np.full(slots, np.nan)
        rows = self._of.get(encoder)
        if rows is not None:
            of, best = rows.best(np.frombuffer(question, dtype=np.int8))
            cosines[of] = best
        return cosines

    def cosine(self, slot: int, near: QuestionVector | None, slots: int) -> float | None:
        """Returns the cosine of one slot's passage; None where it, or the question, has no vector."""
        if near is None or not self.has(slot, near.encoder):
            return None
        return float(self.cosines(near.encoder, near.vector, slots)[slot])

    def compacted(self, slots: NDArray[np.int32]) -> None:
        """Renumbers the slots by `slots`, which has the new one of each, or NOBODY where its passage is gone."""
        for rows in self._of.values():
            rows.renumber(slots)


class _Rows:
    """Vectors of one encoder. Those of a slot stand side by side; a removed slot's rows are dead until enough are."""

    def __init__(self) -> None:
        self._vectors = np.zeros((FIRST_ROWS, HALF), dtype=np.uint8)
        self._lengths = np.zeros(FIRST_ROWS)  # of those vectors, by row
        self._ranges = np.full((FIRST_ROWS, 2), NOBODY, dtype=np.int32)  # by slot: its first row, and the one behind
        self._end = 0  # of the rows in use
        self._living = 0  # rows
        self._passages = 0

    def __len__(self) -> int:
        return self._passages

    def __contains__(self, slot: int) -> bool:
        return slot < len(self._ranges) and self._ranges[slot, 0] != NOBODY

    def slots(self) -> NDArray[np.int32]:
        return np.flatnonzero(self._ranges[:, 0] != NOBODY).astype(np.int32)

    def put(self, slot: int, vectors: NDArray[np.uint8]) -> None:
        """Adds the vectors of a slot that has none."""
        first, end = self._end, self._end + len(vectors)
        self._vectors, self._ranges = _with_room(self._vectors, end), _with_room(self._ranges, slot + 1, NOBODY)
        self._vectors[first:end], self._ranges[slot] = vectors, (first, end)
        self._lengths = _with_room(self._lengths, end)
        levels = _levels(vectors, np.empty((len(vectors), WIDTH), dtype=np.float32))
        self._lengths[first:end] = np.linalg.norm(2 * levels - (LEVELS - 1), axis=1)
        self._end, self._living, self._passages = end, self._living + len(vectors), self._passages + 1

    def remove(self, slot: int) -> None:
        if slot not in self:
            return
        first, end = self._ranges[slot].tolist()
        self._ranges[slot] = NOBODY
        self._living, self._passages = self._living - (end - first), self._passages - 1
        if self._end - self._living > max(FIRST_ROWS, self._living):
            self.renumber(np.arange(len(self._ranges), dtype=np.int32))

    def best(self, question: NDArray[np.int8]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Returns (slots [n], the cosine of each one's nearest vector with the question's [n])."""
        slots = self.slots()
        cosines = self._cosines(self._ranges[slots, 0], question)
        near = np.flatnonzero(cosines >= FLOOR)
        if len(near):
            rows, starts, _ = _rows_of(self._ranges[slots[near]])
            cosines[near] = np.maximum.reduceat(self._cosines(rows, question), starts)
        return slots, cosines

    def _cosines(self, rows: NDArray[np.integer[Any]], question: NDArray[np.int8]) -> NDArray[np.float64]:
        products, target = np.empty(len(rows), dtype=np.float32), question.astype(np.float32)
        block = np.empty((BLOCK, WIDTH), dtype=np.float32)
        for first in range(0, len(rows), BLOCK):
            some = self._vectors[rows[first : first + BLOCK]]
            np.dot(_levels(some, block), target, out=products[first : first + len(some)])
        cosines: NDArray[np.float64] = (2 * products - (LEVELS - 1) * target.sum()) / (STEPS * self._lengths[rows])
        return cosines

    def renumber(self, slots: NDArray[np.int32]) -> None:
        """Gives each slot its new number, and drops what is dead."""
        old = self.slots()
        old = old[slots[old] != NOBODY]
        new = slots[old]
        rows, starts, ends = _rows_of(self._ranges[old])
        self._vectors, self._lengths = self._vectors[rows], self._lengths[rows]
        self._ranges = np.full((int(new.max(initial=0)) + 1, 2), NOBODY, dtype=np.int32)
        self._ranges[new] = np.stack([starts, ends], axis=1)
        self._end, self._living, self._passages = len(rows), len(rows), len(new)


def _levels(vectors: NDArray[np.uint8], block: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the levels of vectors [n, HALF], [n, WIDTH], in a block's memory. Twice one less 15 is the number."""
    levels = block[: len(vectors)]
    levels[:, :HALF], levels[:, HALF:] = vectors & (LEVELS - 1), vectors >> 4
    return levels


def _rows_of(ranges: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Returns all rows of ranges [n, 2], and where each range begins and ends among them."""
    counts = ranges[:, 1] - ranges[:, 0]
    ends = np.cumsum(counts, dtype=np.int64)
    starts = ends - counts
    return np.repeat(ranges[:, 0] - starts, counts) + np.arange(counts.sum()), starts, ends


def _with_room(array: NDArray[Any], rows: int, filling: int = 0) -> NDArray[Any]:
    """Returns the array, or a longer copy of it with `rows` at least."""
    if rows <= len(array):
        return array
    more = np.full((rows + rows // GROWTH - len(array), *array.shape[1:]), filling, dtype=array.dtype)
    return np.concatenate([array, more])
