"""The one way in which tests start Redis: a node of its own, or a local cluster.

Everything runs on random free ports of loopback in temporary folders, always with an AOF. Only processes started here
are ended, by pid.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest
from redis import ConnectionError, Redis, RedisError, ResponseError, TimeoutError
from redis.backoff import NoBackoff
from redis.retry import Retry

from shardqa import keys
from shardqa.cluster import local, ports, processes, redis_server
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.cluster.processes import ProcessId
from shardqa.cluster.redis_server import NodeConfig
from shardqa.config import Settings
from shardqa.errors import SetupError

ATTEMPTS = 5  # other processes may take a port between our look and our start
TAKEN = ("Address already in use", "in use")
NOT_YET = (ConnectionError, TimeoutError, ResponseError)
SECONDS = 90.0  # for anything that will come; a loaded machine takes its time


def patient(options: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a node a deadline that no busy machine meets, where a test names none of its own."""
    words = tuple(options.get("module_arguments", ()))
    return {**options, "module_arguments": words if "TIMEOUT" in words else (*words, "TIMEOUT", "60000")}


def wait_until(condition: Callable[[], Any], what: str = "the awaited state", seconds: float = SECONDS) -> Any:
    """The first truthy value of `condition`; an error of Redis counts as false.

    It looks less often the longer it waits: a look may cost a node and its worker more than the test itself.
    """
    begun = time.monotonic()
    while True:
        try:
            if found := condition():
                return found
            met = ""
        except NOT_YET as error:
            met = f" ({error})"
        waited = time.monotonic() - begun
        if waited > seconds:
            pytest.fail(f"waited {seconds:.0f} s in vain: {what}{met}")
        time.sleep(min(0.1, 0.01 + waited / 10))


def free_port(bus_offset: int = 10_000) -> int:
    """One whose cluster bus port is free too."""
    return ports.random_block(1, bus_offset)


class Node:
    """One redis-server process, outside cluster mode unless `cluster=True`; other options are those of NodeConfig."""

    def __init__(self, folder: Path, *, environment: Mapping[str, str] | None = None, **options: Any) -> None:
        options = {"module": redis_server.module_path(), "cluster": False, **patient(options)}
        port = options.pop("port", None) or free_port(1)
        self.config = NodeConfig(folder=folder, port=port, bus_port=port + 1, **options)
        self.environment = environment
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return self.config.port

    @property
    def folder(self) -> Path:
        return self.config.folder

    @property
    def log(self) -> str:
        path = self.folder / redis_server.LOG
        return path.read_text(errors="replace") if path.exists() else ""

    def client(self, **options: Any) -> Any:
        """A redis-py client (Any: its types promise None and awaitables everywhere)."""
        return Redis(host=ports.HOST, port=self.port, **{"socket_timeout": 120, **options})

    def launch(self) -> None:
        """Starts the process and returns at once."""
        self.process = redis_server.spawn(self.config, redis_server.find_server(), self.environment)

    def start(self) -> Self:
        """Returns when the node answers. Where its port was taken meanwhile, it gets another one."""
        for _ in range(ATTEMPTS):
            self.launch()
            try:
                wait_until(self.ready, f"node on port {self.port} answers")
                return self
            except AssertionError:
                if not any(words in self.log for words in TAKEN):
                    raise
                (self.folder / redis_server.LOG).unlink()
                port = free_port(1)
                self.config = replace(self.config, port=port, bus_port=port + 1)
        raise AssertionError("no free port")

    def ready(self) -> bool:
        return self.alive() and self.answers()

    def alive(self) -> bool:
        """True; a node that has ended is a fault."""
        assert self.process is not None
        assert self.process.poll() is None, f"redis-server ended:\n{self.log[-3000:]}"
        return True

    def answers(self) -> bool:
        try:
            with self.client(retry=Retry(NoBackoff(), 0)) as client:  # redis-py's own waits for seconds
                return bool(client.ping())
        except RedisError:
            return False

    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def ended(self) -> int:
        """Waits until it has ended by itself; its exit status."""
        assert self.process is not None
        return self.process.wait(SECONDS)

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        for _ in range(10):  # a replica that writes its first AOF refuses to stop
            self.process.send_signal(how)
            self.process.send_signal(signal.SIGCONT)  # a test may have stopped it
            try:
                self.process.wait(1)
                return
            except subprocess.TimeoutExpired:
                continue
        self.process.kill()
        self.process.wait(SECONDS)

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def restart(self, how: int = signal.SIGTERM) -> None:
        """Stops it where it runs, starts it again on its own data, and returns when it answers."""
        self.stop(how)
        self.start()


@contextmanager
def running_node(folder: Path, **options: Any) -> Iterator[Node]:
    node = Node(folder, **options)
    try:
        node.start()
        yield node
    finally:
        node.stop()


@contextmanager
def running_cluster(data: Path, **options: Any) -> Iterator[LocalCluster]:
    """A local cluster on random ports; options are those of cluster.local.ClusterOptions."""
    nodes, options = options.get("shards", 3) * (1 + options.get("replicas", 0)), patient(options)
    for attempt in range(ATTEMPTS):
        port = ports.random_block(nodes, nodes)
        try:
            cluster = local.start(ClusterOptions(data=data, port=port, bus_offset=nodes, **options))
            break
        except SetupError as error:
            if not any(words in str(error) for words in TAKEN) or attempt == ATTEMPTS - 1:
                raise
    try:
        yield cluster
    finally:
        local.stop(data)


def process_of(cluster: LocalCluster, number: int) -> ProcessId:
    """The process that the n-th node of a cluster has now."""
    now = local.inspect(cluster.data)
    assert now is not None
    process = now.nodes[number].process
    assert process is not None
    return process


def kill_node(cluster: LocalCluster, number: int) -> None:
    """Ends the n-th node by kill -9; `local.start` starts it again on its own data."""
    processes.kill(process_of(cluster, number))
    redis_server.reap()


@contextmanager
def hanging(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def settings_of(cluster: LocalCluster, **options: Any) -> Settings:
    return Settings(redis=cluster.seed(), **options)


def prepare(cluster: LocalCluster) -> None:
    """Functions and the shipped reader on every shard; no encoder, whose work in the background would disturb."""
    prepare_settings(settings_of(cluster, timeout=60))


def prepare_settings(settings: Settings) -> None:
    asyncio.run(_prepare(settings))


async def _prepare(settings: Settings) -> None:
    from shardqa.engine import Engine  # imported where it is used: most unit tests need no engine
    from shardqa.loader import preparation

    engine = await Engine.connect(settings)
    try:
        await engine.shards.by_key(keys.NO_ENCODER, "SET", "by these tests")
        await preparation.prepare(engine)
    finally:
        await engine.close()


def ports_of_process(worker: str) -> tuple[int, int]:
    """A range of ports for the n-th of pytest-xdist's processes (gw0, gw1 ...), that has its bus ports apart too."""
    first, beyond = ports.RANDOM_RANGE
    share = (min(beyond, first + 10_000) - first) // 8
    start = first + int(worker.removeprefix("gw")) % 8 * share
    return start, start + share


def stay_apart() -> None:
    """Parallel processes of one test run never choose the same port."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        ports.RANDOM_RANGE = ports_of_process(worker)
