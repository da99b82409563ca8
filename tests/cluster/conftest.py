"""Fixtures of tests on a cluster: the shards by plain commands."""

from collections.abc import Callable, Iterator

import pytest

from shardqa.cluster.local import LocalCluster
from tests.cluster.shards_client import Shards


@pytest.fixture
def shards(cluster: LocalCluster, corpus: str) -> Iterator[Shards]:
    """The shared cluster, by plain commands, with a corpus of this test's own."""
    shards = Shards(cluster, corpus)
    yield shards
    shards.close()


@pytest.fixture
def connect(corpus: str) -> Iterator[Callable[[LocalCluster], Shards]]:
    """Gives the same of clusters that a test starts itself."""
    parts: list[Shards] = []

    def connect(cluster: LocalCluster) -> Shards:
        parts.append(Shards(cluster, corpus))
        return parts[-1]

    yield connect
    for shards in parts:
        shards.close()
