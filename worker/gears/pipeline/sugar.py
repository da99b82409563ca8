"""The functions that GearsBuilder's compound steps are made of.

Functions here travel between shards by their names; those that hold a user's function by value. A local fold may be
`async def`: its result is awaited by the step.
"""

import copy
import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


class Fold:
    """A function of accumulate or localgroupby, which has the key before, with a first value.

    Each use gets a copy: two runs must not share a list.
    """

    def __init__(self, zero: Any, function: Function) -> None:
        self._zero = zero
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        *key, accumulator, record = arguments
        return self._function(*key, copy.deepcopy(self._zero) if accumulator is None else accumulator, record)


class FoldValues(Fold):
    """The same over records {'key', 'value'}."""

    def __call__(self, *arguments: Any) -> Any:
        *others, record = arguments
        return super().__call__(*others, record["value"])


key_of = operator.itemgetter("key")


def itself(record: Any) -> Any:
    return record


def add(accumulator: Any, record: Any) -> Any:
    return record if accumulator is None else accumulator + record


def count_one(_key: Any, accumulator: int, _record: Any) -> int:
    return accumulator + 1


def add_value(_key: Any, accumulator: Any, value: Any) -> Any:
    return accumulator + value


def gather(_key: Any, accumulator: list[Any] | None, record: Any) -> list[Any]:
    return gather_all(accumulator, record)


def not_async(value: Any, what: str) -> Any:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"Step does not support async: coroutine are not allow on {what}; await in a map before it")
    return value


class Reduce:
    def __init__(self, reducer: Function) -> None:
        self._reducer = reducer

    def __call__(self, record: dict[str, Any]) -> dict[str, Any]:
        value = not_async(self._reducer(record["key"], record["value"]), "the reducer of batchgroupby")
        return {"key": record["key"], "value": value}


def sum_and_count(accumulator: tuple[float, int], number: Any) -> tuple[Any, int]:
    return accumulator[0] + number, accumulator[1] + 1


def add_pairs(accumulator: tuple[float, int], pair: tuple[float, int]) -> tuple[float, int]:
    return accumulator[0] + pair[0], accumulator[1] + pair[1]


def quotient(pair: tuple[float, int]) -> float:
    return pair[0] / pair[1]


def gather_all(accumulator: list[Any] | None, record: Any) -> list[Any]:
    if accumulator is None:
        return [record]
    accumulator.append(record)
    return accumulator


def concatenate(accumulator: list[Any] | None, records: list[Any]) -> list[Any]:
    if accumulator is None:
        return list(records)
    accumulator += records
    return accumulator


def sorting(reverse: bool) -> Function:
    """Returns a function for flatmap, which gives lists from the end: `reverse` is ascending, as in RedisGears."""
    return functools.partial(sorted, reverse=bool(reverse))


def gather_distinct(accumulator: dict[Any, None] | None, record: Any) -> dict[Any, None]:
    """Adds a record to the keys of a dict: a set that keeps its order."""
    records = {} if accumulator is None else accumulator
    records[record] = None
    return records


def from_end(records: dict[Any, None]) -> list[Any]:
    """Reverses records for flatmap, which then gives them in the order of arrival."""
    return list(reversed(records))


def unite(accumulator: dict[Any, None] | None, other: dict[Any, None]) -> dict[Any, None]:
    return dict(other) if accumulator is None else accumulator | other
