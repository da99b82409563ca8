"""A chain of steps at work.

A chain is made anew for every run, because steps that join records keep state in it. Synchronous steps that follow one
another run on the pool in one go, and each record goes through all of them before the next one sets out, as in
RedisGears; what they return that must be awaited (a coroutine, a future, a `gearsFuture`) is awaited in the loop, so
that it holds no thread. Records are awaited side by side, but in steps that join them, and go on in their order.
"""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from shardqa.worker.gears.interpreters.interpreter import FarFunction
from shardqa.worker.gears.pipeline.futures import GearsFuture, record_of
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.pipeline.steps import (
    GLOBAL,
    LIGHT,
    OPERATIONS,
    PASSING,
    PLAIN,
    GearsStep,
    Operation,
    convert,
    is_light,
)
from shardqa.worker.gears.pipeline.suspension import (
    AWAITED,
    Awaited,
    Begun,
    Result,
    Suspended,
    Work,
    result_of,
    results_of,
    waited,
)
from shardqa.worker.threads import Cancelled


class Chain:
    """Steps without a global one, at work. One coroutine uses it."""

    def __init__(self, run: Run, steps: Sequence[GearsStep]) -> None:
        self._run = run
        self.operations = [OPERATIONS[step.kind](step) for step in steps if step.kind not in GLOBAL]

    async def feed(self, records: list[Any], at: int = 0) -> list[Any]:
        """Takes records; returns the results so far: steps that join records keep theirs until the end.

        `at` is the operation to begin with.
        """
        operations = self.operations
        while at < len(operations) and records:
            operation = operations[at]
            if operation.step.is_async:
                out: list[Any] = []
                self._run.records += len(records)
                if len(records) > 1 and operation.step.kind in PASSING:
                    results = await results_of(self._run, [partial(operation.call, record) for record in records])
                    for record, result in zip(records, results, strict=True):
                        self._take(operation, record, result, out)
                else:
                    for record in records:
                        self._take(operation, record, await result_of(self._run, partial(operation.call, record)), out)
                at, records = at + 1, out
            else:
                end = next((i for i in range(at, len(operations)) if operations[i].step.is_async), len(operations))
                at, records = end, await self._finish(Work.of(records, at, end))
        return records

    async def end(self) -> list[Any]:
        """Returns the last results, when no more records come."""
        results: list[Any] = []
        for at, records, far in self.endings():
            if far is not None:
                records = await self._run.threads.in_pool(self._run, far.fetched, records)
            results += await self.feed(records, at)
        return results

    def endings(self) -> Iterator[tuple[int, list[Any], FarFunction | None]]:
        """Yields the records that each operation kept, with the number of the operation that takes them next.

        The caller feeds them before it goes on, and has a far function fetch its own first.
        """
        for at, operation in enumerate(self.operations, 1):
            if records := operation.end():
                function = operation.step.function
                yield at, records, function if isinstance(function, FarFunction) else None

    def compute_waiting(self, records: list[Any], at: int = 0) -> list[Any]:
        """Computes from `at` on in the calling thread, which also waits for awaitables."""
        work = Work.of(records, at, len(self.operations))
        while isinstance(outcome := self.advance(work), Suspended):
            self._go_on(outcome, [waited(self._run, one.waiting) for one in outcome.awaited()])
        return outcome

    async def resume(self, suspension: Suspended) -> list[Any]:
        """Awaits what `advance` reached, and goes on from there. In the loop."""
        await self._await(suspension)
        return await self._finish(suspension.work)

    async def _finish(self, work: Work) -> list[Any]:
        run = self._run
        while True:
            outcome: list[Any] | Suspended
            if self._needs_no_thread(work):
                outcome = self.advance(work)
            else:
                async with run.turns or nullcontext():
                    outcome = await run.threads.in_turn(run.group, self.advance, work, run.computing())
            if not isinstance(outcome, Suspended):
                return outcome
            await self._await(outcome)

    async def _await(self, suspension: Suspended) -> None:
        self._go_on(suspension, await results_of(self._run, [one.start for one in suspension.awaited()]))

    def _go_on(self, suspension: Suspended, results: Iterable[Result]) -> None:
        left, after = iter(results), list[Begun]()
        for one in suspension.begun:
            if isinstance(one, Awaited):
                out: list[Any] = []
                self._take(self.operations[one.at], one.record, next(left), out)
                one = Begun(one.at + 1, out)
            if after and after[-1].at == one.at:
                after[-1].records += one.records
            else:
                after.append(one)
        for one in reversed(after):
            suspension.work.put(one.at, one.records)

    def advance(self, work: Work, guard: AbstractContextManager[None] | None = None) -> list[Any] | Suspended:
        """Computes in the calling thread, under `guard`, up to awaitables. Raises Cancelled.

        Behind a record that must be awaited no other one passes that operation, so all keep their order: `end` falls to
        it. In steps that take records one by one up to AWAITED wait at a time, in others one.
        """
        operations, stack, end, room = self.operations, work.stack, work.end, AWAITED
        waiting_records: list[Awaited | Begun] = []
        with guard or nullcontext():
            while stack and room:
                at, records = stack[-1]
                if not records:
                    stack.pop()
                    continue
                out = [records.pop()]
                self._run.next_record(self._run.threads.activity)
                while at < end and len(out) == 1:
                    operation, record, out = operations[at], out[0], []
                    if (waiting := self._call(operation, record, out)) is not None:
                        waiting_records.append(Awaited(at, record, waiting))
                        end, room = at + 1, room - 1 if operation.step.kind in PASSING else 0
                    at += 1
                if out and at < end:
                    work.put(at, out)
                elif out and waiting_records:
                    waiting_records.append(Begun(at, out))
                else:
                    work.done += out
        return Suspended(work, waiting_records) if waiting_records else work.done

    def _call(self, operation: Operation, record: Any, out: list[Any]) -> Any:
        """Puts the record's results into `out`, or returns what must be awaited for them. Raises Cancelled."""
        try:
            result = operation.call(record)
            if type(result) not in PLAIN and inspect.isawaitable(result):
                return record_of(result) if type(result) is GearsFuture else result
            operation.take(record, result, out)
        except Cancelled:
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
            self._run.failed(error)
        return None

    def _needs_no_thread(self, work: Work) -> bool:
        return all(_need_no_thread(self.operations[at : work.end], records) for at, records in work.stack if records)

    def _take(self, operation: Operation, record: Any, result: Result, out: list[Any]) -> None:
        value, error = result
        try:
            if error is None:
                operation.take(record, value, out)
        except Cancelled:
            raise
        except BaseException as raised:  # noqa: BLE001 - as in `_call`
            error = raised
        if error is not None:
            self._run.failed(error)


def _need_no_thread(operations: Sequence[Operation], records: list[Any]) -> bool:
    """Returns whether these operations run no user's code."""
    light = len(records) <= LIGHT and all(map(is_light, records))
    return all(one.step.function is None or (light and one.step.function is convert) for one in operations)


def compute_here(run: Run, steps: Sequence[GearsStep], records: list[Any]) -> list[Any]:
    """Computes all steps in the calling thread, for a function that a function calls; that thread may wait."""
    chain = Chain(run, steps)
    results = chain.compute_waiting(records)
    for at, left, far in chain.endings():
        results += chain.compute_waiting(left if far is None else far.fetched(left), at)
    return results
