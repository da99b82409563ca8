"""The functions registered in Redis in Prometheus' text, asked at each scrape; a shard that is silent has none."""

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from shardqa.api.metrics import exposition
from shardqa.engine.activity import RegistrationCounts

LABELS = ("registration", "node")
OUTCOMES = ("succeeded", "failed", "aborted")


def text(counts: Sequence[RegistrationCounts]) -> bytes:
    return exposition(families(counts))


def families(counts: Sequence[RegistrationCounts]) -> Iterator[Metric]:
    """Registrations of one name (a trigger, a pattern of keys) on one node are summed."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    all_buckets: dict[tuple[str, str], Counter[float]] = {}
    for one in counts:
        place = (one.name, one.node)
        sums.setdefault(place, Counter()).update(one.numbers)
        all_buckets.setdefault(place, Counter()).update(one.buckets)
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
    for place, numbers in sums.items():
        triggers.add_metric(place, numbers["triggered"])
        for outcome in OUTCOMES:
            runs.add_metric((*place, outcome), numbers[outcome])
        queue.add_metric(place, numbers["queue"])
        count_of_ends = numbers["succeeded"] + numbers["failed"]
        buckets = [(str(top), float(count)) for top, count in sorted(all_buckets[place].items())]
        seconds.add_metric(place, [*buckets, ("+Inf", float(count_of_ends))], numbers["sum_us"] / 1e6)
    yield from (triggers, runs, queue, seconds)
