"""What lower layers of split models said of texts, within so many bytes; least recently used goes first.

What was computed before anybody asked takes only room that is free, and makes room first.

Threads that run models share it. A key says which model it was and which tokens, so nothing is ever out of date: what
a model or a text that is gone has left behind is asked for no more, and goes in its turn.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeAlias

from shardqa.tensors import Array

Arrays: TypeAlias = tuple[Array, ...]

ENTRY_BYTES = 500  # of an entry beside its numbers: heads of two arrays, a tuple, a key, its place (tracemalloc)


class ArrayCache:
    def __init__(self, limit: int) -> None:
        """`limit`: bytes; 0 keeps nothing."""
        self._limit = limit
        self._lock = threading.Lock()  # of all below
        self._entries: OrderedDict[bytes, Arrays] = OrderedDict()  # oldest use first
        self._bytes = self._hits = self._misses = self._evictions = self._encoded = self._read_back = 0

    def get(self, key: bytes) -> Arrays | None:
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self._misses += 1
                return None
            self._hits += 1
            self._entries.move_to_end(key)
            return found

    def has_room(self, size: int) -> bool:
        """Whether an entry of so many bytes fits beside all others."""
        with self._lock:
            return self._bytes + size + ENTRY_BYTES <= self._limit

    def peek(self, key: bytes) -> Arrays | None:
        """Of the background: no question asks, so it is no use."""
        with self._lock:
            return self._entries.get(key)

    def offer(self, key: bytes, arrays: Arrays, is_read_back: bool = False) -> bool:
        """Of the background: puts what nobody has asked for yet, where there is room; whether it is kept now."""
        size = _bytes(arrays)
        with self._lock:
            if key in self._entries:  # a question was faster
                return True
            if self._bytes + size > self._limit:
                return False
            self._entries[key] = arrays
            self._entries.move_to_end(key, last=False)
            self._bytes += size
            self._read_back += is_read_back
            self._encoded += not is_read_back
            return True

    def forget(self, keys: Iterable[bytes]) -> None:
        with self._lock:
            for key in keys:
                if (known := self._entries.pop(key, None)) is not None:
                    self._bytes -= _bytes(known)

    def put(self, key: bytes, arrays: Arrays) -> None:
        """The arrays are the cache's from then on. Nothing where they are larger than all that may be kept."""
        size = _bytes(arrays)
        if size > self._limit:
            return
        with self._lock:
            known = self._entries.pop(key, None)
            if known is not None:  # another thread computed them, too
                self._bytes -= _bytes(known)
            self._entries[key] = arrays
            self._bytes += size
            while self._bytes > self._limit:
                self._bytes -= _bytes(self._entries.popitem(last=False)[1])
                self._evictions += 1

    def numbers(self) -> dict[str, int]:
        """Of states, for INFO; nothing while nothing was asked for or encoded."""
        with self._lock:
            if not (self._hits or self._misses or self._encoded or self._read_back):
                return {}
            return {
                "states_kept": len(self._entries),
                "states_bytes": self._bytes,
                "states_limit": self._limit,
                "states_hits": self._hits,
                "states_misses": self._misses,
                "states_evictions": self._evictions,
                "states_encoded": self._encoded,
                "states_read_back": self._read_back,
            }


def _bytes(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays) + ENTRY_BYTES
