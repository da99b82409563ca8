"""The page of memory that the module reads even while this process hangs: its heartbeat, and what threads compute.

A thread takes a slot before it runs what others wrote (a function, a model) and gives it back afterwards. The heartbeat
needs the interpreter's lock for a moment, so it stops where C code keeps that lock; the module then knows from the
slots whom to blame. It also interrupts functions that are past their deadline; whom that does not reach the module
kills, and this process with it. The layout is in docs/frames.md.
"""

import mmap
import os
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

SIZE = 16384  # bytes of the page
SLOT_SIZE = 256  # the first place is the heartbeat's
SLOT = struct.Struct("<IIQQQI4x212s")  # kind, thread, request, subject, deadline (us), length of the name, name
NAME = 211  # bytes of a name
BEAT = struct.Struct("<Q")
BEAT_EVERY = 0.1  # seconds
NONE = -1  # the slot of whoever found none free: its work goes unseen
VARIABLE = "SHARDQA_ACTIVITY_FD"  # names the descriptor of the page


class ActivityKind(IntEnum):
    IDLE = 0
    FUNCTION = 1
    MODEL = 2
    LOAD = 3  # of a model


class Activity:
    """The slots of threads that compute; any thread may take and give one back."""

    def __init__(self) -> None:
        self._page = _page()
        self._free = list(range(1, SIZE // SLOT_SIZE))
        self._watched: dict[int, tuple[float, Callable[[], None]]] = {}  # slot -> deadline, how to interrupt its work

    def begin(
        self,
        kind: ActivityKind,
        name: bytes,
        *,
        request: int = 0,
        subject: int = 0,
        seconds: float = 0,
        interrupt: Callable[[], None] | None = None,
    ) -> int:
        """Shows the work of the calling thread, for at most `seconds` (0: for ever). Give the slot to `end`."""
        try:
            slot = self._free.pop()
        except IndexError:
            return NONE
        deadline = time.monotonic() + seconds if seconds else 0.0
        thread, name = threading.get_native_id(), name[:NAME]
        SLOT.pack_into(
            self._page, slot * SLOT_SIZE, kind, thread, request, subject, int(deadline * 1e6), len(name), name
        )
        if interrupt is not None and seconds:
            self._watched[slot] = (deadline, interrupt)
        return slot

    def limit(self, slot: int, seconds: float, interrupt: Callable[[], None]) -> None:
        """Bounds whoever has this slot to so many seconds, or fewer where it had them."""
        if slot == NONE:
            return
        deadline = time.monotonic() + seconds
        if slot in self._watched and self._watched[slot][0] <= deadline:
            return
        self._watched[slot] = (deadline, interrupt)
        struct.pack_into("<Q", self._page, slot * SLOT_SIZE + 24, int(deadline * 1e6))

    def renew(self, slot: int, seconds: float, interrupt: Callable[[], None]) -> None:
        """Gives whoever has this slot, and a deadline, so many seconds from now."""
        if self._watched.pop(slot, None) is not None:
            self.limit(slot, seconds, interrupt)

    def end(self, slot: int) -> None:
        if slot == NONE:
            return
        self._watched.pop(slot, None)
        struct.pack_into("<I", self._page, slot * SLOT_SIZE, ActivityKind.IDLE)
        self._free.append(slot)

    def start(self) -> None:
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        count = 0
        while True:
            count += 1
            BEAT.pack_into(self._page, 0, count)
            now = time.monotonic()
            for slot, (deadline, interrupt) in list(self._watched.items()):
                if deadline < now and self._watched.get(slot) == (deadline, interrupt):
                    interrupt()
            time.sleep(BEAT_EVERY)


@dataclass(eq=False)
class Stepping:
    """Awaits what a function gave, and shows each of its steps, which alone can hold the loop."""

    _activity: Activity
    _awaitable: Awaitable[Any]
    _name: bytes
    _request: int
    _seconds: float  # for one step
    _on_step: Callable[[], None]  # before each

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._awaitable.__await__()
        go_on, value = steps.send, None
        while True:
            self._on_step()
            slot = self._activity.begin(ActivityKind.FUNCTION, self._name, request=self._request, seconds=self._seconds)
            try:
                future = go_on(value)
            except StopIteration as stop:
                return stop.value
            finally:
                self._activity.end(slot)
            try:
                value = yield future
                go_on = steps.send
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it is the awaitable's own
                go_on, value = steps.throw, error


def _page() -> mmap.mmap:
    """The module's page; one of our own where a test plays the module and has none."""
    number = os.environ.get(VARIABLE)
    if number is None:
        return mmap.mmap(-1, SIZE)
    page = mmap.mmap(int(number), SIZE)
    os.close(int(number))
    return page
