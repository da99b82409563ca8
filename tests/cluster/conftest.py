"""What tests of the shards' functions share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardqa.cluster.local import LocalCluster
from tests import split_readers
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


@pytest.fixture(scope="session")
def split_reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, made once; nobody changes it."""
    pytest.importorskip("onnx", reason="the split reader of these tests is made with onnx")
    return split_readers.made(tmp_path_factory.mktemp("split"))
