"""The log of functions and the worker: lines of the Redis log, and the last ones of them for RG.PYLOGS. Any thread.

Not everybody who writes functions can read the Redis log. The last errors of registrations are kept here as well.
"""

import time
from collections import deque

from shardqa.worker.frames import Type
from shardqa.worker.gears.pipeline.run import current
from shardqa.worker.link import Link

LINES = 500  # that are kept; the oldest go
LENGTH = 1000  # characters of one that are kept
LEVELS = ("debug", "verbose", "notice", "warning")


class WorkerLog:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._lines: deque[tuple[int, str, str, str]] = deque(maxlen=LINES)  # number, level, author, text
        self._last = 0

    def __call__(self, text: str, level: str = "notice") -> None:
        """Logs a line of the function that runs now, or of the worker itself. Raises ValueError for another level."""
        if level not in LEVELS:
            raise ValueError(f"log level {level!r} does not exist; choose one of {', '.join(LEVELS)}")
        run = current()
        self._keep(text, level, b"worker" if run is None else run.name)
        self._link.send_list(Type.LOG, 0, [level, text[:4000]])

    def error(self, text: str, author: bytes) -> None:
        """Keeps an error of a registration for RG.PYLOGS; the Redis log does not get it."""
        self._keep(text, "error", author)

    def _keep(self, text: str, level: str, author: bytes) -> None:
        self._last = max(self._last + 1, time.time_ns() // 1000)  # numbers of a later worker go on from here
        self._lines.append((self._last, level, author.decode("utf-8", "replace")[:LENGTH], text[:LENGTH]))

    def after(self, number: int) -> list[list[int | str]]:
        """Returns [number, level, author, text] of the lines after a number; numbers are times in microseconds."""
        return [list(line) for line in list(self._lines) if line[0] > number]
