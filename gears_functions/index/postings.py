"""Postings of one field (body or title) of a shard's passages, in memory.

All words of all passages stand in one stream, a passage's content words before its stop words. A term's postings are
its places in that stream, so tf, adjacency and the passage of each place are read off with numpy. Appending is cheap,
nothing is sorted or merged; removed passages stay until `compacted`. Owned by an Index; one thread.

Rejected: postings of pairs (ten times the vocabulary for one feature); CSR matrices (an update copies all of it).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA

Counts: TypeAlias = "tuple[NDArray[np.int32], NDArray[np.int32]]"  # slots, each once, and how often it stands there

NEAR = 8  # terms that are near another
NOBODY = -1  # owner of the places between passages
NOWHERE = np.zeros(0, dtype=np.int32)


class Postings:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # term -> its number
        self._terms: list[str] = []  # by number
        self._places: list[array[int]] = []  # by term number: places in the stream, rising
        self._stream = array("i")  # term number at each place, NOBODY between parts
        self._owners = array("i")  # slot of the passage at each place
        self._starts = array("i", [0])  # by slot: its first place; one more for the end

    def append(self, slot: int, parts: Sequence[Sequence[str]]) -> None:
        """Adds the words of the next slot; the last word of a part and the first of the next are not adjacent."""
        numbers, places, stream, first = self._numbers, self._places, self._stream, len(self._stream)
        for words in parts:
            for place, word in enumerate(words, len(stream)):
                number = numbers.setdefault(word, len(places))
                if number == len(places):
                    self._terms.append(word)
                    places.append(array("i"))
                places[number].append(place)
                stream.append(number)
            stream.append(NOBODY)
        self._owners.extend([slot] * (len(stream) - first))
        self._starts.append(len(stream))

    def first_part(self, slot: int) -> list[str]:
        """Returns the words of a slot's first part, in order."""
        stretch = self._stream[self._starts[slot] : self._starts[slot + 1]]
        return [self._terms[number] for number in stretch[: stretch.index(NOBODY)]]

    def term(self, term: str) -> Counts:
        """Returns how often each slot has a term, removed passages included."""
        return self.counted(self.places(term))

    def pair(self, first: str, second: str) -> Counts:
        """Returns how often each slot has two terms in a row, removed passages included."""
        return self.counted(self.in_a_row(first, self.places(first), second, self.places(second)))

    def times(self, term: str) -> int:
        """Returns how often a term stands in all passages, removed ones included."""
        number = self._numbers.get(term)
        return 0 if number is None else len(self._places[number])

    def near(self, term: str, room: int) -> list[str]:
        """Returns terms of which at most `room` letters differ, the first one apart, removed passages' included."""
        same = [other for other in self._terms if other[:1] == term[:1]]
        found = process.extract(term, same, scorer=OSA.distance, score_cutoff=room, limit=NEAR)
        return [other for other, distance, _ in found if distance]

    def places(self, term: str) -> NDArray[np.int32]:
        """Returns the places of a term in the stream, rising."""
        number = self._numbers.get(term)
        # A view, never kept: an array can't grow while it is exported.
        return NOWHERE if number is None else np.frombuffer(self._places[number], dtype=np.int32)

    def among(self, places: NDArray[np.int32], mask: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Returns the places in the passages of `mask` (by slot)."""
        return np.asarray(places[mask[self._owners_of(places)]])

    def inside(self, places: NDArray[np.int32], slots: NDArray[np.intp]) -> NDArray[np.int32]:
        """Returns those places that lie in a few slots, rising; it looks up each slot and does not touch all places."""
        starts = np.frombuffer(self._starts, dtype=np.int32)
        first = np.searchsorted(places, starts[slots])
        count = np.searchsorted(places, starts[slots + 1]) - first
        before = np.cumsum(count) - count
        return np.asarray(places[np.repeat(first - before, count) + np.arange(count.sum())])

    def in_a_row(
        self, first: str, before: NDArray[np.int32], second: str, after: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Returns those places of the first term that one of the second follows."""
        if not len(before) or not len(after):
            return NOWHERE
        stream = np.frombuffer(self._stream, dtype=np.int32)
        if len(before) <= len(after):
            places = before[stream[before + 1] == self._numbers[second]]
        else:
            inner = after[after > 0]
            places = inner[stream[inner - 1] == self._numbers[first]] - 1
        return np.asarray(places, dtype=np.int32)

    def counted(self, places: NDArray[np.int32]) -> Counts:
        if not len(places):
            return NOWHERE, NOWHERE
        owners = self._owners_of(places)
        changes = np.flatnonzero(owners[1:] != owners[:-1])
        edges = np.empty(len(changes) + 2, dtype=np.int64)  # where each owner's places begin, and the end
        edges[0], edges[-1] = 0, len(owners)
        np.add(changes, 1, out=edges[1:-1])
        return owners[edges[:-1]], (edges[1:] - edges[:-1]).astype(np.int32)

    def _owners_of(self, places: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.asarray(np.frombuffer(self._owners, dtype=np.int32)[places])

    def compacted(self, slots: NDArray[np.int32]) -> Postings:
        """Returns a copy without removed passages, in O(words); `slots` has the new slot of each old one, or NOBODY."""
        owners = slots[np.frombuffer(self._owners, dtype=np.int32)] if len(self._owners) else np.zeros(0, np.int32)
        is_alive = owners != NOBODY
        stream = np.frombuffer(self._stream, dtype=np.int32)[is_alive] if len(is_alive) else np.zeros(0, np.int32)
        order = np.argsort(stream, kind="stable").astype(np.int32)
        bounds = np.searchsorted(stream[order], np.arange(len(self._places) + 1))
        copy = Postings()
        copy._stream = array("i", stream.tobytes())
        copy._owners = array("i", owners[is_alive].astype(np.int32).tobytes())
        starts = np.searchsorted(owners[is_alive], np.arange(np.count_nonzero(slots != NOBODY) + 1))
        copy._starts = array("i", starts.astype(np.int32).tobytes())
        for term, number in self._numbers.items():
            if bounds[number] < bounds[number + 1]:
                copy._numbers[term] = number
        copy._renumber(stream, order, bounds)
        return copy

    def _renumber(self, stream: NDArray[np.int32], order: NDArray[np.int32], bounds: NDArray[np.int64]) -> None:
        """Numbers the terms that are left from 0 and takes their places from `order`."""
        numbers = np.full(len(bounds), NOBODY, dtype=np.int32)
        for new, (term, old) in enumerate(list(self._numbers.items())):
            numbers[old] = new
            self._numbers[term] = new
            self._terms.append(term)
            self._places.append(array("i", order[bounds[old] : bounds[old + 1]].tobytes()))
        self._stream = array("i", numbers[stream].tobytes())
