"""Titles and metadata of a corpus' documents on one shard, inverted: which documents a filter lets through.

Postings by field and value; bounds go over a field's values in order, which are sorted when they are first needed.
Owned by a Catalogue; one thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from shardqa import filters, metadata
from shardqa.filters import Value

Clause: TypeAlias = tuple[str, str, Any]
Told: TypeAlias = tuple[str, str]  # title, and metadata as JSON

FEW = 4  # times as many documents meet a condition as are left: looking at each of those is quicker
REMEMBERED = 64  # filters whose documents are kept until one of the documents changes


class _Field:
    """One field's values, and the documents of each."""

    def __init__(self) -> None:
        self.documents: dict[Value, dict[str, None]] = {}
        self._sorted: dict[str, tuple[list[int | float], list[Value]]] | None = None  # by kind

    def add(self, value: Value, document: str) -> None:
        if value not in self.documents:
            self._sorted = None
        self.documents.setdefault(value, {})[document] = None

    def remove(self, value: Value, document: str) -> None:
        of_value = self.documents[value]
        of_value.pop(document, None)
        if not of_value:
            del self.documents[value]
            self._sorted = None

    def meeting(self, test: str, wanted: Any) -> list[Value]:
        """The values that meet a test other than `exists` being false."""
        if test == "in":
            return [value for one in wanted if (value := filters.kind_of(one)) in self.documents]
        if test == "exists":
            return list(self.documents)
        kind, place, is_above, is_inside = filters.bounds(test, wanted)
        places, values = self._in_order().get(kind, ([], []))
        if is_above:
            return values[(bisect_left if is_inside else bisect_right)(places, place) :]
        return values[: (bisect_right if is_inside else bisect_left)(places, place)]

    def of_values(self, values: list[Value]) -> set[str]:
        return set[str]().union(*(self.documents[value] for value in values))

    def _in_order(self) -> dict[str, tuple[list[int | float], list[Value]]]:
        if self._sorted is None:
            by_kind: dict[str, list[tuple[int | float, Value]]] = {}
            for value in self.documents:
                if (where := filters.ordered(value)) is not None:
                    by_kind.setdefault(where[0], []).append((where[1], value))
            self._sorted = {}
            for kind, found in by_kind.items():
                found.sort(key=lambda one: one[0])
                self._sorted[kind] = ([place for place, _ in found], [value for _, value in found])
        return self._sorted


class Attributes:
    def __init__(self) -> None:
        self._fields: dict[str, _Field] = {}
        self._kept: OrderedDict[str, frozenset[str]] = OrderedDict()  # by filter, latest use last

    def add(self, document: str, title: str, packed: str) -> None:
        for name, value in _values(title, packed):
            self._fields.setdefault(name, _Field()).add(value, document)
        self._kept.clear()

    def remove(self, document: str, title: str, packed: str) -> None:
        """With what it was added with."""
        for name, value in _values(title, packed):
            self._fields[name].remove(value, document)
            if not self._fields[name].documents:
                del self._fields[name]
        self._kept.clear()

    def chosen(self, filter_: str, every: Callable[[], list[str]], told: Callable[[str], Told]) -> frozenset[str]:
        """The documents that a canonical filter lets through. `every` are all; `told` gives one's title and metadata.

        The condition that few meet goes first; one that many do is then asked of those few alone. Raises BadFilter.
        """
        kept = self._kept.get(filter_)
        if kept is None:
            kept = self._kept[filter_] = frozenset(self._found(filters.parse(filter_), every, told))
            if len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)
        self._kept.move_to_end(filter_)
        return kept

    def _found(self, clauses: list[Clause], every: Callable[[], list[str]], told: Callable[[str], Told]) -> set[str]:
        absent = [clause for clause in clauses if clause[1:] == ("exists", False)]
        present = [self._values_meeting(clause) for clause in clauses if clause not in absent]
        present.sort(key=lambda one: one.count)
        found: set[str] | None = None
        for one in present:
            if found is not None and one.count > FEW * len(found):
                found = {document for document in found if filters.holds([one.clause], *_unpacked(told(document)))}
            else:
                of_values = one.field.of_values(one.values)
                found = of_values if found is None else found & of_values
        rest = set(every()) if found is None else found
        for name, _, _ in absent:
            field = self._fields.get(name, _Field())
            rest -= field.of_values(list(field.documents))
        return rest

    def _values_meeting(self, clause: Clause) -> _Meeting:
        name, test, wanted = clause
        field = self._fields.get(name, _Field())
        values = field.meeting(test, wanted)
        count = sum(len(field.documents[value]) for value in values)
        return _Meeting(clause, field, values, count)


@dataclass(frozen=True, slots=True)
class _Meeting:
    clause: Clause
    field: _Field
    values: list[Value]
    count: int  # documents, those with several values more than once


def _unpacked(told: Told) -> tuple[str, dict[str, Any]]:
    title, packed = told
    return title, metadata.unpack(packed)


def _values(title: str, packed: str) -> set[tuple[str, Value]]:
    return {(filters.TITLE, filters.kind_of(title)), *filters.values_of(metadata.unpack(packed))}
