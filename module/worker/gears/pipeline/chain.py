"""A chain of steps at work.

A chain is made anew for every run, because steps that join records keep state in it. Synchronous steps that follow one
another run on the pool in one go, and each record goes through all of them before the next one sets out, as in
RedisGears; what they return that must be awaited (a coroutine, a future, a `gearsFuture`) is awaited in the loop, so
that it holds no thread, and the rest of the records follow in order.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Self

from shardqa.module.worker.gears.pipeline.futures import GearsFuture, record_of
from shardqa.module.worker.gears.pipeline.run import Run
from shardqa.module.worker.gears.pipeline.steps import (
    GLOBAL,
    LIGHT,
    OPERATIONS,
    PLAIN,
    GearsStep,
    Operation,
    convert,
    is_light,
)
from shardqa.module.worker.threads import Cancelled


@dataclass(slots=True)
class Work:
    """Records on their way through synchronous operations: each goes as far as it can before the next one sets out."""

    stack: list[tuple[int, list[Any]]]  # (index of an operation, the records before it: the next one stands last)
    end: int  # the operation that is synchronous no more
    done: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, records: Sequence[Any], at: int, end: int) -> Self:
        work = cls([], end)
        work.put(at, records)
        return work

    def put(self, at: int, records: Sequence[Any]) -> None:
        self.stack.append((at, [*reversed(records)]))


@dataclass(slots=True)
class Suspended:
    """Work that reached something to await."""

    work: Work
    at: int  # index of the operation
    record: Any
    waiting: Any

    def result(self, _record: Any) -> Any:
        return self.waiting


class Chain:
    """Steps of which none is global. Used by one coroutine."""

    def __init__(self, run: Run, steps: Sequence[GearsStep]) -> None:
        self._run = run
        self.operations = [OPERATIONS[step.kind](step) for step in steps if step.kind not in GLOBAL]

    async def feed(self, records: list[Any], at: int = 0) -> list[Any]:
        """Returns what the records became so far; steps that join records keep theirs until the end.

        `at` is the operation to begin with.
        """
        operations = self.operations
        while at < len(operations) and records:
            if operations[at].step.is_async:
                out: list[Any] = []
                for record in records:
                    await self._settle(operations[at], record, operations[at].call, out)
                at, records = at + 1, out
            else:
                end = next((i for i in range(at, len(operations)) if operations[i].step.is_async), len(operations))
                at, records = end, await self._finish(Work.of(records, at, end))
        return records

    async def end(self) -> list[Any]:
        """Returns what is left to give when no more records come."""
        results: list[Any] = []
        for at, operation in enumerate(self.operations):
            left = operation.end()
            if left:
                results += await self.feed(left, at + 1)
        return results

    def compute(self, records: list[Any], guard: AbstractContextManager[None] | None = None) -> list[Any] | Suspended:
        """Runs the operations in the calling thread, under `guard`; a coroutine is something to await like others."""
        return self._advance(Work.of(records, 0, len(self.operations)), guard)

    def compute_waiting(self, records: list[Any], at: int = 0) -> list[Any]:
        """From `at` on in the calling thread, which waits for what others await."""
        work = Work.of(records, at, len(self.operations))
        while isinstance(outcome := self._advance(work), Suspended):
            out: list[Any] = []
            try:
                self.operations[outcome.at].take(outcome.record, _waited(self._run, outcome.waiting), out)
            except Cancelled:
                raise
            except BaseException as error:  # noqa: BLE001 - as in `_advance`
                self._run.failed(error)
            work.put(outcome.at + 1, out)
        return outcome

    async def resume(self, suspended: Suspended) -> list[Any]:
        """In the loop: awaits what `compute` reached, and goes on from there."""
        await self._awaited(suspended)
        return await self._finish(suspended.work)

    async def _finish(self, work: Work) -> list[Any]:
        run = self._run
        while True:
            outcome: list[Any] | Suspended
            if self._needs_no_thread(work):
                outcome = self._advance(work)
            else:
                async with run.turns or nullcontext():
                    outcome = await run.threads.in_turn(run.group, self._advance, work, run.computing())
            if not isinstance(outcome, Suspended):
                return outcome
            await self._awaited(outcome)

    async def _awaited(self, suspended: Suspended) -> None:
        out: list[Any] = []
        await self._settle(self.operations[suspended.at], suspended.record, suspended.result, out)
        suspended.work.put(suspended.at + 1, out)

    def _advance(self, work: Work, guard: AbstractContextManager[None] | None = None) -> list[Any] | Suspended:
        """In the calling thread. Raises Cancelled."""
        operations, stack, end = self.operations, work.stack, work.end
        with guard or nullcontext():
            while stack:
                at, records = stack[-1]
                if not records:
                    stack.pop()
                    continue
                record = records.pop()
                while at < end:
                    operation, out = operations[at], list[Any]()
                    try:
                        result = operation.call(record)
                        if type(result) not in PLAIN and inspect.isawaitable(result):
                            waiting = record_of(result) if type(result) is GearsFuture else result
                            return Suspended(work, at, record, waiting)
                        operation.take(record, result, out)
                    except Cancelled:
                        raise
                    except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
                        self._run.failed(error)
                    at += 1
                    if len(out) != 1:
                        if out:
                            work.put(at, out)
                        break
                    record = out[0]
                else:
                    work.done.append(record)
        return work.done

    def _needs_no_thread(self, work: Work) -> bool:
        return all(_need_no_thread(self.operations[at : work.end], records) for at, records in work.stack if records)

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
        except BaseException as error:  # noqa: BLE001 - as in `_advance`
            run.failed(error)


def _need_no_thread(operations: Sequence[Operation], records: list[Any]) -> bool:
    """Whether no user's code is run."""
    light = len(records) <= LIGHT and all(map(is_light, records))
    return all(one.step.function is None or (light and one.step.function is convert) for one in operations)


def compute_here(run: Run, steps: Sequence[GearsStep], records: list[Any]) -> list[Any]:
    """All steps in the calling thread, for a function that a function calls; a thread of the pool may wait."""
    chain = Chain(run, steps)
    results = chain.compute_waiting(records)
    for at, operation in enumerate(chain.operations):
        results += chain.compute_waiting(operation.end(), at + 1)
    return results


def _waited(run: Run, awaitable: Awaitable[Any] | Future[Any]) -> Any:
    if run.threads.in_loop():
        if inspect.iscoroutine(awaitable):  # else Python warns that nobody awaited it
            awaitable.close()
        raise RuntimeError("a coroutine can't call a hook that awaits; make itself a plain function")

    async def result() -> Any:
        return await (asyncio.wrap_future(awaitable) if isinstance(awaitable, Future) else awaitable)

    return run.threads.wait(result())
