"""A source of documents, read a moment at a time: a turn of a thread for each row would cost more than the row."""

from collections.abc import Iterator
from time import monotonic
from typing import Protocol

from shardqa.files.source_file import Item
from shardqa.schema import Document

MOMENT_ITEMS = 512  # items that go on together
CHARACTERS = 262_144  # of their texts, or one document's more
MOMENT_SECONDS = 0.1  # seconds after which what is read goes on


class Source(Protocol):
    """A source of documents; `files.SourceFiles` is one."""

    total: int

    def done(self) -> int: ...

    def __iter__(self) -> Iterator[Item]: ...


class Moments:
    """The items of a source, those of a moment at a time. Each call may be made by another thread."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._items = iter(source)
        self._fault: Exception | None = None  # of the source, told once the items before it are

    def next(self) -> list[tuple[Item, int]]:
        """Returns a moment's items, each with the bytes read so far; none at the end. Raises what the source raises."""
        if self._fault is not None:
            raise self._fault
        some, size, end = list[tuple[Item, int]](), 0, monotonic() + MOMENT_SECONDS
        try:
            for item in self._items:
                some.append((item, self._source.done()))
                size += len(item.text) if isinstance(item, Document) else 0
                if len(some) == MOMENT_ITEMS or size > CHARACTERS or monotonic() > end:
                    break
        except Exception as fault:
            if not some:
                raise
            self._fault = fault
        return some
