"""Answers kept in Redis where memory ends."""

from collections.abc import Callable

import pytest
from redis import Redis

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.schema import Document
from tests.nodes import settings_of

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
QUESTION = "When was the mill at Hallow Ford built?"


@pytest.fixture
def small(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A shard whose memory this test takes."""
    return start_cluster(shards=1)


async def test_where_memory_ends_answers_go_and_documents_stay(small: LocalCluster, corpus: str) -> None:
    host, _, port = small.seed().rpartition(":")
    engine = await Engine.connect(settings_of(small, corpus=corpus, timeout=30, cache_megabytes=0))
    try:
        await engine.documents.put(Document(id="mill", text=MILL))
        with Redis(host=host, port=int(port)) as client:
            client.config_set("maxmemory", client.info("memory")["used_memory"] + 3_000_000)
            for n in range(300):
                client.set(f"ask:{corpus}:other:{n}", b"x" * 50_000, ex=3_600)
            assert client.info("stats")["evicted_keys"] > 0
        assert (await engine.ask(QUESTION)).answer == "1742"
        assert await engine.documents.get(corpus, "mill") is not None
    finally:
        await engine.close()
