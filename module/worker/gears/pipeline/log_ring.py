"""The last lines that functions logged and the last errors of registrations, for RG.PYLOGS. Any thread.

The Redis log has the lines as well, but not everybody who writes functions can read that file.
"""

from __future__ import annotations

import time
from collections import deque

from shardqa.module.worker.gears.pipeline.run import current

LINES = 500  # that are kept; the oldest go
LENGTH = 1000  # characters of one that are kept


class LogRing:
    def __init__(self) -> None:
        self._lines: deque[tuple[int, str, str, str]] = deque(maxlen=LINES)  # number, level, whose, text
        self._last = 0

    def add(self, text: str, level: str, whose: str | None = None) -> None:
        """`whose`: what logged it; without, the function that runs now, or the worker itself."""
        if whose is None:
            run = current()
            whose = "worker" if run is None else run.name.decode("utf-8", "replace")
        self._last = max(self._last + 1, time.time_ns() // 1000)  # numbers of a later worker go on from here
        self._lines.append((self._last, level, whose[:LENGTH], text[:LENGTH]))

    def after(self, number: int) -> list[list[int | str]]:
        """[number, level, whose, text] of the lines behind the one of this number; a number is also a time in us."""
        return [list(line) for line in list(self._lines) if line[0] > number]
