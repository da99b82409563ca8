"""Nodes end and start again, one after another, while the cluster is asked and written.

As docs/operating.md says, Upgrade: replicas first, then `shardqa prepare`, then each master once its replica has taken
over. An API and an engine ask and write all the while. Nothing is lost, nothing is wrong, and everything
is answered or told to retry.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from shardqa.cluster import local
from shardqa.config import Settings
from tests.api.conftest import running_api
from tests.faults import aftermath, documents
from tests.faults.subject import EXTRA, Subject
from tests.faults.workload import Asker, Record, Writer, under_load
from tests.nodes import prepare, running_cluster

pytestmark = pytest.mark.skipif(os.environ.get("FAULTS") != "all", reason="takes 45 s; 'make faults' runs it")
CORPUS = "rolling"
LOAD_SECONDS = 1.5  # before and after each change
LAG = 5.0  # of kept answers of another process, on a machine that is busy


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    with running_cluster(tmp_path / "data", shards=2, replicas=1, extra=EXTRA) as cluster:
        yield Subject(cluster)


def change_all(subject: Subject) -> None:
    """Replicas, then masters that have become replicas."""
    replicas = [one for one in subject.nodes() if one.role == "replica"]
    for replica in replicas:
        change(subject, replica.port)
    prepare(subject.cluster)
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


async def changes(subject: Subject) -> None:
    await asyncio.sleep(LOAD_SECONDS)
    await asyncio.to_thread(change_all, subject)
    await asyncio.sleep(LOAD_SECONDS)


async def test_nodes_start_anew_one_by_one_under_load(subject: Subject, tmp_path: Path) -> None:
    settings, record = Settings(redis=subject.cluster.seed(), corpus=CORPUS, timeout=90), Record()
    await asyncio.to_thread(prepare, subject.cluster)
    with running_api(tmp_path, redis=settings.redis, corpus=CORPUS, timeout=90, cache_megabytes=4) as api:
        clients: list[Asker | Writer] = [
            *(Asker(record, settings, Random(n), door) for n, door in enumerate((api.url, None))),
            *(
                Writer(record, settings, documents.NAMES[n::2], Random(n), 0, 0.1, door)
                for n, door in enumerate((api.url, None))
            ),
        ]
        await under_load(clients, changes(subject))
    await asyncio.to_thread(prepare, subject.cluster)
    await aftermath.assert_right(record, settings, subject, LAG)
