"""The messages between a worker and its interpreters: values, and in place of what can't travel its number.

Either end keeps such objects for the other one until that has dropped its last reference. The numbers of those come
along with the next message.
"""

from __future__ import annotations

import io
import pickle
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from itertools import count
from typing import Any

RECEIVING: ContextVar[Any] = ContextVar("receiving")  # the session for which what another shard sent is read
_reading: ContextVar[tuple[End, Any]] = ContextVar("reading")  # the end that decodes, and for which session


class End:
    """One end: what it keeps for the other one. Any thread."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._objects: dict[int, Any] = {}
        self.dropped: deque[int] = deque()  # of the other end's, since the last message; negative: what has no object

    def keep(self, value: Any) -> int:
        number = next(self._numbers)
        self._objects[number] = value
        return number

    def kept(self, number: int) -> Any:
        return self._objects[number]

    def drop(self, numbers: list[int]) -> None:
        for number in numbers:
            self._objects.pop(number, None)

    def news(self) -> list[int]:
        """Returns what was dropped since the last message."""
        return [self.dropped.popleft() for _ in range(len(self.dropped))]

    def reference(self, number: int, kind: str, session: Any) -> Any:
        """Returns what stands here for an object of the other end."""
        raise NotImplementedError

    def packed(self, data: bytes, session: Any) -> Any:
        """Returns the object that another shard sent."""
        raise NotImplementedError

    def reduced(self, value: Any) -> Any:
        """Returns what pickle is to write for a value that is no plain one; NotImplemented: what it does by itself."""
        raise NotImplementedError

    def encode(self, value: Any) -> bytes:
        file = io.BytesIO()
        _Pickler(file, self.reduced).dump(value)
        return file.getvalue()

    def decode(self, data: bytes, session: Any) -> Any:
        token = _reading.set((self, session))
        try:
            return pickle.loads(data)
        finally:
            _reading.reset(token)


class Reference:
    """Stands for an object of the other end."""

    def __init__(self, end: End, number: int) -> None:
        self.end, self.number = end, number

    def __del__(self) -> None:
        if self.number:
            self.end.dropped.append(self.number)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, reduced: Callable[[Any], Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._reduced = reduced

    def reducer_override(self, obj: Any) -> Any:
        return self._reduced(obj)


def senders(number: int, kind: str) -> Any:
    end, session = _reading.get()
    return end.reference(number, kind, session)


def receivers(number: int) -> Any:
    return _reading.get()[0].kept(number)


def arrived(data: bytes) -> Any:
    end, session = _reading.get()
    return end.packed(data, session)
