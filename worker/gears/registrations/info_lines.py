"""The fields of functions in INFO: a line for each of the busiest registrations, and how executions ended.

A line is `name=Rank,triggered=12,…`, as Redis' own of databases and commands. Those of registrations that are gone, or
no longer among the busiest, are taken back. Loop's thread only.
"""

import re

from shardqa.worker.gears.histogram import percentile, up_to
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.registrations.registry import Registry
from shardqa.worker.statistics import WorkerStatistics

REGISTRATIONS_SHOWN = 50  # registrations; the module keeps 256 fields
NAME = 80  # characters
UNSAFE = re.compile(r"[^\w.:*{}@/ -]", re.ASCII)  # what would break the line apart; names are a user's
BUCKETS_MS = (1, 5, 10, 50, 100, 500, 1000, 5000, 10000)  # of the histogram: how many took so long at most
PREFIX = "registration_"  # of these fields; the module shows them in a section of their own
ENDINGS = ("done", "failed", "aborted")


class InfoLines:
    def __init__(self, registry: Registry, statistics: WorkerStatistics) -> None:
        self._registrations = registry.registrations
        self._executions = registry.executions
        self._statistics = statistics
        self._lines: dict[str, tuple[tuple[int, ...], str]] = {}  # by field: counts, and their line

    def update(self) -> None:
        registrations = sorted(self._registrations, key=lambda r: -r.statistics.triggered)
        before, self._lines = self._lines, {}
        for registration in registrations[:REGISTRATIONS_SHOWN]:
            name, counts = f"{PREFIX}{registration.id}", self._counts(registration)
            same = before.pop(name, None)
            if same is None or same[0] != counts:  # a line takes long to write, and most stand still
                same = (counts, self._line(registration))
                self._statistics.set(name, same[1])
            self._lines[name] = same
        for name in before:
            self._statistics.set(name, "")
        self._statistics.set("registrations_not_shown", max(len(registrations) - REGISTRATIONS_SHOWN, 0))
        self._update_executions()

    def _counts(self, registration: Registration) -> tuple[int, ...]:
        s = registration.statistics
        return (s.triggered, s.success, s.failures, s.aborted, self._registrations.queue_of(registration))

    def _update_executions(self) -> None:
        executions, statistics = self._executions, self._statistics
        statistics.set("executions_running", sum(execution.status == "running" for execution in executions.all()))
        for ending in ENDINGS:
            statistics.set(f"executions_{ending}", executions.endings[ending])
        statistics.set("executions_us_p50", executions.times.percentile(0.5))
        statistics.set("executions_us_p99", executions.times.percentile(0.99))

    def _line(self, registration: Registration) -> str:
        s, runs = registration.statistics, registration.statistics.runs.pairs()
        fields = {
            "name": UNSAFE.sub("_", registration.name())[:NAME],
            "triggered": s.triggered,
            "succeeded": s.success,
            "failed": s.failures,
            "aborted": s.aborted,
            "queue": self._registrations.queue_of(registration),
            "p50_us": percentile(runs, 0.5),
            "p99_us": percentile(runs, 0.99),
            "sum_us": round(s.total * 1000),
            **{f"le_{top}ms": up_to(runs, top * 1000) for top in BUCKETS_MS},
        }
        return ",".join(f"{name}={value}" for name, value in fields.items())
