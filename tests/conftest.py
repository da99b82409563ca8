"""Real servers for tests: one node, a node with a replica, a cluster of three shards with functions and reader.

Everything runs on random free ports of loopback in temporary folders, always with an AOF. Only processes started here
are ended, by pid. The cluster lives for the whole session: each test uses a corpus of its own (fixture `corpus`).
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from redis import Redis
from redis.exceptions import RedisError

from shardqa.cluster import local, ports, processes, redis_server
from shardqa.cluster.local import LocalCluster, Wanted
from shardqa.cluster.processes import ProcessId
from shardqa.cluster.redis_server import NodeConfig
from shardqa.config import Settings
from shardqa.errors import SetupError

if TYPE_CHECKING:
    from shardqa.engine import Engine  # imported where it is used: most unit tests need no engine

# No test depends on how fast the machine is.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")

ATTEMPTS = 5  # other processes may take a port between our look and our start


@dataclass(slots=True)
class RunningNode:
    config: NodeConfig
    process: ProcessId

    @property
    def port(self) -> int:
        return self.config.port

    @property
    def folder(self) -> Path:
        return self.config.folder

    def client(self, **options: Any) -> Redis:
        return Redis(host=ports.HOST, port=self.config.port, socket_timeout=20, **options)

    def log(self) -> str:
        return (self.config.folder / redis_server.LOG).read_text(errors="replace")

    def kill(self) -> None:
        """kill -9."""
        processes.kill(self.process)
        redis_server.reap()

    def restart(self) -> None:
        """Starts it again on its own data, and returns when it answers."""
        assert not processes.alive(self.process), "still running"
        self.process = redis_server.start(self.config, redis_server.find_server())
        wait_until(lambda: _answers(self), f"node on port {self.config.port} answers")


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(0.02)
    return found


def _answers(node: RunningNode) -> bool:
    redis_server.reap()
    assert processes.alive(node.process), f"redis-server ended: {redis_server.last_lines(node.folder, 12)}"
    try:
        with node.client() as client:
            return bool(client.ping())
    except RedisError:
        return False


@contextmanager
def running_node(folder: Path, **options: Any) -> Iterator[RunningNode]:
    """A node with the module, outside cluster mode unless `cluster=True`; options are those of NodeConfig."""
    options = {"module": redis_server.module_path(), "cluster": False, **options}
    port = ports.random_block(1, 1)
    config = NodeConfig(folder=folder, port=port, bus_port=port + 1, **options)
    node = RunningNode(config, redis_server.start(config, redis_server.find_server()))
    try:
        wait_until(lambda: _answers(node), f"node on port {port} answers")
        yield node
    finally:
        processes.stop([node.process])
        redis_server.reap()


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[Callable[..., RunningNode]]:
    """Starts nodes of its own for a test that harms them: `start_node(threads=2, extra=(("maxmemory", "50mb"),))`."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(running_node(tmp_path / f"node-{time.monotonic_ns()}", **options))


@pytest.fixture(scope="session")
def redis_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """One node with the module, outside cluster mode, shared: use keys of your own."""
    with running_node(tmp_path_factory.mktemp("redis-node")) as node:
        yield node


@pytest.fixture(scope="session")
def node_and_replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A master and a replica that follows it, both with AOF, shared: use keys of your own."""
    with (
        running_node(tmp_path_factory.mktemp("master")) as master,
        running_node(tmp_path_factory.mktemp("replica"), replica_of=master.port) as replica,
    ):
        with replica.client() as client:
            wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica follows")
        yield master, replica


@contextmanager
def running_cluster(data: Path, **options: Any) -> Iterator[LocalCluster]:
    """A local cluster on random ports; options are those of cluster.local.Wanted."""
    nodes = options.get("shards", 3) * (1 + options.get("replicas", 0))
    for attempt in range(ATTEMPTS):
        port = ports.random_block(nodes, nodes)
        try:
            cluster = local.start(Wanted(data=data, port=port, bus_offset=nodes, **options))
            break
        except SetupError as error:
            if "in use" not in str(error) or attempt == ATTEMPTS - 1:
                raise
    try:
        yield cluster
    finally:
        local.stop(data)


def settings_of(cluster: LocalCluster, **options: Any) -> Settings:
    return Settings(redis=cluster.seed(), **options)


async def _load(cluster: LocalCluster) -> None:
    """Functions and the shipped reader on every shard."""
    from shardqa.engine import Engine
    from shardqa.loader import preparation

    engine = await Engine.connect(settings_of(cluster, timeout=60))
    try:
        await preparation.prepare(engine)
    finally:
        await engine.close()


@pytest.fixture(scope="session")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three masters with the module and no functions."""
    with running_cluster(tmp_path_factory.mktemp("cluster") / "data", shards=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(bare_cluster: LocalCluster) -> LocalCluster:
    """Three masters with module, functions and the shipped reader, shared: use the `corpus` fixture for a corpus."""
    asyncio.run(_load(bare_cluster))
    return bare_cluster


@pytest.fixture(scope="session")
def start_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., LocalCluster]]:
    """Starts further clusters, with functions and reader: `start_cluster(shards=1)`."""
    with ExitStack() as stack:

        def start(**options: Any) -> LocalCluster:
            data = tmp_path_factory.mktemp("cluster") / "data"
            started = stack.enter_context(running_cluster(data, **options))
            asyncio.run(_load(started))
            return started

        yield start


@pytest.fixture
def settings(cluster: LocalCluster, corpus: str) -> Settings:
    return settings_of(cluster, corpus=corpus, timeout=30)


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator["Engine"]:
    """An engine of the shared cluster whose default corpus is this test's own."""
    from shardqa.engine import Engine

    engine = await Engine.connect(settings)
    yield engine
    await engine.close()


@pytest.fixture
def corpus(request: pytest.FixtureRequest) -> str:
    """A corpus name no other test has."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-") + f"-{time.monotonic_ns() % 10**9}"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of big data sets beside the checkout; a test that needs it skips where it is absent."""
    folder = Path(os.environ.get("SHARDQA_SHARED") or Path(__file__).parents[2] / "shared")
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent; SHARDQA_SHARED names the folder of the big data sets")
    return folder
