"""What tests of RedisGears' Python share."""

from collections.abc import Iterator

import pytest
from redis import Redis

from tests.nodes import Node


@pytest.fixture
def client(redis_node: Node) -> Iterator[Redis]:
    """Of the shared node: use names of your own."""
    with redis_node.client(decode_responses=True) as client:
        yield client
