"""A chain of steps at work.

A chain is made anew for every run, because steps that join records keep state in it. Synchronous steps that follow one
another run on the pool in one go; what they return that must be awaited (a coroutine, a future, a `gearsFuture`) is
awaited in the loop, so that it holds no thread, and the rest of the records follow in order.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from shardqa.module.worker.gears.pipeline.futures import GearsFuture, record_of
from shardqa.module.worker.gears.pipeline.run import Run
from shardqa.module.worker.gears.pipeline.steps import (
    GLOBAL,
    LIGHT,
    OPERATIONS,
    PLAIN,
    GearsStep,
    Limit,
    LocalCount,
    Operation,
    convert,
    is_light,
)
from shardqa.module.worker.threads import Cancelled


@dataclass(slots=True)
class Suspended:
    """Synchronous steps that reached something to await."""

    at: int  # index of the operation
    out: list[Any]  # what it gave already
    record: Any
    waiting: Any
    rest: list[Any]  # the records behind that one

    def result(self, _record: Any) -> Any:
        return self.waiting


class Chain:
    """Steps of which none is global. Used by one coroutine."""

    def __init__(self, run: Run, steps: Sequence[GearsStep]) -> None:
        self._run = run
        self.operations = [OPERATIONS[step.kind](step) for step in steps if step.kind not in GLOBAL]

    async def feed(self, records: list[Any], at: int = 0, out: list[Any] | None = None) -> list[Any]:
        """Returns what the records became so far; steps that join records keep theirs until the end.

        `at` is the operation to begin with, and `out` what that has given already.
        """
        operations, run, out = self.operations, self._run, [] if out is None else out
        while at < len(operations) and (records or out):
            if not records:
                at, records, out = at + 1, out, []
                continue
            if operations[at].step.is_async:
                for record in records:
                    await self._settle(operations[at], record, operations[at].call, out)
                at, records, out = at + 1, out, []
                continue
            end = next((i for i in range(at, len(operations)) if operations[i].step.is_async), len(operations))
            outcome: list[Any] | Suspended
            if not out and _need_no_thread(operations[at:end], records):
                outcome = self.compute(records, at, end)
            else:
                async with run.turns or nullcontext():
                    place = (records, at, end, out, run.computing())
                    outcome = await run.threads.in_turn(run.group, self.compute, *place)
            if isinstance(outcome, Suspended):
                await self._settle(operations[outcome.at], outcome.record, outcome.result, outcome.out)
                at, records, out = outcome.at, outcome.rest, outcome.out
            else:
                at, records, out = end, outcome, []
        return records

    async def end(self) -> list[Any]:
        """Returns what is left to give when no more records come."""
        results: list[Any] = []
        for at, operation in enumerate(self.operations):
            left = operation.end()
            if left:
                results += await self.feed(left, at + 1)
        return results

    def compute(
        self,
        records: list[Any],
        at: int = 0,
        end: int | None = None,
        out: list[Any] | None = None,
        guard: AbstractContextManager[None] | None = None,
    ) -> list[Any] | Suspended:
        """Runs synchronous operations in the calling thread, under `guard`; `out` is what the first gave already."""
        with guard or nullcontext():
            for number in range(at, len(self.operations) if end is None else end):
                operation = self.operations[number]
                if isinstance(operation, Limit | LocalCount):
                    records, out = operation.many(records), None
                    continue
                results = [] if out is None else out
                call, take = operation.call, operation.take
                for index, record in enumerate(records):
                    try:
                        result = call(record)
                        if type(result) not in PLAIN and inspect.isawaitable(result):
                            waiting = record_of(result) if type(result) is GearsFuture else result
                            return Suspended(number, results, record, waiting, records[index + 1 :])
                        take(record, result, results)
                    except Cancelled:
                        raise
                    except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
                        self._run.failed(error)
                records, out = results, None
        return records

    async def resume(self, suspended: Suspended) -> list[Any]:
        """In the loop: awaits what `compute` reached, and goes on from there."""
        operation = self.operations[suspended.at]
        await self._settle(operation, suspended.record, suspended.result, suspended.out)
        return await self.feed(suspended.rest, suspended.at, suspended.out)

    async def _settle(self, operation: Operation, record: Any, start: Callable[[Any], Any], out: list[Any]) -> None:
        """Takes what `start(record)` gives, awaited where it must be."""
        run = self._run
        try:
            result = start(record)
            if isinstance(result, Future):
                result = asyncio.wrap_future(result)
            if inspect.isawaitable(result):
                result = await run.threads.stepping(result, run.name, run.request)
            operation.take(record, result, out)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if run.cancelled or (task is not None and task.cancelling()):
                raise
            run.failed(RuntimeError("what the function awaited was cancelled"))
        except BaseException as error:  # noqa: BLE001 - as in `compute`
            run.failed(error)


def _need_no_thread(operations: Sequence[Operation], records: list[Any]) -> bool:
    """Whether no user's code is run."""
    light = len(records) <= LIGHT and all(map(is_light, records))
    return all(
        isinstance(operation, Limit | LocalCount) or (light and operation.step.function is convert)
        for operation in operations
    )


def compute_here(run: Run, steps: Sequence[GearsStep], records: list[Any]) -> list[Any]:
    """All steps in the calling thread, for a function that a function calls; a thread of the pool may wait."""
    for operation in Chain(run, steps).operations:
        if isinstance(operation, Limit | LocalCount):
            records = operation.many(records) + operation.end()
            continue
        out: list[Any] = []
        for record in records:
            try:
                result = operation.call(record)
                if inspect.isawaitable(result):
                    result = _waited(run, result)
                operation.take(record, result, out)
            except Cancelled:
                raise
            except BaseException as error:  # noqa: BLE001 - as in `compute`
                run.failed(error)
        records = out + operation.end()
    return records


def _waited(run: Run, awaitable: Awaitable[Any]) -> Any:
    if run.threads.in_loop():
        if inspect.iscoroutine(awaitable):  # else Python warns that nobody awaited it
            awaitable.close()
        raise RuntimeError("a coroutine can't call a hook that awaits; make itself a plain function")

    async def result() -> Any:
        return await awaitable

    return run.threads.wait(result())
