"""Where a walk over the passages of an Index stands, newest first; those that come meanwhile are next.

It remembers stretches of slots, not passages. After a compaction it begins anew. The worker's loop only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardqa.gears_functions.index.corpus_index import Index


@dataclass(slots=True)
class _Stretch:
    """Of slots that are still to be walked."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class NextPassages:
    """The next passages of a walk."""

    passages: list[tuple[int, str]]  # slot and key
    stretch: _Stretch
    compactions: int  # of the index, when it was made


class Walk:
    def __init__(self, index: Index) -> None:
        self._index = index
        self._top = 0  # slots that were looked at
        self._compactions = index.compactions
        self._left: list[_Stretch] = []  # the newest last

    def is_of(self, index: Index) -> bool:
        return index is self._index

    def begin_anew(self) -> None:
        self._top, self._left = 0, []

    def left(self) -> int:
        """Passages still to be walked."""
        self._look()
        return sum(self._index.count_between(stretch.low, stretch.high) for stretch in self._left)

    def page(self, limit: int) -> NextPassages | None:
        """The next passages; None where none is left."""
        self._look()
        while self._left:
            stretch = self._left[-1]
            found = self._index.newest_between(stretch.low, stretch.high, limit)
            if found:
                return NextPassages(found, stretch, self._compactions)
            self._left.pop()
        return None

    def walked(self, page: NextPassages, count: int) -> None:
        """The first so many of a page are done."""
        if count and page.compactions == self._index.compactions:
            page.stretch.high = page.passages[count - 1][0]

    def _look(self) -> None:
        if self._compactions != self._index.compactions:
            self._compactions = self._index.compactions
            self.begin_anew()
        if self._index.slots > self._top:
            self._left.append(_Stretch(self._top, self._index.slots))
            self._top = self._index.slots
