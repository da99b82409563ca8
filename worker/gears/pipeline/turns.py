"""Turns of a registration: its plain code runs one piece at a time, as in RedisGears.

Functions keep lazy globals (`global x; if x is None: x = load()`), which race where two events run side by side. A turn
lasts while plain code runs; what awaits gives its turn on, since the loop runs coroutines one step at a time anyway.
Any thread takes and gives; only the loop's waits.
"""

import asyncio
import threading
from collections import deque


class Turns:
    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()  # longest first

    def take_now(self) -> bool:
        """Takes a turn if one is free; returns whether it was. None is free while somebody waits."""
        with self._lock:
            if self._free == 0:
                return False
            self._free -= 1
            return True

    def give(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            next_one = self._waiting.popleft()
        next_one.get_loop().call_soon_threadsafe(self._hand_over, next_one)

    def _hand_over(self, waiting: asyncio.Future[None]) -> None:
        if waiting.cancelled():
            self.give()
        else:
            waiting.set_result(None)

    async def __aenter__(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            self._leave(waiting)
            raise

    async def __aexit__(self, *_: object) -> None:
        self.give()

    def _leave(self, waiting: asyncio.Future[None]) -> None:
        """Gives up waiting: leaves the queue, or gives back a turn that was just handed over."""
        with self._lock:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                return
        if not waiting.cancelled():
            self.give()
