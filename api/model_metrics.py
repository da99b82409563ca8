"""The models of the shards in Prometheus' text: asked when /metrics is scraped, and not kept.

The counters are a worker's own, so each node has its series, which begins anew when its worker does.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from shardqa.api.metrics import exposition
from shardqa.engine.activity import BOUNDS, ModelRuns

LABELS = ("node", "model")
COUNTERS = {
    "requests": "Requests that a model has answered.",
    "errors": "Requests of a model that failed.",
    "runs": "Runs of a model; requests that share one count once.",
    "rows": "Rows of all runs of a model; divided by its runs, the mean batch.",
}
EDGES = [*(str(bound) for bound in BOUNDS), "+Inf"]


def text(models: Sequence[ModelRuns]) -> bytes:
    """Returns the metrics in Prometheus' text; nothing where no model has run."""
    return exposition(families(models)) if models else b""


def families(models: Sequence[ModelRuns]) -> Iterator[Metric]:
    for name, says in COUNTERS.items():
        family = CounterMetricFamily(f"shardqa_model_{name}", says, labels=LABELS)
        for runs in models:
            family.add_metric((runs.node, runs.model), getattr(runs, name))
        yield family
    most = GaugeMetricFamily("shardqa_model_largest_batch", "Rows of a model's largest run.", labels=LABELS)
    for runs in models:
        most.add_metric((runs.node, runs.model), runs.most_rows)
    yield most
    yield _histogram("queue", "Seconds that requests waited for a model.", models, [r.waited for r in models])
    yield _histogram("run", "Seconds that runs of a model took.", models, [r.took for r in models])


def _histogram(name: str, says: str, models: Sequence[ModelRuns], counts: Sequence[Sequence[int]]) -> Metric:
    """Makes a histogram of the models' counts; without a sum, which the worker does not keep."""
    family = HistogramMetricFamily(f"shardqa_model_{name}_seconds", says, labels=LABELS)
    for runs, by_bound in zip(models, counts, strict=True):
        buckets = list(zip(EDGES, map(float, accumulate(by_bound)), strict=True))
        family.add_metric((runs.node, runs.model), buckets, None)
    return family
