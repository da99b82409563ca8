"""The worker's threads, and how functions of users run on them.

The main thread and another read the socket in turns (socket_threads.py), and one of them may answer a miss by itself
(sources/misses.py). One thread runs the event loop with all async code. Other synchronous functions run on a pool,
three of one session at once (RedisGears' ExecutionThreads): those that hang hold up no other session. Each model has
its own thread (ai/batching.py).
A function that is cancelled while it computes gets `Cancelled` raised inside its thread, at its next bytecode;
a function that holds the loop's thread longer than `stall` seconds gets the same from the watchdog, because
nothing else of the worker moves meanwhile. What runs inside C can't be reached that way: past its deadline the module
kills the worker for it (activity.py).
"""

import asyncio
import contextvars
import ctypes
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import uvloop

from shardqa.worker.activity import NONE, Activity, ActivityKind, Stepping

T = TypeVar("T")

POOL = 3  # synchronous functions of one session that run at once
THREADS = 32  # of all sessions; what waits for one is bounded by its request's deadline
HELPERS = 2  # threads of asyncio.to_thread
PULSE = 0.5  # seconds between two looks of the watchdog


class Cancelled(BaseException):
    """Raised inside a function that ran too long or whose client left. No `except Exception` swallows it."""


class Breakable:
    """A piece of work whose thread can be interrupted while it is inside `running()`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None  # thread ident, while user code of this work runs there
        self._slot = NONE  # while it runs
        self.cancelled = False
        self.group = ""  # the session whose functions it runs; those of one group hold up no others
        self.name = b"a function"  # for the log and INFO, when the worker has to be killed for it
        self.request = 0  # id of the frame it works for; 0: none
        self.seconds = 0.0  # one run in a thread may take; 0: no end. One that can't be interrupted costs the worker
        self.each = False  # `seconds` are those of each record
        self.records = 0  # that its functions have begun

    @contextmanager
    def running(self, activity: Activity) -> Iterator[None]:
        with self._lock:
            self._thread = threading.get_ident()
        self._slot = activity.begin(
            ActivityKind.FUNCTION, self.name, request=self.request, seconds=self.seconds, interrupt=self.interrupt
        )
        try:
            if self.cancelled:
                raise Cancelled
            yield
        finally:
            with self._lock:
                self._thread = None
                activity.end(self._slot)

    def next_record(self, activity: Activity) -> None:
        """Begins its time anew, where each record has one. In the thread that computes."""
        self.records += 1
        if self.each and not self.cancelled:
            activity.renew(self._slot, self.seconds, self.interrupt)

    def computes(self) -> bool:
        return self._thread is not None

    def end_within(self, activity: Activity, seconds: float) -> None:
        """Ends what it runs now within so many seconds, whatever it was given. Any thread."""
        with self._lock:
            if self._thread is not None:
                activity.limit(self._slot, seconds, self.interrupt)

    def interrupt(self) -> None:
        """Any thread."""
        self.cancelled = True
        with self._lock:
            if self._thread is not None:
                raise_in(self._thread)


class Threads:
    def __init__(self, stall: float, activity: Activity) -> None:
        self.stall = stall  # seconds the loop may stand still inside one function, and a function's run may take
        self.activity = activity
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(HELPERS, "helper"))
        self._pool = ThreadPoolExecutor(THREADS, "function")
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()  # by group; loop's thread
        self._tasks: set[asyncio.Task[Any]] = set()  # the loop itself keeps only weak references
        self._moved = False  # the loop has moved since the watchdog last looked
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)
        self._watchdog = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._watchdog.start()

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Starts a coroutine in the loop, from any thread. It must handle its own errors."""
        self.loop.call_soon_threadsafe(self.task, coroutine)

    def task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Starts a coroutine from the loop's thread."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def for_ever(self, again: Callable[[], Coroutine[Any, Any, None]], every: float) -> None:
        """Awaits `again()` every so many seconds, also after the watchdog hit it by mistake."""

        async def repeat() -> None:
            while True:
                with suppress(Cancelled):
                    await again()
                await asyncio.sleep(every)

        self.task(repeat())

    async def in_pool(self, work: Breakable, function: Callable[..., T], *args: Any) -> T:
        """Runs a synchronous function on the pool, in the caller's context."""
        return await self.in_turn(work.group, _broken_by, self.activity, work, function, *args)

    async def in_turn(self, group: str, function: Callable[..., T], *args: Any) -> T:
        """Runs a function that sees to its breaking off itself on the pool, as one of its group."""
        context = contextvars.copy_context()
        turns = self._turns.get(group)
        if turns is None:
            turns = self._turns[group] = asyncio.Semaphore(POOL)
        async with turns:
            return await self.loop.run_in_executor(self._pool, context.run, function, *args)

    def stepping(self, awaitable: Awaitable[Any], name: bytes, request: int = 0) -> Stepping:
        """Wraps what a function gave to await, for the loop. A step that never ends costs the worker."""
        return Stepping(self.activity, awaitable, name, request, self.stall + 2 * PULSE, self._move)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop and waits for it; for threads of the pool, which may be interrupted."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            while not wait([future], PULSE).done:  # a thread within C hears of nothing
                pass
        except Cancelled:
            future.cancel()
            raise
        return future.result()

    def in_loop(self) -> bool:
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt, Cancelled):  # a task of a function's own tried to leave
                continue

    def _watch(self) -> None:
        looks = 0  # in vain, one after another: a clock would also count the time the whole process was stopped
        while True:
            self.loop.call_soon_threadsafe(self._move)
            time.sleep(PULSE)
            looks = 0 if self._moved else looks + 1
            self._moved = False
            if looks * PULSE >= self.stall and self._thread.ident is not None:
                looks = 0
                raise_in(self._thread.ident)

    def _move(self) -> None:
        self._moved = True


def _broken_by(activity: Activity, work: Breakable, function: Callable[..., T], *args: Any) -> T:
    with work.running(activity):
        return function(*args)


def raise_in(thread: int) -> None:
    """Raises Cancelled in another thread at its next bytecode."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Cancelled))
