"""Clients that tests of RedisGears' Python share."""

from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis, RedisCluster

from shardqa.cluster.local import LocalCluster
from tests.compat.scripts import registered_ids, send
from tests.nodes import Node


@pytest.fixture
def client(redis_node: Node) -> Iterator[Redis]:
    """A client of the shared node: use names of your own."""
    with redis_node.client(decode_responses=True) as client:
        yield client


@pytest.fixture(scope="session")
def cluster_client(bare_cluster: LocalCluster) -> Iterator[Any]:
    """A client of the shared cluster, that follows redirections."""
    with RedisCluster(
        host="127.0.0.1", port=bare_cluster.state.port, decode_responses=True, socket_timeout=120
    ) as client:
        yield client


@pytest.fixture
def shards(cluster_client: Any) -> Iterator[list[Redis]]:
    """A client of each master of the shared cluster; what a test registers there goes when it ends."""
    shards = [node.redis_connection for node in cluster_client.get_primaries()]
    others = registered_ids(shards[0])
    yield shards
    for id in registered_ids(shards[0]):
        if id not in others:
            send(shards[0], "RG.UNREGISTER", id)
