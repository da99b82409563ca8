"""Titles, sources and metadata of a corpus' documents on one shard, inverted: which documents a filter lets through.

Postings by field and value; bounds go over a field's values in order, which are sorted when they are first needed.
Owned by a Catalogue; one thread.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from cachetools import LRUCache

from shardqa import filters, metadata
from shardqa.filters import Value

Clause: TypeAlias = tuple[str, str, Any]
Pair: TypeAlias = tuple[str, Value]  # field and value

LOOK_RATIO = 1  # times as many values meet a condition as documents are left: looking at each of those is quicker
REMEMBERED = 64  # filters whose documents are kept until one of the documents changes


class _Field:
    """The values of one field, and the documents of each."""

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

    def meeting(self, test: str, operand: Any) -> Sequence[Value]:
        """Returns the values that meet a test; that of `exists` being false is not among them."""
        if test == "in":
            return [value for one in operand if (value := filters.kind_of(one)) in self.documents]
        if test == "exists":
            return list(self.documents)
        if test == "prefix":
            return [value for value in self.documents if filters.begins(value, operand)]
        kind, place, is_above, is_inside = filters.bounds(test, operand)
        places, values = self._in_order().get(kind, ([], []))
        if is_above:
            return values[(bisect_left if is_inside else bisect_right)(places, place) :]
        return values[: (bisect_right if is_inside else bisect_left)(places, place)]

    def of_values(self, values: Iterable[Value]) -> set[str]:
        return set[str]().union(*(self.documents[value] for value in values))

    def _in_order(self) -> dict[str, tuple[list[int | float], list[Value]]]:
        if self._sorted is None:
            by_kind: dict[str, list[tuple[int | float, Value]]] = {}
            for value in self.documents:
                if (where := filters.ordered(value)) is not None:
                    by_kind.setdefault(where[0], []).append((where[1], value))
            self._sorted = {}
            for kind, values in by_kind.items():
                values.sort(key=lambda one: one[0])
                self._sorted[kind] = ([place for place, _ in values], [value for _, value in values])
        return self._sorted


class Attributes:
    def __init__(self) -> None:
        self._fields: dict[str, _Field] = {}
        self._pairs: dict[str, frozenset[Pair]] = {}  # of each document
        self._documents: LRUCache[str, frozenset[str]] = LRUCache(REMEMBERED)  # by filter

    def add(self, document: str, title: str, source: str, metadata_json: str) -> None:
        """Adds a document with its metadata as JSON."""
        heads = {(filters.TITLE, filters.kind_of(title)), (filters.SOURCE, filters.kind_of(source))}
        pairs = {*heads, *filters.values_of(metadata.unpack(metadata_json))}
        self._pairs[document] = frozenset(pairs)
        for name, value in pairs:
            self._fields.setdefault(name, _Field()).add(value, document)
        if self._documents:  # to clear it takes longer than to look
            self._documents.clear()

    def remove(self, document: str) -> None:
        for name, value in self._pairs.pop(document, frozenset()):
            self._fields[name].remove(value, document)
            if not self._fields[name].documents:
                del self._fields[name]
        self._documents.clear()

    def counts(self, field: str, among: frozenset[str] | None) -> dict[str, int]:
        """Returns how many documents have each text of a field; of those `among` alone, where it is given."""
        texts = {value: ids.keys() for (kind, value), ids in self._field(field).documents.items() if kind == "text"}
        return {value: len(ids if among is None else ids & among) for value, ids in texts.items()}

    def chosen(self, filter_: str, every: Callable[[], list[str]]) -> frozenset[str]:
        """Returns the documents that a canonical filter lets through; `every` returns all.

        The condition that few values meet goes first; one that many do is then asked of those documents alone. Raises
        BadFilter.
        """
        documents = self._documents.get(filter_)
        if documents is None:
            documents = self._documents[filter_] = frozenset(self._found(filters.parse(filter_), every))
        return documents

    def _found(self, clauses: list[Clause], every: Callable[[], list[str]]) -> set[str]:
        absent = [clause for clause in clauses if clause[1:] == ("exists", False)]
        present = [(clause, self._meeting(clause)) for clause in clauses if clause not in absent]
        present.sort(key=lambda one: len(one[1]))
        ids: set[str] | None = None
        for clause, values in present:
            if ids is not None and len(values) > LOOK_RATIO * len(ids):
                ids = self._meeting_among(ids, clause)
            else:
                of_values = self._field(clause[0]).of_values(values)
                ids = of_values if ids is None else ids & of_values
        rest = set(every()) if ids is None else ids
        for name, _, _ in absent:
            rest -= self._field(name).of_values(self._field(name).documents)
        return rest

    def _field(self, name: str) -> _Field:
        return self._fields.get(name) or _Field()

    def _meeting(self, clause: Clause) -> Sequence[Value]:
        name, test, operand = clause
        return self._field(name).meeting(test, operand)

    def _meeting_among(self, documents: set[str], clause: Clause) -> set[str]:
        name, is_met = clause[0], filters.test_of(clause)
        return {one for one in documents if is_met([value for field, value in self._pairs[one] if field == name])}
