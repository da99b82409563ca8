"""Metrics of the functions that are registered in Redis, asked at each scrape: they are the shards', not this
process' own. A shard that does not answer in time has none, rather than old ones.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from shardqa.api.metrics import exposition
from shardqa.engine.activity import RegistrationCounts

LABELS = ("registration", "node")
OUTCOMES = ("succeeded", "failed", "aborted")


class RegistrationMetrics(Collector):
    """Collects the counters of registrations; those of one name (a trigger, a pattern) on one node are summed."""

    def __init__(self, counts: Sequence[RegistrationCounts]) -> None:
        self._numbers: dict[tuple[str, str], Counter[str]] = {}
        self._buckets: dict[tuple[str, str], Counter[float]] = {}
        for one in counts:
            place = (one.name, one.node)
            self._numbers.setdefault(place, Counter()).update(one.numbers)
            self._buckets.setdefault(place, Counter()).update(one.buckets)

    def collect(self) -> Iterator[Metric]:
        triggers = CounterMetricFamily(
            "shardqa_registration_triggered", "Runs of a function that were asked for.", labels=LABELS
        )
        runs = CounterMetricFamily(
            "shardqa_registration_runs",
            "Runs of a function by outcome: succeeded, failed, aborted.",
            labels=(*LABELS, "outcome"),
        )
        queue = GaugeMetricFamily("shardqa_registration_queue", "Work of a function that waits or runs.", labels=LABELS)
        seconds = HistogramMetricFamily(
            "shardqa_registration_run_seconds", "Time of a function's runs that ended by themselves.", labels=LABELS
        )
        for place, numbers in self._numbers.items():
            triggers.add_metric(place, numbers["triggered"])
            for outcome in OUTCOMES:
                runs.add_metric((*place, outcome), numbers[outcome])
            queue.add_metric(place, numbers["queue"])
            ended = numbers["succeeded"] + numbers["failed"]
            buckets = [(str(bound), float(count)) for bound, count in sorted(self._buckets[place].items())]
            seconds.add_metric(place, [*buckets, ("+Inf", float(ended))], numbers["sum_us"] / 1e6)
        yield from (triggers, runs, queue, seconds)


def text(counts: Sequence[RegistrationCounts]) -> bytes:
    return exposition(RegistrationMetrics(counts))
