"""The version that runs and the workers of the nodes in Prometheus' text: asked at each scrape, and not kept."""

from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

import shardqa
from shardqa.api.metrics import exposition
from shardqa.engine.activity import WorkerState


def text(workers: Sequence[WorkerState], model: str) -> bytes:
    return exposition(families(workers, model))


def families(workers: Sequence[WorkerState], model: str) -> Iterator[Metric]:
    build = GaugeMetricFamily(
        "shardqa_build_info", "1, with the version of shardqa and the reader in use.", labels=("version", "model")
    )
    build.add_metric((shardqa.__version__, model), 1)
    ready = GaugeMetricFamily("shardqa_worker_ready", "1 while the worker of a node serves, by node.", labels=["node"])
    restarts = CounterMetricFamily(
        "shardqa_worker_restarts", "Workers that a node has started in place of one that ended.", labels=["node"]
    )
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
