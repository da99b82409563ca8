"""Vectors of a shard's passages, in memory: how near each is to a question's vector, by an exact scan.

Products are sums of whole numbers below 2^24, exact in float32 in any order, so that a passage is as near on every
shard. Vectors of different encoders are never compared: each encoder has rows of its own. A scan takes 512 rows at a
time to float32: it costs a quarter more time than a float32 copy of all, which would be four times the memory.
Rejected: an index of neighbours (usearch, hnswlib). It finds nearly all, not all, so that what is found depends on how
a corpus is cut; and the sum with the lexical score needs every passage's own number. Owned by an Index; one thread.
"""

import numpy as np
from numpy.typing import NDArray

from shardqa.gears_functions.index.postings import NOBODY
from shardqa.models.embedding import WIDTH, cosine

COSINE_WEIGHT = 1.5  # what a cosine of 1 adds to a score, in sums of the question's idf; all its words add about 2
COVERED = 2.0  # score of a passage with all of the question's words, in sums of their idf
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
    """Vectors of all encoders; a passage has one vector at most."""

    def __init__(self) -> None:
        self._of: dict[str, _Rows] = {}  # by the encoder's id

    def put(self, slot: int, encoder: str, vector: bytes) -> None:
        self.remove(slot)
        self._of.setdefault(encoder, _Rows()).put(slot, np.frombuffer(vector, dtype=np.int8))

    def remove(self, slot: int) -> None:
        for encoder, rows in list(self._of.items()):
            rows.remove(slot)
            if not len(rows):
                del self._of[encoder]

    def has(self, slot: int, encoder: str) -> bool:
        rows = self._of.get(encoder)
        return rows is not None and slot in rows

    def slots(self, encoder: str) -> NDArray[np.int32]:
        """Returns the passages that have a vector of this encoder, in no order."""
        rows = self._of.get(encoder)
        return np.zeros(0, dtype=np.int32) if rows is None else rows.slots()

    def counts(self) -> dict[str, int]:
        """Returns the number of vectors by encoder."""
        return {encoder: len(rows) for encoder, rows in self._of.items()}

    def cosines(self, encoder: str, question: bytes, slots: int) -> NDArray[np.float64]:
        """Returns the cosines of the passages of all slots, float64 [slots]; NaN without a vector of this encoder."""
        cosines = np.full(slots, np.nan)
        rows = self._of.get(encoder)
        if rows is not None:
            of, products = rows.products(np.frombuffer(question, dtype=np.int8))
            cosines[of] = cosine(products)
        return cosines

    def compacted(self, slots: NDArray[np.int32]) -> None:
        """Renumbers the slots by `slots`, which has the new one of each, or NOBODY where its passage is gone."""
        for rows in self._of.values():
            rows.renumber(slots)


class _Rows:
    """Vectors of one encoder, in no order and without gaps."""

    def __init__(self) -> None:
        self._vectors = np.zeros((FIRST_ROWS, WIDTH), dtype=np.int8)
        self._slots = np.zeros(FIRST_ROWS, dtype=np.int32)
        self._row_of = np.full(FIRST_ROWS, NOBODY, dtype=np.int32)  # by slot
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, slot: int) -> bool:
        return slot < len(self._row_of) and self._row_of[slot] != NOBODY

    def slots(self) -> NDArray[np.int32]:
        return self._slots[: self._count]

    def put(self, slot: int, vector: NDArray[np.int8]) -> None:
        """Adds the vector of a slot that has none."""
        if self._count == len(self._vectors):
            more = len(self._vectors) // GROWTH
            self._vectors = np.concatenate([self._vectors, np.zeros((more, WIDTH), dtype=np.int8)])
            self._slots = np.concatenate([self._slots, np.zeros(more, dtype=np.int32)])
        if slot >= len(self._row_of):
            more = slot + 1 + slot // GROWTH - len(self._row_of)
            self._row_of = np.concatenate([self._row_of, np.full(more, NOBODY, dtype=np.int32)])
        self._vectors[self._count], self._slots[self._count], self._row_of[slot] = vector, slot, self._count
        self._count += 1

    def remove(self, slot: int) -> None:
        """Removes a slot's vector; the last row takes its place."""
        if slot not in self:
            return
        row, self._row_of[slot] = self._row_of[slot], NOBODY
        self._count -= 1
        if row != self._count:
            self._vectors[row], self._slots[row] = self._vectors[self._count], self._slots[self._count]
            self._row_of[self._slots[row]] = row

    def products(self, question: NDArray[np.int8]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Returns (slots [n], their products with the question's vector [n], whole numbers)."""
        count = self._count
        products = np.empty(count, dtype=np.float32)
        target, block = question.astype(np.float32), np.empty((BLOCK, WIDTH), dtype=np.float32)
        for first in range(0, count, BLOCK):
            rows = min(BLOCK, count - first)
            np.copyto(block[:rows], self._vectors[first : first + rows])
            np.dot(block[:rows], target, out=products[first : first + rows])
        return self.slots(), products

    def renumber(self, slots: NDArray[np.int32]) -> None:
        for old in [slot for slot in self.slots().tolist() if slots[slot] == NOBODY]:
            self.remove(old)
        own = self.slots()
        own[:] = slots[own]
        self._row_of = np.full(int(own.max(initial=0)) + 1, NOBODY, dtype=np.int32)
        self._row_of[own] = np.arange(self._count, dtype=np.int32)
