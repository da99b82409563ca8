"""Runs of models that nobody waits for: one at a time, in a thread of their own, which comes last on the processor.

Such a run takes no model's turn, so a request never waits for its end. It begins only while no model runs for somebody,
and is stopped, at its next operator, when one does.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from shardqa.module.worker.ai.backend import ModelError

NICENESS = 19  # of the thread: what others compute on this machine goes ahead, be it another shard's

T = TypeVar("T")


class GaveWay(Exception):
    """Somebody asked: the run did not begin, or was stopped."""


class Background:
    """Any thread tells of runs that somebody waits for; `attempt` is called by jobs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the next three
        self._asked = 0  # runs that somebody waits for
        self._stop: Callable[[], None] | None = None  # the run that goes here
        self._is_stopped = False
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None  # from the first job on; the loop's alone

    def begin(self) -> None:
        """A run that somebody waits for begins."""
        with self._lock:
            self._asked += 1
            if self._stop is not None:
                self._is_stopped = True
                self._stop()

    def end(self) -> None:
        with self._lock:
            self._asked -= 1

    def put(self, job: Callable[[], None]) -> None:
        """The loop's: jobs are done in turn, and raise nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="background", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def attempt(self, run: Callable[[], T], stop: Callable[[], None]) -> T:
        """Of a job: the run's result. `stop` makes it end with a ModelError. Raises that of its own, and GaveWay."""
        with self._lock:
            if self._asked:
                raise GaveWay
            self._stop, self._is_stopped = stop, False
        try:
            return run()
        except ModelError:
            if self._is_stopped:
                raise GaveWay from None
            raise
        finally:
            with self._lock:
                self._stop = None

    def _work(self) -> None:
        with suppress(OSError):  # not every sandbox lets it
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while True:
            self._jobs.get()()
