"""What tests of the shards' functions share."""

from collections.abc import Callable, Iterator

import pytest

from shardqa.cluster.local import LocalCluster
from tests.cluster.shards_client import Shards


@pytest.fixture
def shards(cluster: LocalCluster, corpus: str) -> Iterator[Shards]:
    """The shared cluster, by plain commands, with a corpus of this test's own."""
    found = Shards(cluster, corpus)
    yield found
    found.close()


@pytest.fixture
def connect(corpus: str) -> Iterator[Callable[[LocalCluster], Shards]]:
    """The same for clusters that a test starts itself."""
    opened: list[Shards] = []

    def connect(cluster: LocalCluster) -> Shards:
        opened.append(Shards(cluster, corpus))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()
