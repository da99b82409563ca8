"""Final answers kept in this process: the least recently used go when their memory is used up.

One asyncio loop owns a KeptAnswers.
"""

from collections import OrderedDict

from shardqa.answer import Asked

MEMORY_PER_JSON = 6
"""Bytes an Asked takes for each byte of its JSON (stored.py): 6.2 with one passage, 5.7 with 5 (tracemalloc)."""


class KeptAnswers:
    def __init__(self, megabytes: int) -> None:
        self._limit = megabytes * 1_000_000
        self._size = 0  # bytes, of all
        self._kept: OrderedDict[str, tuple[Asked, int]] = OrderedDict()  # and bytes, by ask: key; oldest use first

    def get(self, key: str) -> Asked | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        self._kept.move_to_end(key)
        return kept[0]

    def put(self, key: str, asked: Asked, json_bytes: int) -> None:
        """``json_bytes`` is the length of the answer's JSON, by which its memory is told."""
        self._drop(key)
        size = json_bytes * MEMORY_PER_JSON
        self._kept[key] = asked, size
        self._size += size
        while self._size > self._limit:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        _, size = self._kept.pop(key, (None, 0))
        self._size -= size
