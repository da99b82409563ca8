"""The passages of one corpus on one shard by slot, an entry of parallel arrays.

A removed passage leaves its slot dead until enough are dead to compact. One thread: the worker's loop.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa.analysis import Analysed
from shardqa.gears_functions.index.postings import NOBODY, Postings
from shardqa.gears_functions.index.vectors import Vectors

COMPACT_DEAD = 2_048  # dead slots before compaction is thought of: below, its cost is not worth the memory
COMPACT_SHARE = 0.5  # dead of all slots: each compaction (about 100 ns a word) is paid by as many removals


class PassageTable:
    def __init__(self) -> None:
        self.slots: dict[str, int] = {}  # passage key -> its slot
        self.numbers: dict[str, int] = {}  # document id -> its number
        self.body, self.title = Postings(), Postings()
        self.vectors = Vectors()
        self.keys: list[str] = []  # by slot, as all that follows
        self.fingerprints: list[int] = []  # hash of title and text, tells an unchanged passage
        self.digests: list[bytes] = []  # of title and text, which a vector is of
        self.length = 0  # words of all passages alive
        self.title_length = 0  # words of all their titles
        self.alive = array("b")  # 1, or 0 once removed
        self.document = array("i")  # number of its document
        self.words = array("i")  # of the text
        self.title_words = array("i")
        self.ends = array("i")  # last character of the document that it covers, plus 1
        self.passages_of = array("i")  # by document number: passages alive

    def living(self) -> NDArray[np.bool_]:
        """Returns for each slot whether it has a passage, bool [slots]."""
        return np.asarray(as_array(self.alive) != 0)

    def count_of_documents(self) -> int:
        return int(np.count_nonzero(as_array(self.passages_of)))

    def documents(self) -> list[str]:
        """Returns all documents that have passages."""
        return [document for document, number in self.numbers.items() if self.passages_of[number]]

    def characters(self) -> int:
        """Returns the number of characters of all documents, each up to the end of its last passage."""
        ends = np.zeros(len(self.passages_of), dtype=np.int64)
        living = self.living()
        np.maximum.at(ends, as_array(self.document)[living], as_array(self.ends)[living])
        return int(ends.sum())

    def count_of(self, document: str) -> int:
        number = self.numbers.get(document)
        return 0 if number is None else self.passages_of[number]

    def keys_of(self, document: str) -> list[str]:
        """Returns the keys of a document's passages, in no order."""
        if not self.count_of(document):
            return []
        slots = np.flatnonzero((as_array(self.document) == self.numbers[document]) & self.living())
        return [self.keys[slot] for slot in slots]

    def append(
        self, key: str, document: str, body: Analysed, head: Analysed, end: int, fingerprint: int, digest: bytes
    ) -> None:
        slot = self.slots[key] = len(self.keys)
        self.body.append(slot, (body.content, body.stop))
        self.title.append(slot, (head.content, head.stop))
        number = self.numbers.setdefault(document, len(self.numbers))
        if number == len(self.passages_of):
            self.passages_of.append(0)
        self.passages_of[number] += 1
        self.keys.append(key)
        self.fingerprints.append(fingerprint)
        self.digests.append(digest)
        self.alive.append(1)
        self.document.append(number)
        self.words.append(len(body.content) + len(body.stop))
        self.title_words.append(len(head.content) + len(head.stop))
        self.ends.append(end)
        self.length += self.words[slot]
        self.title_length += self.title_words[slot]

    def remove(self, key: str) -> bool:
        """Removes a passage; returns False where it was not there."""
        slot = self.slots.pop(key, None)
        if slot is None:
            return False
        self.vectors.remove(slot)
        self.alive[slot] = 0
        self.passages_of[self.document[slot]] -= 1
        self.length -= self.words[slot]
        self.title_length -= self.title_words[slot]
        dead = len(self.keys) - len(self.slots)
        if dead >= COMPACT_DEAD and dead >= COMPACT_SHARE * len(self.keys):
            self._compact()
        return True

    def _compact(self) -> None:
        """Drops dead slots and the documents that have no others."""
        alive = np.flatnonzero(as_array(self.alive))
        new_rows = np.full(len(self.keys), NOBODY, dtype=np.int32)
        new_rows[alive] = np.arange(len(alive), dtype=np.int32)
        self.body, self.title = self.body.compacted(new_rows), self.title.compacted(new_rows)
        names = list(self.numbers)
        old_documents = [self.document[slot] for slot in alive]
        self.numbers = {}
        self.document = array("i", [self.numbers.setdefault(names[n], len(self.numbers)) for n in old_documents])
        self.passages_of = array("i", np.bincount(as_array(self.document)).astype(np.int32).tobytes())
        self.keys = [self.keys[slot] for slot in alive]
        self.fingerprints = [self.fingerprints[slot] for slot in alive]
        self.digests = [self.digests[slot] for slot in alive]
        self.vectors.compacted(new_rows)
        self.slots = {key: slot for slot, key in enumerate(self.keys)}
        for name in ("words", "title_words", "ends"):
            setattr(self, name, array("i", as_array(getattr(self, name))[alive].tobytes()))
        self.alive = array("b", b"\1" * len(alive))


def as_array(values: array[int]) -> NDArray[Any]:
    """Returns the array as numpy's; that must be gone before the next append, since an exported array can't grow."""
    return np.frombuffer(values, values.typecode) if len(values) else np.zeros(0, values.typecode)
