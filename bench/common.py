"""Parts that benches share: a temporary cluster with functions and reader, percentiles, and a line about the machine.

Benches print medians and ratios of things measured in one run, side by side; absolute times only describe a machine.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from redis import Redis
from redis.exceptions import ConnectionError as RedisGone

from shardqa import keys
from shardqa.cluster import local, node, ports, processes, redis_server
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.cluster.redis_server import NodeConfig
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.loader import preparation
from shardqa.models.reader import EVIDENCE, RELEVANCE, SPANS

ROOT = Path(__file__).parents[1]
OUTPUTS = (*SPANS, EVIDENCE, RELEVANCE)  # of the shipped reader
CONNECT_SECONDS = 30.0
LOOK_SECONDS = 0.25  # between looks at what other processes do
SHARED = Path(os.environ.get("SHARDQA_SHARED", ROOT.parent / "shared"))


def settings_of(cluster: LocalCluster, corpus: str = "bench") -> Settings:
    return Settings(redis=cluster.seed(), corpus=corpus, timeout=60)


@contextmanager
def temporary_cluster(
    shards: int,
    threads: int = 1,
    prepared: bool = True,
    vectors: bool = False,
) -> Iterator[LocalCluster]:
    """A cluster on random ports in a temporary folder, with functions and the shipped reader on every shard; with
    `vectors` the encoder, too, whose work in the background would disturb most measurements."""
    # rewrites and workers end a moment after their nodes, and may still write
    with tempfile.TemporaryDirectory(prefix="shardqa-bench-", ignore_cleanup_errors=True) as folder:
        data = Path(folder) / "data"
        port = ports.random_block(shards, shards)
        cluster = local.start(ClusterOptions(data=data, shards=shards, port=port, bus_offset=shards, threads=threads))
        try:
            if prepared:
                asyncio.run(_prepare(settings_of(cluster), vectors))
            yield cluster
        finally:
            local.stop(data)


async def _prepare(settings: Settings, vectors: bool) -> None:
    async with await Engine.connect(settings) as engine:
        if not vectors:
            await engine.shards.by_key(keys.NO_ENCODER, "SET", "by this bench")
        await preparation.prepare(engine)


def wait_until_encoded(cluster: LocalCluster, corpus: str) -> None:
    """Waits until every passage of a corpus has its vector."""

    async def is_encoded() -> bool:
        async with await Engine.connect(settings_of(cluster)) as engine:
            corpora = (await engine.catalogue.corpora()).corpora
        return all(one.encoded == one.passages for one in corpora if one.name == corpus)

    while not asyncio.run(is_encoded()):
        time.sleep(LOOK_SECONDS)


@contextmanager
def lone_nodes(count: int = 1, arguments: Sequence[str] = ()) -> Iterator[list[Redis]]:
    """Yields clients of nodes outside cluster mode whose workers are ready; {folder} in an argument is the nodes'."""
    servers: list[Any] = []
    # a rewrite and the worker end a moment after their node, and may still write
    with tempfile.TemporaryDirectory(prefix="shardqa-bench-", ignore_cleanup_errors=True) as folder:
        first = ports.random_block(2 * count, 1)
        numbers = range(first, first + 2 * count, 2)
        words = tuple(argument.replace("{folder}", folder) for argument in arguments)
        try:
            for port in numbers:
                place = Path(folder) / str(port)
                place.mkdir()
                module = redis_server.module_path()
                config = NodeConfig(place, port, port + 1, module=module, cluster=False, module_arguments=words)
                servers.append(redis_server.start(config, redis_server.find_server()))
            yield [ready_client(port) for port in numbers]
        finally:
            processes.stop(servers)


def ready_client(port: int) -> Redis:
    client = Redis(port=port, socket_timeout=120)
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            if client.info("shardqa")["shardqa_worker_state"] == "ready":
                return client
        except (OSError, RedisGone):
            assert time.monotonic() < deadline, "redis-server did not start"
        time.sleep(0.1)


def port_of(client: Redis) -> int:
    return int(client.get_connection_kwargs()["port"])


def direct_session(model: bytes) -> Any:
    """Returns onnxruntime's own session, with one thread as a worker's."""
    import onnxruntime as ort  # after shardqa, which turns its telemetry off

    settings = ort.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def resident(pid: int) -> float:
    """Resident memory of a process, MB."""
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def processor_seconds(pid: int) -> float:
    """Sums up what a running process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
