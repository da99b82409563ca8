"""One run of a function: its steps over records, with what the run carries (reply, cancellation).

A step that raises loses its record and leaves an error. `current()` gives any code of the run its Run.
"""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from typing import Any, Protocol

from redis import RedisError

from shardqa.errors import ShardqaError
from shardqa.worker.calls import Argument, Rights
from shardqa.worker.gears.pipeline.turns import Turns
from shardqa.worker.statistics import bound_on_memory
from shardqa.worker.threads import Breakable, Cancelled, Threads

MAX_ERRORS = 1000  # error texts one run keeps; the rest is counted
CALLED_WRONGLY = re.compile(r"Builder\.\w+\(\) (takes|missing)")  # a step, by a script
PROGRESS_EVERY = 0.25  # seconds between two words of progress


class Unset(Enum):
    UNSET = "unset"


class FlatError(Exception):
    """An error of `flat_error`: its text alone, without the place it came from."""


class NextHook(Protocol):
    """Runs the next hook of a hooked command, or the command itself."""

    def next(self, run: Run, arguments: Sequence[Argument]) -> Any: ...


class Run(Breakable):
    """One run. Owned by the coroutine that drives it; functions reach it through `current()`."""

    def __init__(self, threads: Threads, rights: Rights) -> None:
        super().__init__()
        self.threads = threads
        self.group = rights.context
        self.caller = rights  # of the client it runs for, else as `rights`
        self.rights = rights  # its commands have these; not the caller's in a privileged function
        self.command: Sequence[str | bytes] = ()  # what the client sent, for get_command()
        self.reply: Any = Unset.UNSET  # set by override_reply()
        self.hook: NextHook | None = None  # what call_next calls, in a function that hooks a command
        self.turns: Turns | None = None  # of its registration: held while its plain code runs
        self.waited_as = ""  # id of its execution, where that was listed before it began
        self.stopped = False  # somebody wanted that: the client left, or RG.ABORTEXECUTION
        self.holds = False  # a transaction or a script waits for it, and with that Redis
        self.errors: list[str] = []
        self.dropped_errors = 0
        self.task: asyncio.Task[Any] | None = None
        self.profile: Callable[[], AbstractContextManager[None]] | None = None  # around what its steps compute
        self.on_progress: Callable[[], None] | None = None  # tells the module that a part of its work is done
        self.progressed = time.monotonic()
        self.on_release: Callable[[], None] | None = None  # tells the module that nothing needs these rights any more
        self.holders = 1  # whoever answers the request, and each run of it that goes on beyond; loop's thread only

    def hold(self) -> None:
        """Keeps the run's rights beyond its reply; each `hold` needs a `release`. Loop's thread."""
        self.holders += 1

    def release(self) -> None:
        self.holders -= 1
        if self.holders == 0 and self.on_release is not None:
            self.on_release()

    def progress(self) -> None:
        """Notes that a part of the work is done. The module is told now and then, whatever their number."""
        now = time.monotonic()
        if now - self.progressed > PROGRESS_EVERY:
            self.progressed = now
            if self.on_progress is not None:
                self.on_progress()

    def cancel(self) -> None:
        """Stops the run as soon as possible. Any thread."""
        self.stopped = True
        self.interrupt()
        self.end_within(self.threads.activity, self.threads.stall)
        if self.task is not None:
            self.threads.loop.call_soon_threadsafe(self.task.cancel)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Lets the run be interrupted and profiled within the block. In the thread that computes."""
        with self.running(self.threads.activity), self.profile() if self.profile else nullcontext():
            yield

    def failed(self, error: BaseException) -> None:
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(describe(error))
        else:
            self.dropped_errors += 1


_current: ContextVar[Run | None] = ContextVar("run", default=None)


def current() -> Run | None:
    return _current.get()


def enter(run: Run | None) -> None:
    """Makes `run` the current one of this task and the tasks it starts; None: no run."""
    _current.set(run)


def describe(error: BaseException) -> str:
    """Returns an error as one line: one of ours or of Redis as it stands, a function's with file, line and type."""
    if isinstance(error, ShardqaError):
        return f"ERR {error.code}: {_text_of(error)}"
    if isinstance(error, RedisError | FlatError):
        return _text_of(error) or "ERR flat_error without a text"
    if isinstance(error, asyncio.CancelledError):
        return "ERR the execution was aborted"
    if isinstance(error, Cancelled):
        return "TIMEOUT the function was stopped: it ran too long, or its client left"
    if isinstance(error, MemoryError):
        return f"OOM the function needed more memory than the worker may have{bound_on_memory()}"
    name = type(error).__name__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/shardqa/worker/" not in f.filename]
    if isinstance(error, SyntaxError):
        text = error.msg if "invalid syntax" in error.msg else f"invalid syntax, {error.msg}"
        return f"ERR SyntaxError: {text} ({error.filename}, line {error.lineno})"
    text = _text_of(error)
    wrong = "wrong number of args: " if name == "TypeError" and CALLED_WRONGLY.match(text) else ""
    place = f' (File "{frames[-1].filename}", line {frames[-1].lineno}, in {frames[-1].name})' if frames else ""
    return f"ERR {name}: {wrong}{text}{place}"


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as raised:  # noqa: BLE001 - of a function's own class
        return f"its text raises {type(raised).__name__}"
