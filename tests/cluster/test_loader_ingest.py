"""Ingesting into a cluster that loses a node on the way: nothing is lost, nothing hangs."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardqa.cluster import local, processes, redis_server
from shardqa.cluster.local import ClusterOptions, LocalCluster
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable
from shardqa.loader import ingest
from shardqa.loader.source_file import Item, Skipped
from shardqa.schema import Document

DOCUMENTS = 300


class Stories:
    """Documents, and somewhere among them one that is unfit."""

    total = DOCUMENTS

    def done(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Item]:
        for n in range(DOCUMENTS):
            yield Document(id=f"story-{n}", text=f"Story {n}. The miller of village {n} had {n + 2} sons. " * 20)
        yield Skipped("nowhere", "unfit")
        yield Document(id="story-1", text="A second one of the same id.")


@pytest.fixture
def two_shards(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Two shards that lose nothing they acknowledged: with everysec, kill -9 may cost the last two seconds."""
    return start_cluster(shards=2, extra=(("appendfsync", "always"),))


def kill_second_node(data: Path) -> None:
    found = local.inspect(data)
    assert found is not None
    process = found.nodes[1].process
    assert process is not None
    processes.kill(process)
    redis_server.reap()


async def connect(cluster: LocalCluster) -> Engine:
    return await Engine.connect(Settings(redis=cluster.seed(), timeout=30))


async def test_a_node_killed_on_the_way_loses_no_document(two_shards: LocalCluster) -> None:
    engine = await connect(two_shards)
    killed: list[asyncio.Task[LocalCluster]] = []

    def progress(summary: ingest.Summary) -> None:
        if not killed and summary.documents >= 50:
            kill_second_node(two_shards.data)
            killed.append(asyncio.create_task(asyncio.to_thread(local.start, ClusterOptions(data=two_shards.data))))

    summary = await ingest.ingest(engine, Stories(), "stories", progress)
    await killed[0]
    assert summary.documents + summary.unchanged == DOCUMENTS
    assert [s.reason for s in summary.reasons] == ["unfit", "the id 'story-1' was met before, in "]
    again = await ingest.ingest(engine, Stories(), "stories")
    assert (again.documents, again.unchanged) == (0, DOCUMENTS)
    (info,) = (await engine.catalogue.corpora()).corpora
    assert info.documents == DOCUMENTS
    await engine.close()


async def test_a_node_that_stays_away_ends_the_ingest_with_its_name(
    two_shards: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "PATIENCE", 0.5)
    engine = await connect(two_shards)
    kill_second_node(two_shards.data)
    with pytest.raises(ClusterUnavailable, match=rf"{two_shards.state.nodes[1].port}|down"):
        await ingest.ingest(engine, Stories(), "stories")
    await engine.close()
