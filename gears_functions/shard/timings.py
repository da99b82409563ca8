"""Times of phases on this shard, shown by INFO: median and 99th percentile of the latest runs, microseconds."""

from collections import deque
from collections.abc import Mapping
from time import monotonic

import numpy as np

from shardqa.worker.runtime import Runtime

RUNS_KEPT = 1_000  # runs that percentiles are taken of: a minute of a busy shard
EVERY = 1.0  # seconds between two looks; percentiles cost about 50 us


class Timings:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._latest: dict[str, deque[int]] = {}  # by phase, microseconds
        self._next_look = 0.0  # monotonic seconds

    def add(self, phases: Mapping[str, int]) -> None:
        """Adds the microseconds of one run, by phase."""
        for phase, us in phases.items():
            self._latest.setdefault(phase, deque(maxlen=RUNS_KEPT)).append(us)
        if monotonic() >= self._next_look:
            self._next_look = monotonic() + EVERY
            self._show()

    def _show(self) -> None:
        for phase, latest in self._latest.items():
            p50, p99 = np.percentile(latest, [50, 99])
            self._runtime.stat(f"{phase}_us_p50", round(p50))
            self._runtime.stat(f"{phase}_us_p99", round(p99))
