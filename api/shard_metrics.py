"""What the shards hold and do in Prometheus' metrics: asked when /metrics is scraped, and not kept.

The counters are a worker's own, so each node has its series, which begins anew when its worker does; a silent one has
none.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

import shardqa
from shardqa.engine.activity import BOUNDS, ModelRuns, RegistrationCounts, WorkerState
from shardqa.schema import CorpusInfo

MAX_CORPORA = 200  # corpora that have series of their own, those with most passages: Prometheus keeps each label
SIZES = {
    "documents": "Documents of a corpus, on the shards that answered.",
    "passages": "Passages of a corpus, on the shards that answered.",
    "bytes": "Bytes of a corpus' texts, on the shards that answered.",
    "encoded": "Passages of a corpus that have a vector; only where an encoder is in use.",
}
REGISTRATION, MODEL = ("registration", "node"), ("node", "model")  # labels
OUTCOMES = ("succeeded", "failed", "aborted")
COUNTERS = {
    "requests": "Requests that a model has answered.",
    "errors": "Requests of a model that failed.",
    "runs": "Runs of a model; requests that share one count once.",
    "rows": "Rows of all runs of a model; divided by its runs, the mean batch.",
}
EDGES = [*(str(bound) for bound in BOUNDS), "+Inf"]


def of_corpora(corpora: Sequence[CorpusInfo]) -> Iterator[Metric]:
    largest = sorted(corpora, key=lambda one: (-one.passages, one.name))[:MAX_CORPORA]
    for field, says in SIZES.items():
        family = GaugeMetricFamily(f"shardqa_corpus_{field}", says, labels=["corpus"])
        for corpus in largest:
            if (size := getattr(corpus, field)) is not None:
                family.add_metric([corpus.name], size)
        yield family


def of_workers(workers: Sequence[WorkerState], model: str) -> Iterator[Metric]:
    build = GaugeMetricFamily(
        "shardqa_build_info", "1, with the version of shardqa and the reader in use.", labels=("version", "model")
    )
    build.add_metric((shardqa.__version__, model), 1)
    ready = GaugeMetricFamily("shardqa_worker_ready", "1 while the worker of a node serves, by node.", labels=["node"])
    restarts = CounterMetricFamily("shardqa_worker_restarts", "Workers started for one that ended.", labels=["node"])
    queue = GaugeMetricFamily(
        "shardqa_worker_queue",
        "What waits for a node's worker, by kind: commands, and misses of answers' keys.",
        labels=("node", "kind"),
    )
    for worker in workers:
        ready.add_metric([worker.node], worker.is_ready)
        restarts.add_metric([worker.node], worker.restarts)
        queue.add_metric((worker.node, "commands"), worker.commands)
        queue.add_metric((worker.node, "misses"), worker.misses)
    yield from (build, ready, restarts, queue)


def of_registrations(counts: Sequence[RegistrationCounts]) -> Iterator[Metric]:
    """Registrations of one name (a trigger, a pattern of keys) on one node are summed."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    all_buckets: dict[tuple[str, str], Counter[float]] = {}
    for one in counts:
        place = (one.name, one.node)
        sums.setdefault(place, Counter()).update(one.numbers)
        all_buckets.setdefault(place, Counter()).update(one.buckets)
    triggers = CounterMetricFamily("shardqa_registration_triggered", "Runs that were asked for.", labels=REGISTRATION)
    runs = CounterMetricFamily(
        "shardqa_registration_runs",
        "Runs of a function by outcome: succeeded, failed, aborted.",
        labels=(*REGISTRATION, "outcome"),
    )
    queue = GaugeMetricFamily("shardqa_registration_queue", "Functions' work that waits or runs.", labels=REGISTRATION)
    seconds = HistogramMetricFamily(
        "shardqa_registration_run_seconds", "Time of a function's runs that ended by themselves.", labels=REGISTRATION
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


def of_models(models: Sequence[ModelRuns]) -> Iterator[Metric]:
    if not models:
        return
    for name, says in COUNTERS.items():
        family = CounterMetricFamily(f"shardqa_model_{name}", says, labels=MODEL)
        for runs in models:
            family.add_metric((runs.node, runs.model), getattr(runs, name))
        yield family
    most = GaugeMetricFamily("shardqa_model_largest_batch", "Rows of a model's largest run.", labels=MODEL)
    for runs in models:
        most.add_metric((runs.node, runs.model), runs.most_rows)
    yield most
    yield _histogram("queue", "Seconds that requests waited for a model.", models, [r.waited for r in models])
    yield _histogram("run", "Seconds that runs of a model took.", models, [r.took for r in models])


def _histogram(name: str, says: str, models: Sequence[ModelRuns], counts: Sequence[Sequence[int]]) -> Metric:
    """Makes a histogram of the models' counts; without a sum, which the worker does not keep."""
    family = HistogramMetricFamily(f"shardqa_model_{name}_seconds", says, labels=MODEL)
    for runs, by_bound in zip(models, counts, strict=True):
        buckets = list(zip(EDGES, map(float, accumulate(by_bound)), strict=True))
        family.add_metric((runs.node, runs.model), buckets, None)
    return family
