"""Prometheus metrics of one process, in a registry of their own: several apps may live in one interpreter.

Of several API processes on one port, each counts in files of its own in the folder PROMETHEUS_MULTIPROC_DIR, and
whichever is scraped tells the sum of all (https://prometheus.github.io/client_python/multiprocess/). The folder
belongs to whoever starts the processes: `shared_by`.
"""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cachetools import LRUCache
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from shardqa.schema import Answer

# Seconds. A repeat from the process' own memory takes well under a millisecond, a cold question tens to hundreds.
BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
PHASES = ("cache", "terms", "rank", "read", "total")  # fields of answer.Timing
MINUTES = 60  # that /v1/cluster tells of
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client looks for it when it is imported


class Metrics:
    def __init__(self) -> None:
        self._asked: LRUCache[tuple[int, bool], int] = LRUCache(2 * MINUTES)  # questions by minute and refusal
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "shardqa_http_requests",
            "Requests answered, by method, route template and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "shardqa_http_in_flight", "Requests being served.", registry=self.registry, multiprocess_mode="livesum"
        )
        self.rejected = Counter(
            "shardqa_http_rejected",
            "Requests refused by limits, by the problem's code.",
            ("code",),
            registry=self.registry,
        )
        self.ask_seconds = Histogram(
            "shardqa_ask_seconds",
            "Time of a question by phase and by the cache that answered it (none, process, redis).",
            ("phase", "cache"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.answers = Counter(
            "shardqa_answers",
            "Questions by outcome: answered, no_answer; partial when some shard did not answer.",
            ("outcome", "partial"),
            registry=self.registry,
        )
        self.documents = Counter(
            "shardqa_documents",
            "Documents taken over HTTP by outcome: changed, unchanged, refused, deleted.",
            ("outcome",),
            registry=self.registry,
        )
        # Bound once: to look a label up takes longer than to count.
        self._cached_phases = [self.ask_seconds.labels(phase, "process") for phase in ("cache", "total")]
        self._cached_outcomes = [self.answers.labels(outcome, "false") for outcome in ("answered", "no_answer")]
        self.connected = Gauge(
            "shardqa_cluster_connected",
            "1 once the cluster was reached, by every process.",
            registry=self.registry,
            multiprocess_mode="livemin",
        )
        self._scraped = self.registry
        if folder := os.environ.get(FOLDER):
            self._scraped = CollectorRegistry()
            self._scraped.register(_AllProcesses(Path(folder)))

    def observe(self, answer: Answer) -> None:
        """Counts an answer and its phases; a phase that did not run is not observed."""
        cache = answer.cache or "none"
        for phase in PHASES:
            milliseconds = getattr(answer.timing, phase)
            if milliseconds > 0:
                self.ask_seconds.labels(phase, cache).observe(milliseconds / 1000)
        self._note(answer.no_answer)
        outcome = "no_answer" if answer.no_answer else "answered"
        self.answers.labels(outcome, str(answer.partial).lower()).inc()

    def observe_cached(self, milliseconds: float, no_answer: bool) -> None:
        """Counts an answer that this process had kept; it took no phase but the cache's."""
        for histogram in self._cached_phases:
            histogram.observe(milliseconds / 1000)
        self._cached_outcomes[no_answer].inc()
        self._note(no_answer)

    def _note(self, is_refused: bool) -> None:
        minute = int(time.time()) // 60
        self._asked[minute, is_refused] = self._asked.get((minute, is_refused), 0) + 1

    def last_hour(self) -> list[tuple[int, int]]:
        """Returns how many questions this process has answered, and not, in each of the last minutes."""
        last = int(time.time()) // 60
        minutes = range(last - MINUTES + 1, last + 1)
        return [(self._asked.get((one, False), 0), self._asked.get((one, True), 0)) for one in minutes]

    def text(self) -> bytes:
        """Returns all metrics in Prometheus' text format 0.0.4."""
        return generate_latest(self._scraped)


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def exposition(families: Iterable[Metric]) -> bytes:
    """Returns families of metrics in the same format."""
    return generate_latest(_Families(families))


class _AllProcesses(Collector):
    """The sum over the files of all processes. Files of ended ones count on, so that no counter ever falls."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        files = [str(file) for file in self._folder.glob("*.db") if _counts(file)]
        families: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return families


def _counts(file: Path) -> bool:
    """Returns whether a file counts: once it is laid out; for requests in flight while its process runs."""
    is_of_dead = file.name.startswith("gauge_live") and not _runs(int(file.stem.rpartition("_")[2]))
    return not is_of_dead and file.stat().st_size > 0


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # the latter: a later process of somebody else's
        return False
    return True


@contextmanager
def shared_by(processes: int) -> Iterator[None]:
    """Provides the folder while the block runs, where `processes` are several and the variable is not set."""
    if processes == 1 or os.environ.get(FOLDER):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="shardqa-metrics-") as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]
