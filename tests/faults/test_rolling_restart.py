"""Nodes of the release before this one become nodes of this version, one after another, while it is asked and written.

As docs/operating.md says, Upgrade: replicas first, then each master once its replica has taken over, then
`shardqa prepare`. An API of the release and an engine of this version ask and write all the while. Nothing is lost,
nothing is wrong, and everything is answered or told to retry. The release is taken from the history of this repository,
built, and run with the Python packages of this environment.
"""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from shardqa.cluster import local
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.loader import preparation
from tests.faults import aftermath, documents
from tests.faults.checker import check
from tests.faults.release import python_of
from tests.faults.running_api import running_api
from tests.faults.subject import EXTRA, Subject
from tests.faults.workload import Asker, Record, Stop, Writer
from tests.nodes import running_cluster

RELEASE = "95512bb"
pytestmark = pytest.mark.skipif(os.environ.get("FAULTS") != "all", reason="takes 45 s; 'make faults' runs it")
ROOT = Path(__file__).parents[2]
CORPUS = "rolling"
LOAD_SECONDS = 1.5  # before and after each change
LAG = 5.0  # of kept answers of another process, on a machine that is busy


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its checkout, with its module built."""
    folder = tmp_path_factory.mktemp("release")
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", RELEASE], capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this clone has no commit {RELEASE} (git fetch --unshallow brings it)")
    subprocess.run(["tar", "x", "-C", str(folder)], input=packed.stdout, check=True)
    subprocess.run(["make", "-s", "-C", str(folder / "module")], check=True)
    return folder


@pytest.fixture
def old(release: Path, tmp_path: Path) -> Iterator[tuple[Subject, Path]]:
    """A cluster of that release, prepared by its own command line, and its Python."""
    python = python_of(release, tmp_path)
    options = {"module": release / "module" / "shardqa.so", "module_arguments": ("PYTHON", str(python))}
    with running_cluster(tmp_path / "data", shards=2, replicas=1, extra=EXTRA, **options) as cluster:
        command = [str(python), "-m", "shardqa", "prepare", "--redis", cluster.seed()]
        subprocess.run(command, check=True, env=without_settings())
        yield Subject(cluster), python


async def under_load(record: Record, settings: Settings, url: str, change: Callable[[], None]) -> None:
    """`change` in a thread, while clients ask and write: by the earlier version's API, and by this version's engine."""
    stop, doors = Stop(), (url, None)
    clients: list[Asker | Writer] = [
        *(Asker(record, settings, Random(n), door) for n, door in enumerate(doors)),
        *(Writer(record, settings, documents.NAMES[n::2], Random(n), 0, 0.1, door) for n, door in enumerate(doors)),
    ]
    async with asyncio.TaskGroup() as group:
        for one in clients:
            group.create_task(one.run(stop))
        try:
            await asyncio.sleep(LOAD_SECONDS)
            await asyncio.to_thread(change)
            await asyncio.sleep(LOAD_SECONDS)
        finally:
            stop.is_set = True


def change_all(subject: Subject) -> None:
    """Replicas, then masters that have become replicas."""
    replicas = [one for one in subject.nodes() if one.role == "replica"]
    for replica in replicas:
        change(subject, replica.port)
    for replica in replicas:
        master = next(one for one in subject.nodes() if one.id == replica.master)
        with subject.client(replica.port) as client:
            client.execute_command("CLUSTER", "FAILOVER")
        subject.wait_until_master(replica.port)
        change(subject, master.port)


def change(subject: Subject, port: int) -> None:
    """A node ends and starts again on its own data, with this version's module."""
    local.stop(subject.cluster.data, tuple(one for one in subject.cluster.state.nodes if one.port == port))
    subject.restart()
    subject.wait_until_whole()


async def prepared(settings: Settings) -> None:
    engine = await Engine.connect(settings)
    try:
        await preparation.prepare(engine)
    finally:
        await engine.close()


def without_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}


async def test_nodes_change_their_version_one_by_one_under_load(old: tuple[Subject, Path], tmp_path: Path) -> None:
    subject, python = old
    settings = Settings(redis=subject.cluster.seed(), corpus=CORPUS, timeout=30)
    record = Record()
    with running_api(settings, tmp_path, python) as (url, _):
        await under_load(record, settings, url, lambda: change_all(subject))
    await prepared(settings)
    print(*sorted(record.counts.items()), *record.retries[:10], f"slowest {record.slowest:.1f} s", sep="\n")
    assert record.counts["written: acknowledged"] > 20
    assert record.counts["asked: whole"] > 20
    assert not record.faults, "\n".join(record.faults[:10])
    engine = await Engine.connect(settings)
    left = await aftermath.check(record, engine, subject)
    await engine.close()
    assert not left, left[:10]
    found = check(record.history, LAG)
    assert not found, "\n".join(map(str, found[:5]))
