"""Whether this shard is answering or ingesting: work in the background gives way to that.

The worker's loop only, where nothing else is said.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any


class ActiveQuestions:
    """Counts of the questions under way on this shard, and the time of the last one."""

    def __init__(self) -> None:
        self._running = 0
        self._last = 0.0  # monotonic seconds

    def counted(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """Returns the function, each run of which is a question."""

        async def run(record: Any) -> Any:
            self._running += 1
            try:
                return await function(record)
            finally:
                self._running -= 1
                self._last = monotonic()

        return run

    def is_quiet(self, seconds: float = 0.0) -> bool:
        """Returns whether nothing was asked for so many seconds. Any thread."""
        return not self._running and monotonic() - self._last >= seconds

    async def quiet(self, seconds: float, patience: float) -> None:
        """Waits until nothing was asked for `seconds`, but no longer than `patience` seconds."""
        pause = seconds / 2
        for _ in range(round(patience / pause)):
            if self.is_quiet(seconds):
                return
            await asyncio.sleep(pause)
