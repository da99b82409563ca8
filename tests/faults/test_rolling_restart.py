"""Nodes end and start again, one after another, while the cluster is asked and written.

As docs/operating.md says, Upgrade: replicas first, then each master once its replica has taken over, then
`shardqa prepare`. An API and an engine ask and write all the while. Nothing is lost, nothing is wrong, and everything
is answered or told to retry.
"""

import asyncio
import os
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
from tests.faults.running_api import running_api
from tests.faults.subject import EXTRA, Subject
from tests.faults.workload import Asker, Record, Stop, Writer
from tests.nodes import running_cluster

pytestmark = pytest.mark.skipif(os.environ.get("FAULTS") != "all", reason="takes 45 s; 'make faults' runs it")
CORPUS = "rolling"
LOAD_SECONDS = 1.5  # before and after each change
LAG = 5.0  # of kept answers of another process, on a machine that is busy


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    with running_cluster(tmp_path / "data", shards=2, replicas=1, extra=EXTRA) as cluster:
        yield Subject(cluster)


async def under_load(record: Record, settings: Settings, url: str, change: Callable[[], None]) -> None:
    """`change` in a thread, while clients ask and write, by the API and by an engine."""
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
    """A node ends and starts again on its own data."""
    local.stop(subject.cluster.data, tuple(one for one in subject.cluster.state.nodes if one.port == port))
    subject.restart()
    subject.wait_until_whole()


async def prepared(settings: Settings) -> None:
    engine = await Engine.connect(settings)
    try:
        await preparation.prepare(engine)
    finally:
        await engine.close()


async def test_nodes_start_anew_one_by_one_under_load(subject: Subject, tmp_path: Path) -> None:
    settings = Settings(redis=subject.cluster.seed(), corpus=CORPUS, timeout=30)
    await prepared(settings)
    record = Record()
    with running_api(settings, tmp_path) as (url, _):
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
