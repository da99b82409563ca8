"""Records that wait: what operations gave for them is awaited in the loop, side by side."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.threads import PULSE, Cancelled

AWAITED = 4000  # records of a chain that are awaited at once

Result: TypeAlias = tuple[Any, BaseException | None]  # (what an operation gave, why it failed)


@dataclass(slots=True)
class Work:
    """Records in synchronous operations: each goes as far as it can before the next one begins."""

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
class Awaited:
    """A record whose operation gave something to await."""

    at: int  # index of the operation
    record: Any
    waiting: Any

    def start(self) -> Any:
        return self.waiting


@dataclass(slots=True)
class Begun:
    """Records before the operation `at`, behind others that are awaited."""

    at: int
    records: list[Any]


@dataclass(slots=True)
class Suspended:
    """Work that reached something to await."""

    work: Work
    begun: list[Awaited | Begun]  # in the order of their records

    def awaited(self) -> Iterator[Awaited]:
        return (one for one in self.begun if isinstance(one, Awaited))


async def results_of(run: Run, starts: Sequence[Callable[[], Any]]) -> list[Result]:
    """Returns the results of all `starts`, in their order."""
    if len(starts) == 1:
        return [await result_of(run, starts[0])]
    results: list[Result] = [(None, asyncio.CancelledError())] * len(starts)
    left = iter(enumerate(starts))

    async def work() -> None:
        for number, start in left:
            results[number] = await result_of(run, start)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(len(starts), AWAITED)):
            group.create_task(work())
    return results


async def result_of(run: Run, start: Callable[[], Any]) -> Result:
    """Returns the value of `start()`, awaited if need be. Raises CancelledError when the run is cancelled."""
    try:
        result = start()
        if isinstance(result, Future):
            result = asyncio.wrap_future(result)
        if inspect.isawaitable(result):
            with within_deadline(run):
                result = await run.threads.stepping(result, run.name, run.request)
        return result, None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if run.cancelled or (task is not None and task.cancelling()):
            raise
        return None, RuntimeError("what the function awaited was cancelled")
    except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
        return None, error


@contextmanager
def within_deadline(run: Run) -> Iterator[None]:
    """Ends what the task awaits in the block by Cancelled, once the run was at nothing for the seconds that it has.

    Whoever swallows that is told again. A run() that the function awaits has deadlines of its own.
    """
    task, begun, cancels = asyncio.current_task(), time.monotonic(), 0
    timer: asyncio.TimerHandle | None = None
    assert task is not None

    def look() -> None:
        nonlocal timer, cancels
        left = max(begun, run.progressed) + run.seconds - time.monotonic()
        if left <= 0 and run.holders <= 1:
            cancels += 1
            task.cancel()
        timer = run.threads.loop.call_later(max(left, PULSE), look)

    if run.seconds:
        timer = run.threads.loop.call_later(run.seconds, look)
    try:
        yield
    except asyncio.CancelledError:
        if cancels and not run.cancelled and task.cancelling() == cancels:
            raise Cancelled from None
        raise
    finally:
        if timer is not None:
            timer.cancel()
        for _ in range(cancels):
            task.uncancel()


def waited(run: Run, awaitable: Awaitable[Any] | Future[Any]) -> Result:
    """Returns the value of an awaitable, for a thread of the pool, which may wait. Raises Cancelled."""
    if run.threads.in_loop():
        if inspect.iscoroutine(awaitable):  # else Python warns that nobody awaited it
            awaitable.close()
        return None, RuntimeError("a coroutine can't call a hook that awaits; make itself a plain function")

    async def result() -> Any:
        return await (asyncio.wrap_future(awaitable) if isinstance(awaitable, Future) else awaitable)

    try:
        return run.threads.wait(result()), None
    except Cancelled:
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return None, error
