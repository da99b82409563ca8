"""Prefixes that sessions follow (`runtime.watch`): batches of key events, and calls to scan again.

Events arrive in the reading thread and are only queued there; one coroutine per watch awaits its callbacks, one
after another, so a resync stands exactly where it came in the order of the events.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from shardqa.worker.frames import Type
from shardqa.worker.gears.pipeline.run import describe
from shardqa.worker.link import Link
from shardqa.worker.runtime import KeyEvent
from shardqa.worker.threads import Threads

BATCH = 1000  # events `changed` gets at once
PROMOTED = "promoted"  # reason of the resync of a replica that became master
MAX_QUEUED = 200_000  # events of one watch; past it they become one resync, which covers them all

Changed = Callable[[Sequence[KeyEvent]], Awaitable[None]]
Resync = Callable[[str], Awaitable[None]]


class Watch:
    def __init__(self, session: str, prefix: str, on_change: Changed, resync: Resync) -> None:
        self.session = session
        self.prefix = prefix
        self._changed = on_change
        self._resync = resync
        self._lock = threading.Lock()
        self._queue: deque[KeyEvent | str] = deque()  # a str is the reason of a resync
        self._wake = asyncio.Event()  # loop's thread only
        self.task: asyncio.Task[None] | None = None

    def push(self, item: KeyEvent | str) -> bool:
        """Queues an event; True when the queue was empty, so that its coroutine must be woken. Any thread."""
        with self._lock:
            if item == PROMOTED and len(self._queue) < MAX_QUEUED:
                self._queue.append(item)  # the index serves during the scan: what came before is told first
                return len(self._queue) == 1
            if isinstance(item, str) or len(self._queue) >= MAX_QUEUED:
                self._queue.clear()  # a scan sees all that came before it
                item = item if isinstance(item, str) else "overflow"
                self._queue.append(item)
                return True
            self._queue.append(item)
            return len(self._queue) == 1

    def wake(self) -> None:
        self._wake.set()

    async def follow(self, threads: Threads, log: Callable[[str, str], None]) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while item := self._take():
                try:
                    callback = self._resync(item) if isinstance(item, str) else self._changed(item)
                    await threads.stepping(callback, f"watch of {self.prefix!r} by session {self.session}".encode())
                except asyncio.CancelledError:
                    raise
                except BaseException as error:  # noqa: BLE001 - a failing callback must not end the watch
                    log(f"watch of {self.prefix!r} failed: {describe(error)}", "warning")

    def _take(self) -> list[KeyEvent] | str | None:
        batch: list[KeyEvent] = []
        with self._lock:
            while self._queue and len(batch) < BATCH:
                if isinstance(self._queue[0], str):
                    return batch or str(self._queue.popleft())
                batch.append(self._queue.popleft())  # type: ignore[arg-type]
        return batch or None


class Watches:
    def __init__(self, link: Link, threads: Threads) -> None:
        self._link = link
        self._threads = threads
        self._watches: tuple[Watch, ...] = ()  # replaced as a whole: the reading thread iterates without a lock
        self._known: set[tuple[str, str]] = set()  # prefixes and sessions that the module has
        self._started = False

    def add(self, watch: Watch, log: Callable[[str, str], None]) -> None:
        """Adds a watch. Loop's thread."""
        # in a context of its own: it runs for no client, and not on behalf of the script that began it
        watch.task = contextvars.Context().run(self._threads.task, watch.follow(self._threads, log))
        self._watches += (watch,)
        pair = (watch.prefix, watch.session)
        if pair not in self._known:
            self._known.add(pair)
            self._link.send_list(Type.WATCH, 0, pair)
        if self._started:
            watch.push("start")
            watch.wake()

    def drop(self, session: str) -> None:
        """Ends the watches of a session. Loop's thread."""
        for watch in self._watches:
            if watch.session == session and watch.task is not None:
                watch.task.cancel()
        self._watches = tuple(watch for watch in self._watches if watch.session != session)

    def start(self) -> None:
        """Begins all watches, once the keyspace is loaded. Loop's thread."""
        self._started = True
        self.resync("start")

    def resync(self, reason: str) -> None:
        """Has all watches scan again. Any thread."""
        for watch in self._watches:
            self._push(watch, reason)

    def event(self, event: KeyEvent) -> None:
        """Queues an event in the watches of its key. Reading thread."""
        for watch in self._watches:
            if event.key.startswith(watch.prefix):
                self._push(watch, event)

    def _push(self, watch: Watch, item: KeyEvent | str) -> None:
        if watch.push(item):
            self._threads.loop.call_soon_threadsafe(watch.wake)
