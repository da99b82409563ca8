"""Filters say which documents may answer: conditions on title, source and metadata, all of which must hold.

    {"title": "Leave", "metadata": {"year": {"gte": 2020}, "tags": ["hr", "legal"], "author.name": "Ada"}}

A plain value must be equal, of a list any, and an object names bounds or `exists`; a source begins so. Of a list in the
metadata any item may match; a dotted name goes into objects. Bounds are numbers, or dates as ISO 8601 has them (UTC
where no zone stands; a day alone is all of it), and a value of another kind is outside. Pure functions.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from shardqa.errors import BadFilter

MAX_CLAUSES = 64
MAX_VALUES = 1_000  # of one list
MAX_BYTES = 65_536  # of a filter, as it travels
TITLE, SOURCE = "title", "source"  # of a clause's field; those of metadata begin with METADATA
METADATA = "metadata."
DAY = 86_400_000_000  # microseconds
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DATE = re.compile(r"\d{4}-\d\d-\d\d(T.*| .*)?", re.ASCII)

Scalar: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr | None
Bound: TypeAlias = StrictInt | StrictFloat | StrictStr
Value: TypeAlias = tuple[str, Any]  # a scalar with its kind: true is not 1, and 1 is 1.0


class FilterBounds(BaseModel):
    """The bounds of a field, all of which hold; or whether there is such a field at all."""

    model_config = ConfigDict(extra="forbid")

    gte: Bound | None = None
    gt: Bound | None = None
    lte: Bound | None = None
    lt: Bound | None = None
    exists: StrictBool | None = None


BOUNDS = FilterBounds.__name__
Condition: TypeAlias = Scalar | list[Scalar] | FilterBounds


class DocumentFilter(BaseModel):
    """Conditions that all must hold."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"metadata": {"year": {"gte": 2020}, "tags": ["hr", "legal"]}}]}
    )

    title: Condition = None
    source: StrictStr | list[StrictStr] | None = Field(None, description="What its source begins with, as a folder's.")
    metadata: dict[str, Condition] = Field(default_factory=dict)
    all: list["DocumentFilter"] = Field(default_factory=list, description="Further filters that must hold, too.")


class View(DocumentFilter):
    """A filter that hides: for whoever has it, documents that it does not let through are not there at all.

    Counts and scores are of the others alone. Of any other filter scores don't depend.
    """


@dataclass(frozen=True, slots=True, order=True)
class Clause:
    field: str  # TITLE, SOURCE, or METADATA and a dotted name
    test: str  # of TESTS
    value: str  # JSON, so that clauses can be ordered
    hides: bool = False  # of a View

    def record(self) -> list[Any]:
        """The list for its JSON."""
        record = [self.field, self.test, orjson.loads(self.value)]
        return [*record, HIDES] if self.hides else record


def canonical(filter: DocumentFilter | None) -> str:
    """A text that is the same for filters that mean the same by their spelling; empty for none. Raises BadFilter."""
    clauses = sorted(set(_clauses(filter))) if filter is not None else []
    if len(clauses) > MAX_CLAUSES:
        raise BadFilter(f"the filter has {len(clauses)} conditions, at most {MAX_CLAUSES} are taken")
    text = orjson.dumps([clause.record() for clause in clauses]).decode() if clauses else ""
    if len(text.encode()) > MAX_BYTES:
        raise BadFilter(f"the filter has {len(text):,} characters, at most {MAX_BYTES:,} bytes are taken")
    return text


def of_text(text: str | None) -> DocumentFilter | None:
    """Reads a filter from JSON, as it stands in an address. Raises BadFilter."""
    if text is None:
        return None
    try:
        return DocumentFilter.model_validate_json(text)
    except ValidationError as error:
        errors = error.errors()
        first = next((one for one in errors if BOUNDS in one["loc"]), errors[0])  # of an object, what bounds lack
        at = ".".join(str(part) for part in first["loc"] if part != BOUNDS)
        names = FilterBounds.model_fields if BOUNDS in first["loc"] else DocumentFilter.model_fields
        is_unknown = first["type"] == "extra_forbidden"
        reason = f"there is no such field; wanted is one of {', '.join(names)}" if is_unknown else first["msg"]
        raise BadFilter(f"filter={text[:80]!r} can't be used: {at or 'it'}: {reason}") from None


def parse(text: str) -> list[tuple[str, str, Any]]:
    """Lists (field, test, value) of a text that `canonical` wrote. Raises BadFilter for anything else."""
    try:
        clauses = orjson.loads(text) if text else []
    except orjson.JSONDecodeError as error:
        raise BadFilter(f"the filter is not JSON: {error}") from None
    if not isinstance(clauses, list) or not all(map(_is_clause, clauses)):
        raise BadFilter(f"{text[:80]!r} is no list of [field, test, value]")
    for _, test, value, *_ in clauses:
        _check(test, value)
    return [(field, test, value) for field, test, value, *_ in clauses]


def _is_clause(record: object) -> bool:
    """Whether it is what `Clause.record` makes, but for the value."""
    if not isinstance(record, list) or len(record) < 3:
        return False
    field, test, _, *hides = record
    return isinstance(field, str) and test in TESTS and hides in ([], [HIDES])


def view_of(text: str) -> str:
    """The part of what `canonical` wrote that hides documents; empty where none does."""
    hiding = [clause for clause in orjson.loads(text) if clause[3:] == [HIDES]] if text else []
    return orjson.dumps(hiding).decode() if hiding else ""


HIDES = "hides"  # behind a clause's value
TESTS = ("in", "prefix", "gte", "gt", "lte", "lt", "exists")


def _check(test: str, value: Any) -> None:
    if test == "in" and not (
        isinstance(value, list) and all(isinstance(one, str | int | float | None) for one in value)
    ):
        raise BadFilter(f"{str(value)[:80]} is no list of plain values")
    if test == "prefix" and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise BadFilter(f"{str(value)[:80]} is no list of texts")
    if test == "exists" and not isinstance(value, bool):
        raise BadFilter(f"exists is {str(value)[:80]}; use true or false")
    if test in ("gte", "gt", "lte", "lt"):
        bounds(test, value)


def _dumped(field: str, value: Any) -> str:
    """The value in JSON. Raises BadFilter for what JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise BadFilter(f"the condition on {field!r} names {value}, which is no value of metadata")
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise BadFilter(f"the condition on {field!r} can't be sent: {error}") from None


def _clauses(filter: DocumentFilter, hides: bool = False) -> Iterator[Clause]:
    hides = hides or isinstance(filter, View)
    if filter.title is not None:
        yield from _of_field(TITLE, filter.title, hides)
    if filter.source is not None:
        sources: list[Scalar] = [*([filter.source] if isinstance(filter.source, str) else filter.source)]
        yield from (replace(one, test="prefix") for one in _of_field(SOURCE, sources, hides))
    for name, condition in filter.metadata.items():
        yield from _of_field(METADATA + name, condition, hides)
    for other in filter.all:
        yield from _clauses(other, hides)


def _of_field(field: str, condition: Condition, hides: bool) -> Iterator[Clause]:
    if isinstance(condition, FilterBounds):
        fields = condition.model_dump(exclude_none=True)
        if not fields:
            raise BadFilter(f"the condition on {field!r} is empty; use gte, gt, lte, lt or exists")
        for test, value in fields.items():
            _check(test, value)
            yield Clause(field, test, _dumped(field, value), hides)
        return
    values = condition if isinstance(condition, list) else [condition]
    if len(values) > MAX_VALUES:
        raise BadFilter(f"the condition on {field!r} lists {len(values):,} values, at most {MAX_VALUES:,} are taken")
    values_json = sorted({_dumped(field, value) for value in values})
    yield Clause(field, "in", f"[{','.join(values_json)}]", hides)


# ---- values


def kind_of(scalar: Any) -> Value:
    """The kind of a scalar, and the value to compare."""
    if isinstance(scalar, bool):
        return ("truth", scalar)
    if isinstance(scalar, int | float):
        return ("number", scalar) if scalar == scalar else ("none", None)
    return ("none", None) if scalar is None else ("text", scalar)


def values_of(metadata: Any, name: str = METADATA[:-1]) -> Iterator[tuple[str, Value]]:
    """Yields (field, value) of all plain values in a document's metadata, in objects and lists too."""
    if isinstance(metadata, dict):
        for key, value in metadata.items():
            yield from values_of(value, f"{name}.{key}")
    elif isinstance(metadata, list):
        for value in metadata:
            yield from values_of(value, name)
    else:
        yield name, kind_of(metadata)


def instant(text: str) -> tuple[int, bool] | None:
    """Returns (microseconds since 1970, whether it is a day alone) of a date; None for what is none."""
    if not DATE.fullmatch(text):
        return None
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = (date if date.tzinfo else date.replace(tzinfo=UTC)) - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds, len(text) == len("2026-01-01")


def ordered(value: Value) -> tuple[str, int | float] | None:
    """Returns (kind, place) among the values that bounds can part; None where they can't."""
    kind, scalar = value
    if kind == "number":
        return kind, scalar
    date = instant(scalar) if kind == "text" else None
    if date is None:
        return None
    place, _ = date
    return "date", place


def bounds(test: str, limit: Any) -> tuple[str, int | float, bool, bool]:
    """Returns (kind, place, whether what is inside lies above it, whether it is inside itself). Raises BadFilter."""
    is_above, is_inside = test in ("gte", "gt"), test in ("gte", "lte")
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        return "number", limit, is_above, is_inside
    date = instant(limit) if isinstance(limit, str) else None
    if date is None:
        raise BadFilter(f"{test}={limit!r} is no bound; use a number or a date like 2026-01-31 or 2026-01-31T12:00:00Z")
    place, is_day = date
    if is_day and test in ("gt", "lte"):
        return "date", place + DAY, is_above, test == "gt"  # after the day, or before the next begins
    return "date", place, is_above, is_inside


def holds(clauses: list[tuple[str, str, Any]], title: str, source: str, metadata: dict[str, Any]) -> bool:
    """Whether a document meets all of them, computed from the document itself: what tests hold the index against."""
    values = [(TITLE, kind_of(title)), (SOURCE, kind_of(source)), *values_of(metadata)]

    def is_met(clause: tuple[str, str, Any]) -> bool:
        field, _, _ = clause
        return test_of(clause)([value for name, value in values if name == field])

    return all(map(is_met, clauses))


def begins(value: Value, operand: list[str]) -> bool:
    kind, text = value
    return kind == "text" and text.startswith(tuple(operand))


def test_of(clause: tuple[str, str, Any]) -> Callable[[list[Value]], bool]:
    """A function that says whether the values which a document has in the clause's field meet it."""
    _, test, operand = clause
    if test == "exists":
        return lambda values: bool(values) is operand
    if test == "in":
        kinds = set(map(kind_of, operand))
        return lambda values: not kinds.isdisjoint(values)
    if test == "prefix":
        return lambda values: any(begins(value, operand) for value in values)
    kind, limit, is_above, is_inside = bounds(test, operand)

    def is_within(value: Value) -> bool:
        own_kind, place = ordered(value) or ("none", 0)
        if own_kind != kind:
            return False
        return (place > limit if is_above else place < limit) or (is_inside and place == limit)

    return lambda values: any(map(is_within, values))
