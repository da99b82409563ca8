"""One run of a function: its steps over records, with what the run carries (reply, cancellation).

Records go through the steps in chunks. Synchronous callbacks run on the pool, `async def` ones in the loop; a
step that raises loses its record and leaves an error. `current()` gives any code of the run its Execution.
"""

import asyncio
import inspect
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any

from redis import RedisError

from shardqa.errors import ShardqaError
from shardqa.module.worker.threads import Breakable, Cancelled, Threads

MAX_ERRORS = 1000  # error texts one run keeps; the rest is counted


class Unset(Enum):
    UNSET = "unset"


class Kind(Enum):
    MAP = "map"
    FLATMAP = "flatmap"
    FILTER = "filter"
    FOREACH = "foreach"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Step:
    kind: Kind
    function: Callable[[Any], Any] | None = None  # None for COUNT

    @property
    def is_async(self) -> bool:
        call = getattr(self.function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)


class Execution(Breakable):
    """One run. Owned by the coroutine that drives it; functions reach it through `current()`."""

    def __init__(self, threads: Threads, user: str, command: Sequence[str | bytes] = ()) -> None:
        super().__init__()
        self.threads = threads
        self.user = user  # whose rights its commands have
        self.command = command  # what the client sent, for get_command()
        self.reply: Any = Unset.UNSET  # set by override_reply()
        self.errors: list[str] = []
        self.dropped_errors = 0
        self.task: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        """Any thread: stops the run as soon as it can be stopped."""
        self.interrupt()
        if self.task is not None:
            self.threads.loop.call_soon_threadsafe(self.task.cancel)

    def failed(self, error: BaseException) -> None:
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(describe(error))
        else:
            self.dropped_errors += 1


_current: ContextVar[Execution | None] = ContextVar("execution", default=None)


def current() -> Execution | None:
    return _current.get()


def enter(execution: Execution) -> None:
    """Makes `execution` the current one of this task and of what it starts."""
    _current.set(execution)


async def run_steps(execution: Execution, steps: Sequence[Step], records: list[Any]) -> list[Any]:
    """`records` after all steps; errors are kept by the execution."""
    at = 0
    while at < len(steps):
        if steps[at].is_async:
            records = await _run_async(execution, steps[at], records)
            at += 1
        else:
            end = next((i for i in range(at, len(steps)) if steps[i].is_async), len(steps))
            records = await execution.threads.in_pool(execution, _run_sync, execution, steps[at:end], records)
            at = end
    return records


async def run_chunks(
    execution: Execution, steps: Sequence[Step], chunks: AsyncIterator[list[Any]]
) -> tuple[list[Any], Sequence[Step]]:
    """This shard's part of a run: the records up to the first step that needs all shards (a count's number
    already summed here), and the steps that are left for whoever collects."""
    barrier = next((i for i, step in enumerate(steps) if step.kind is Kind.COUNT), len(steps))
    results: list[Any] = []
    total = 0
    async for chunk in chunks:
        records = await run_steps(execution, steps[:barrier], chunk)
        total += len(records)
        if barrier == len(steps):
            results += records
    return ([total], steps[barrier:]) if barrier < len(steps) else (results, [])


async def finish(execution: Execution, rest: Sequence[Step], parts: list[Any]) -> list[Any]:
    """The records of all shards through the steps `run_chunks` left over."""
    if not rest:
        return parts
    assert rest[0].kind is Kind.COUNT
    return await run_steps(execution, rest[1:], [sum(parts)])


async def _run_async(execution: Execution, step: Step, records: list[Any]) -> list[Any]:
    out: list[Any] = []
    for record in records:
        assert step.function is not None
        try:
            _emit(step.kind, record, await step.function(record), out)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
            execution.failed(error)
    return out


def _run_sync(execution: Execution, steps: Sequence[Step], records: list[Any]) -> list[Any]:
    for step in steps:
        if step.kind is Kind.COUNT:
            records = [len(records)]
            continue
        out: list[Any] = []
        for record in records:
            assert step.function is not None
            try:
                result = step.function(record)
                if inspect.isawaitable(result):  # a plain function that returns a coroutine
                    result = execution.threads.wait(_awaited(result))
                _emit(step.kind, record, result, out)
            except Cancelled:
                raise
            except BaseException as error:  # noqa: BLE001 - see above
                execution.failed(error)
        records = out
    return records


async def _awaited(waiting: Any) -> Any:
    return await waiting


def _emit(kind: Kind, record: Any, result: Any, out: list[Any]) -> None:
    match kind:
        case Kind.MAP:
            out.append(result)
        case Kind.FLATMAP:
            if isinstance(result, list):
                out.extend(result)
            else:  # as RedisGears: only a list is spread
                out.append(result)
        case Kind.FILTER:
            if result:
                out.append(record)
        case Kind.FOREACH:
            out.append(record)
        case Kind.COUNT:
            raise AssertionError("a count has no callback")


def describe(error: BaseException) -> str:
    """An error of a function as one line: a fault of ours or of Redis as it stands, else with file, line and type."""
    if isinstance(error, ShardqaError):
        return f"ERR {error.code}: {error}"
    if isinstance(error, RedisError):
        return str(error)
    if isinstance(error, Cancelled):
        return "TIMEOUT the function was stopped: it ran too long, or its client left"
    name = type(error).__name__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/module/worker/" not in f.filename]
    if isinstance(error, SyntaxError):
        return f"ERR SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    place = f' (File "{frames[-1].filename}", line {frames[-1].lineno}, in {frames[-1].name})' if frames else ""
    return f"ERR {name}: {error}{place}"
