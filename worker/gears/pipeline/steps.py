"""The steps of a function, and what each does with records."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType
from typing import Any

Function = Callable[..., Any]
LIGHT = 16  # records, and fields of one, that `convert` is done with at once
LENGTH = 1000  # characters or bytes of such a field
SHORT = frozenset([int, float, bool, type(None)])
PLAIN = frozenset([str, int, float, bool, bytes, list, dict, tuple, set, type(None)])  # results nobody awaits


class Kind(Enum):
    MAP = "map"
    FLATMAP = "flatmap"
    FILTER = "filter"
    FOREACH = "foreach"
    ACCUMULATE = "accumulate"
    LOCALGROUPBY = "localgroupby"
    LOCALCOUNT = "localcount"  # the local half of count()
    LIMIT = "limit"
    COLLECT = "collect"
    REPARTITION = "repartition"


GLOBAL = (Kind.COLLECT, Kind.REPARTITION)
PASSING = (Kind.MAP, Kind.FLATMAP, Kind.FILTER, Kind.FOREACH)  # one record after another


@dataclass(frozen=True, slots=True)
class GearsStep:
    kind: Kind
    function: Function | None = None
    extractor: Function | None = None  # of LOCALGROUPBY
    numbers: tuple[int, int] = (0, 0)  # of LIMIT: length, start
    is_async: bool = field(init=False)  # told once: each run asks

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", is_async(self.function))


def is_async(function: Any) -> bool:
    if type(function) is FunctionType and function.__code__.co_flags & inspect.CO_COROUTINE:
        return True  # the commonest, told at once
    call = getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def plain(steps: Sequence[GearsStep]) -> bool:
    """Returns whether all steps are synchronous, and none joins or moves records."""
    return all(step.kind in PASSING and not step.is_async for step in steps)


def convert(record: Any) -> Any:
    """Returns str() of a record, as convertToStr asks; bytes stay bytes: data is never spelled as Python source."""
    return record if isinstance(record, str | bytes) else str(record)


def is_light(record: Any) -> bool:
    """Returns whether `convert` of a record takes next to no time and runs no user's code."""
    if type(record) is dict:
        return len(record) <= LIGHT and all(_is_short(key) and _is_short(value) for key, value in record.items())
    return type(record) in (str, bytes) or _is_short(record)


def _is_short(value: Any) -> bool:
    return type(value) in SHORT or (type(value) in (str, bytes) and len(value) <= LENGTH)


# ---- what one step does ----


class Operation:
    """One step at work: `call` runs the user's function on a record, `take` makes records of its value."""

    call: Function = staticmethod(lambda record: None)  # where it has no function of a user's

    def __init__(self, step: GearsStep) -> None:
        self.step = step
        if step.kind in PASSING and step.function is not None:
            self.call = step.function

    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        raise NotImplementedError

    def end(self) -> list[Any]:
        """Returns the last records, when no more come."""
        return []


class Map(Operation):
    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        out.append(result)


class FlatMap(Operation):
    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        if isinstance(result, list):
            out.extend(reversed(result))  # as RedisGears: from its end
        else:  # as RedisGears: only a list is spread
            out.append(result)


class Filter(Operation):
    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        if result:
            out.append(record)


class ForEach(Operation):
    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        out.append(record)


class Accumulate(Operation):
    def __init__(self, step: GearsStep) -> None:
        super().__init__(step)
        self._value: Any = None
        self._any = False

    def call(self, record: Any) -> Any:
        assert self.step.function is not None
        return self.step.function(self._value, record)

    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        self._value, self._any = result, True

    def end(self) -> list[Any]:
        return [self._value] if self._any else []


class LocalGroupBy(Operation):
    def __init__(self, step: GearsStep) -> None:
        super().__init__(step)
        self._groups: dict[Any, Any] = {}
        self._key: Any = None  # of the record that is called for

    def call(self, record: Any) -> Any:
        assert self.step.function is not None
        assert self.step.extractor is not None
        key = self.step.extractor(record)
        self._key = key if isinstance(key, str | bytes) else str(key)  # as RedisGears
        return self.step.function(self._key, self._groups.get(self._key), record)

    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        self._groups[self._key] = result

    def end(self) -> list[Any]:
        return [{"key": key, "value": value} for key, value in self._groups.items()]


class Limit(Operation):
    def __init__(self, step: GearsStep) -> None:
        super().__init__(step)
        self._length, self._skip = step.numbers

    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        if self._skip:
            self._skip -= 1
        elif self._length:
            self._length -= 1
            out.append(record)


class LocalCount(Operation):
    def __init__(self, step: GearsStep) -> None:
        super().__init__(step)
        self._count = 0

    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        self._count += 1

    def end(self) -> list[Any]:
        return [self._count] if self._count else []


OPERATIONS: dict[Kind, type[Operation]] = {
    Kind.MAP: Map,
    Kind.FLATMAP: FlatMap,
    Kind.FILTER: Filter,
    Kind.FOREACH: ForEach,
    Kind.ACCUMULATE: Accumulate,
    Kind.LOCALGROUPBY: LocalGroupBy,
    Kind.LIMIT: Limit,
    Kind.LOCALCOUNT: LocalCount,
}
