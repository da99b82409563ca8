"""Parts that benches share: a temporary cluster with functions and reader, percentiles, and a line about the machine.

Benches print medians and ratios of things measured in one run, side by side; absolute times only describe a machine.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from shardqa.cluster import local, node, ports
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.loader import preparation

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("SHARDQA_SHARED", ROOT.parent / "shared"))


def settings_of(cluster: LocalCluster, corpus: str = "bench") -> Settings:
    return Settings(redis=cluster.seed(), corpus=corpus, timeout=60)


@contextmanager
def temporary_cluster(
    shards: int, threads: int = 1, prepared: bool = True, module_arguments: tuple[str, ...] = ()
) -> Iterator[LocalCluster]:
    """A cluster on random ports in a temporary folder, with functions and the shipped reader on every shard."""
    # rewrites and workers end a moment after their nodes, and may still write
    with tempfile.TemporaryDirectory(prefix="shardqa-bench-", ignore_cleanup_errors=True) as folder:
        data = Path(folder) / "data"
        port = ports.random_block(shards, shards)
        wanted = ClusterOptions(data=data, shards=shards, port=port, bus_offset=shards, threads=threads)
        cluster = local.start(replace(wanted, module_arguments=module_arguments))
        try:
            if prepared:
                asyncio.run(_prepare(settings_of(cluster)))
            yield cluster
        finally:
            local.stop(data)


async def _prepare(settings: Settings) -> None:
    engine = await Engine.connect(settings)
    try:
        await preparation.prepare(engine)
    finally:
        await engine.close()


def resident(pid: int) -> float:
    """Resident memory of a process, MB."""
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def worker_pid(port: int) -> int:
    with node.connected(port) as client:
        return int(client.info("shardqa")["shardqa_worker_pid"])


def memory(addresses: list[tuple[str, int]]) -> tuple[list[float], list[float]]:
    """Resident MB of every redis-server and of every worker."""
    servers, workers = [], []
    for _, port in addresses:
        with node.connected(port) as client:
            servers.append(client.info("memory")["used_memory_rss"] / 2**20)
        workers.append(resident(worker_pid(port)))
    return servers, workers


def shown(values: list[float]) -> str:
    return " ".join(f"{value:.0f}" for value in values)


def percentiles(seconds: Sequence[float]) -> str:
    """'p50 1.234 ms  p99 2.345 ms' of times in seconds."""
    p50, p99 = np.percentile(np.asarray(seconds) * 1e3, [50, 99])
    return f"p50 {p50:.3f} ms  p99 {p99:.3f} ms"
