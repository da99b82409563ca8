"""Numbers of the worker for `INFO shardqa`: counters, gauges and the percentiles of recent times.

Any thread may add; a coroutine sends what changed once a second.
"""

import resource
import threading
from collections import deque
from pathlib import Path

RECENT = 1000  # times a percentile looks back on


def allocated() -> int:
    """Bytes of this process that MEMORY bounds: what RLIMIT_DATA counts, stacks of threads included."""
    status = Path("/proc/self/status").read_text()
    sizes = [line.split()[1] for line in status.splitlines() if line.startswith("VmData:")]
    return int(sizes[0]) << 10 if sizes else 0


def bound_on_memory() -> str:
    """Names the bound for messages, where there is one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return "" if limit == resource.RLIM_INFINITY else f" ({limit >> 20} MB, the module's argument MEMORY)"


class WorkerStatistics:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, int | float | str] = {}
        self._times: dict[str, deque[float]] = {}
        self._sent: dict[str, str] = {}

    def set(self, name: str, value: int | float | str) -> None:
        with self._lock:
            self._values[name] = value

    def add(self, name: str, amount: int = 1) -> None:
        with self._lock:
            self._values[name] = int(self._values.get(name, 0)) + amount

    def time(self, name: str, microseconds: float) -> None:
        """Times a run; shown as <name>_us_p50 and <name>_us_p99."""
        with self._lock:
            self._times.setdefault(name, deque(maxlen=RECENT)).append(microseconds)

    def changes(self) -> list[str]:
        """Returns name, value, … of everything when anything differs from the last time, else nothing."""
        with self._lock:
            now = {name: str(value) for name, value in self._values.items()}
            for name, times in self._times.items():
                sorted_times = sorted(times)
                now[f"{name}_us_p50"] = f"{sorted_times[len(sorted_times) // 2]:.0f}"
                now[f"{name}_us_p99"] = f"{sorted_times[len(sorted_times) * 99 // 100]:.0f}"
        if now == self._sent:
            return []
        self._sent = now
        with self._lock:
            self._values = {name: value for name, value in self._values.items() if value != ""}  # told that it is gone
        return [item for pair in sorted(now.items()) for item in pair]
