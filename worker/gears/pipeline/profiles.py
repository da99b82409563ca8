"""Profiles of functions, by session, while the setting ProfileExecutions is not 0.

Synchronous steps alone are profiled, one at a time: Python has one profiler, and a coroutine's time is mostly waiting.
"""

import cProfile
import io
import pstats
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ORDERS = ("calls", "cumtime", "cumulative", "filename", "line", "module", "name", "ncalls", "nfl", "pcalls", "stdname",
          "time", "tottime")  # fmt: skip
MAX_SESSIONS = 100  # profiles that are kept; the oldest goes


class NotProfiled(Exception):
    """No function of a session was measured."""


class Profiles:
    """The profiles of all sessions. Any thread."""

    def __init__(self) -> None:
        self._profiling = threading.Lock()  # held by the thread that is profiled
        self._lock = threading.Lock()
        self._stats: dict[str, pstats.Stats] = {}  # by session id

    @contextmanager
    def measuring(self, session: str) -> Iterator[None]:
        if not self._profiling.acquire(blocking=False):
            yield
            return
        profiler = cProfile.Profile()
        try:
            profiler.enable()
            yield
        finally:
            profiler.disable()
            self._profiling.release()
            self._add(session, profiler)

    def _add(self, session: str, profiler: cProfile.Profile) -> None:
        with self._lock:
            if session in self._stats:
                self._stats[session].add(profiler)
                return
            self._stats[session] = pstats.Stats(profiler)
            while len(self._stats) > MAX_SESSIONS:
                del self._stats[next(iter(self._stats))]

    def has(self, session: str) -> bool:
        return session in self._stats

    def reset(self, session: str) -> None:
        with self._lock:
            self._stats.pop(session, None)

    def text(self, session: str, order: str) -> str:
        """Returns the table that pstats prints. Raises NotProfiled."""
        with self._lock:
            stats = self._stats.get(session)
            if stats is None:
                raise NotProfiled(
                    f"session {session[:80]} has no profile; set ProfileExecutions to 1 with RG.CONFIGSET and run it"
                )
            out = io.StringIO()
            stats.stream = out  # type: ignore[attr-defined]
            stats.sort_stats(order).print_stats().print_callers().print_callees()
            return out.getvalue()
