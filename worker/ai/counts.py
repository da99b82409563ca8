"""Counts of a model since it was loaded, for INFO: any thread that runs it adds, nobody waits for a lock."""

from bisect import bisect_left
from typing import Protocol

# microseconds; what is longer is in the last place
BOUNDS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


class TimedRun(Protocol):
    @property
    def microseconds(self) -> int: ...

    @property
    def queued(self) -> int: ...


class RunCounts:
    """Sums of runs and requests; one may be lost when two threads add at once, and no decision hangs on them."""

    def __init__(self) -> None:
        self.errors = 0
        self._requests = self._runs = self._rows = self._most = 0
        self._queue, self._run = [0] * (len(BOUNDS) + 1), [0] * (len(BOUNDS) + 1)

    def ran(self, rows: int, start: float, end: float) -> None:
        self._runs += 1
        self._rows += rows
        self._most = max(self._most, rows)
        self._run[bisect_left(BOUNDS, (end - start) * 1e6)] += 1

    def answered(self, result: TimedRun) -> None:
        self._requests += 1
        self._queue[bisect_left(BOUNDS, result.queued)] += 1

    def text(self) -> str:
        """Returns the model's line of INFO; empty where it has not run."""
        if not self._runs and not self.errors:
            return ""
        mean = self._rows / self._runs if self._runs else 0
        queue, run = ("/".join(map(str, times)) for times in (self._queue, self._run))
        return (
            f"requests={self._requests},errors={self.errors},runs={self._runs},rows={self._rows},mean_batch={mean:.2f},"
            f"max_batch={self._most},queue_us={queue},run_us={run}"
        )
