"""The steps of a function: what each does with records, and how a chain of them runs.

A chain is made anew for every run, because steps that join records keep state in it. Synchronous steps that follow one
another run on the pool in one go; what they return that must be awaited (a coroutine, a future, a `gearsFuture`) is
awaited in the loop, so that it holds no thread, and the rest of the records follow in order.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from types import FunctionType
from typing import TYPE_CHECKING, Any

from shardqa.module.worker.threads import Cancelled

if TYPE_CHECKING:
    from shardqa.module.worker.gears.pipeline.run import Run

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

    @property
    def is_async(self) -> bool:
        return is_async(self.function)


def is_async(function: Any) -> bool:
    if type(function) is FunctionType and function.__code__.co_flags & inspect.CO_COROUTINE:
        return True  # the commonest, told at once
    call = getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def plain(steps: Sequence[GearsStep]) -> bool:
    """Whether all of them are over once they have returned: synchronous, none joins records or moves them."""
    return all(step.kind in PASSING and not step.is_async for step in steps)


def convert(record: Any) -> Any:
    """convertToStr: str() of a record; bytes stay bytes, so that data is never spelled as Python source."""
    return record if isinstance(record, str | bytes) else str(record)


def is_light(record: Any) -> bool:
    """Whether `convert` of it takes next to no time and runs no code of a user's."""
    if type(record) is dict:
        return len(record) <= LIGHT and all(_is_short(key) and _is_short(value) for key, value in record.items())
    return type(record) in (str, bytes) or _is_short(record)


def _is_short(value: Any) -> bool:
    return type(value) in SHORT or (type(value) in (str, bytes) and len(value) <= LENGTH)


# ---- what one step does ----


class Operation:
    """One step at work. `call` is what the user's function makes of a record, `take` what becomes of that."""

    def __init__(self, step: GearsStep) -> None:
        self.step = step
        self.milliseconds = 0.0

    def call(self, record: Any) -> Any:
        assert self.step.function is not None
        return self.step.function(record)

    def take(self, record: Any, result: Any, out: list[Any]) -> None:
        raise NotImplementedError

    def end(self) -> list[Any]:
        """What is left to give when no more records come."""
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

    def many(self, records: list[Any]) -> list[Any]:
        skipped = min(self._skip, len(records))
        self._skip -= skipped
        taken = records[skipped : skipped + self._length]
        self._length -= len(taken)
        return taken


class LocalCount(Operation):
    def __init__(self, step: GearsStep) -> None:
        super().__init__(step)
        self._count = 0

    def many(self, records: list[Any]) -> list[Any]:
        self._count += len(records)
        return []

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


# ---- chains ----


@dataclass(slots=True)
class Suspended:
    """Synchronous steps that met something to await."""

    at: int  # index of the operation
    out: list[Any]  # what it gave already
    record: Any
    waiting: Any
    rest: list[Any]  # the records behind that one


class Chain:
    """Steps of which none is global. Used by one coroutine."""

    def __init__(self, run: Run, steps: Sequence[GearsStep]) -> None:
        self._execution = run
        self.operations = [OPERATIONS[step.kind](step) for step in steps if step.kind not in GLOBAL]

    async def feed(self, records: list[Any]) -> list[Any]:
        """What the records became so far; steps that join records keep theirs until the end."""
        return await self._run(0, records)

    async def end(self) -> list[Any]:
        out: list[Any] = []
        for at, operation in enumerate(self.operations):
            left = operation.end()
            if left:
                out += await self._run(at + 1, left)
        return out

    def run_here(self, records: list[Any]) -> list[Any]:
        """All of it, in the calling thread; a thread of the pool may await what must be awaited."""
        for operation in self.operations:
            if isinstance(operation, Limit | LocalCount):
                records = operation.many(records) + operation.end()
                continue
            out: list[Any] = []
            for record in records:
                self._call_here(operation, record, out)
            records = out + operation.end()
        return records

    def begin_here(self, records: list[Any]) -> list[Any] | Suspended:
        """All of `plain` steps, in the calling thread; what they meet to await is for `go_on`."""
        return self._compute(0, len(self.operations), records, [])

    async def go_on(self, met: Suspended) -> list[Any]:
        """In the loop: the rest of what `begin_here` began."""
        return await self._go_on(met, len(self.operations))

    def _call_here(self, operation: Operation, record: Any, out: list[Any]) -> None:
        try:
            result = operation.call(record)
            if inspect.isawaitable(result):
                if self._execution.threads.in_loop():
                    _close(result)
                    raise RuntimeError("a coroutine can't call a hook that awaits; make itself a plain function")
                result = self._execution.threads.wait(_awaited(result))
            operation.take(record, result, out)
        except Cancelled:
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
            self._execution.failed(error)

    async def _run(self, at: int, records: list[Any]) -> list[Any]:
        """`records` through the operations from `at` on."""
        while at < len(self.operations) and records:
            if self.operations[at].step.is_async:
                records = await self._run_async(self.operations[at], records)
                at += 1
                continue
            end = next((i for i in range(at, len(self.operations)) if self.operations[i].step.is_async), None)
            records = await self._run_sync(at, len(self.operations) if end is None else end, records)
            at = len(self.operations) if end is None else end
        return records

    async def _run_async(self, operation: Operation, records: list[Any]) -> list[Any]:
        out: list[Any] = []
        for record in records:
            await self._await(operation, record, operation.call, out)
        return out

    async def _await(self, operation: Operation, record: Any, start: Callable[[Any], Any], out: list[Any]) -> None:
        try:
            waiting = start(record)
            if inspect.isawaitable(waiting):
                run = self._execution
                waiting = await run.threads.stepping(waiting, run.name, run.request)
            operation.take(record, waiting, out)
        except asyncio.CancelledError:
            if self._execution.cancelled or _task_cancelled():
                raise
            self._execution.failed(RuntimeError("what the function awaited was cancelled"))
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
            self._execution.failed(error)

    async def _run_sync(self, at: int, end: int, records: list[Any]) -> list[Any]:
        return await self._go_on(await self._through(at, end, records, []), end)

    async def _through(self, at: int, end: int, records: list[Any], out: list[Any]) -> list[Any] | Suspended:
        """`out`: what the operation `at` gave already."""
        if not records and out:
            at, records, out = at + 1, out, []
        if not out and self._needs_no_thread(at, end, records):
            return self._computed(at, end, records, out)
        async with self._execution.turns or nullcontext():
            return await self._execution.threads.in_pool(self._execution, self._compute, at, end, records, out)

    def _needs_no_thread(self, at: int, end: int, records: list[Any]) -> bool:
        """No user's code is run."""
        light = len(records) <= LIGHT and all(map(is_light, records))
        return all(
            isinstance(operation, Limit | LocalCount) or (light and operation.step.function is convert)
            for operation in self.operations[at:end]
        )

    async def _go_on(self, met: list[Any] | Suspended, end: int) -> list[Any]:
        """What becomes of synchronous steps up to `end` that gave this so far."""
        while isinstance(met, Suspended):
            operation, out = self.operations[met.at], met.out
            await self._await(operation, met.record, lambda _, met=met: met.waiting, out)  # type: ignore[misc]
            met = await self._through(met.at, end, met.rest, out)
        return met

    def _compute(self, at: int, end: int, records: list[Any], out: list[Any]) -> list[Any] | Suspended:
        """In the pool. `out`: what the operation `at` gave already."""
        if self._execution.profile is None:
            return self._computed(at, end, records, out)
        with self._execution.profile():
            return self._computed(at, end, records, out)

    def _computed(self, at: int, end: int, records: list[Any], out: list[Any]) -> list[Any] | Suspended:
        for number in range(at, end):
            operation = self.operations[number]
            if isinstance(operation, Limit | LocalCount):
                records, out = operation.many(records), []
                continue
            met = self._compute_one(number, operation, records, out)
            if met is not None:
                return met
            records, out = out, []
        return records

    def _compute_one(self, number: int, operation: Operation, records: list[Any], out: list[Any]) -> Suspended | None:
        call, take = operation.call, operation.take
        for at, record in enumerate(records):
            try:
                result = call(record)
                if type(result) not in PLAIN and inspect.isawaitable(result):
                    return Suspended(number, out, record, result, records[at + 1 :])
                take(record, result, out)
            except Cancelled:
                raise
            except BaseException as error:  # noqa: BLE001 - see above
                self._execution.failed(error)
        return None


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _close(awaitable: Any) -> None:
    if inspect.iscoroutine(awaitable):  # else Python warns that nobody awaited it
        awaitable.close()


def _task_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


# ---- a whole plan ----


@dataclass(frozen=True, slots=True)
class Stage:
    """The steps between two global ones, and the global step that their records go to (None: they are the results)."""

    steps: tuple[GearsStep, ...]
    then: GearsStep | None


def stages(steps: Sequence[GearsStep]) -> list[Stage]:
    found: list[Stage] = []
    begun: list[GearsStep] = []
    for step in steps:
        if step.kind in GLOBAL:
            found.append(Stage(tuple(begun), step))
            begun = []
        else:
            begun.append(step)
    return [*found, Stage(tuple(begun), None)]
