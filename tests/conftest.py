"""Fixtures of all tests: one node, a node with a replica, a cluster of three shards with functions and reader.

The cluster lives for the whole session: each test uses a corpus of its own (fixture `corpus`). Four of the parallel
processes have one, and run all tests that share it; any other file stays whole in one process.
"""

import io
import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from tests import nodes
from tests.nodes import Node, running_cluster, running_node, settings_of, wait_until

if TYPE_CHECKING:
    from shardqa.engine import Engine  # imported where it is used: most unit tests need no engine

# No test depends on how fast the machine is.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")
nodes.stay_apart()
signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores Ctrl-C
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch comes: test processes share the cores as they are

ROOT = Path(__file__).parents[1]
SHARED = {"bare_cluster", "one_shard", "redis_node", "node_and_replica", "lonely"}  # fixtures for the whole session
GROUPS = {"api": "api", "cluster": "cluster", "faults": "cluster"}  # folder -> whose nodes its tests share


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in this hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has tests that share nodes run in four processes at most, and begin first: they take longest."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & SHARED:
            folder = item.path.relative_to(ROOT).parts[1]
            group = "page" if "browser" in fixtures else GROUPS.get(folder, "compat")
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keeps what has no group together by file, whose fixtures it shares."""
    from xdist.scheduler import LoadGroupScheduling

    scheduler = LoadGroupScheduling(config, log)
    group_of = scheduler._split_scope
    scheduler._split_scope = lambda nodeid: group_of(nodeid).partition("::")[0]
    return scheduler if config.getoption("dist") == "loadgroup" else None


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts nodes of its own for a test that harms them: `start_node(threads=2, extra=(("maxmemory", "50mb"),))`."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(running_node(tmp_path / f"node-{time.monotonic_ns()}", **options))


@pytest.fixture(scope="session")
def redis_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node with the module, outside cluster mode, shared: use keys of your own."""
    with running_node(tmp_path_factory.mktemp("redis-node")) as node:
        yield node


@pytest.fixture(scope="session")
def node_and_replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """A master and a replica that follows it, both with AOF, shared: use keys of your own."""
    with (
        running_node(tmp_path_factory.mktemp("master")) as master,
        running_node(tmp_path_factory.mktemp("replica"), replica_of=master.port) as replica,
    ):
        with replica.client() as client:
            wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica follows")
        yield master, replica


@pytest.fixture(scope="session")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three masters with the module and no functions."""
    with running_cluster(tmp_path_factory.mktemp("cluster") / "data", shards=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(bare_cluster: LocalCluster) -> LocalCluster:
    """Three masters with module, functions and the shipped reader, shared: use the `corpus` fixture for a corpus."""
    nodes.prepare(bare_cluster)
    return bare_cluster


@pytest.fixture(scope="session")
def one_shard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One shard with functions and reader, shared: whoever harms it mends it."""
    with running_cluster(tmp_path_factory.mktemp("one-shard") / "data", shards=1) as cluster:
        nodes.prepare(cluster)
        yield cluster


@pytest.fixture(scope="module")
def start_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., LocalCluster]]:
    """Starts further clusters, with functions and reader, that end with the file: `start_cluster(shards=1)`."""
    with ExitStack() as stack:

        def start(**options: Any) -> LocalCluster:
            data = tmp_path_factory.mktemp("cluster") / "data"
            started = stack.enter_context(running_cluster(data, **options))
            nodes.prepare(started)
            return started

        yield start


@pytest.fixture
def settings(cluster: LocalCluster, corpus: str) -> Settings:
    return settings_of(cluster, corpus=corpus, timeout=60)


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


@dataclass(frozen=True, slots=True)
class Output:
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Output]:
    """Runs the command line in this process: `program("ask", "Who?", SHARDQA_REDIS=seed, code=1)`."""
    from shardqa import cli  # imported where it is used: most unit tests need no program

    def run(*words: str, code: int = 0, stdin: str = "", **environment: str) -> Output:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("SHARDQA_")]:
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["shardqa", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            with pytest.raises(SystemExit) as exit:
                cli.main()
        output = Output(*capsys.readouterr())
        assert int(exit.value.code or 0) == code, output.stdout + output.stderr
        return output

    return run


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of big data sets beside the checkout; a test that needs it skips where it is absent."""
    folder = Path(os.environ.get("SHARDQA_SHARED") or Path(__file__).parents[2] / "shared")
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent; SHARDQA_SHARED names the folder of the big data sets")
    return folder
