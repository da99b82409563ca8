"""Hash tags and slots: which master holds a key, and the tag under which each shard keeps what can be made again."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from redis import Redis
from redis.crc import key_slot
from redis.exceptions import ResponseError

from shardqa.cluster.node import command
from shardqa.description import CorporaOfShard, ShardDescription, StreamProgress
from shardqa.topology import Node

Result = TypeVar("Result")


def slot(key: str) -> int:
    """Returns a key's slot, by its hash tag if it has one (https://redis.io/docs/latest/reference/cluster-spec/)."""
    return key_slot(key.encode())


def owner(nodes: Sequence[Node], key: str) -> Node | None:
    """Returns the master that holds `key`; None when no node owns its slot."""
    return next((node for node in nodes if node.role == "master" and node.owns(slot(key))), None)


def description(client: Redis) -> ShardDescription | None:
    """Asks a shard for its description. Raises redis.RedisError when the node can't be reached."""
    return _parsed(client, "Shard", ShardDescription.parse)


def corpora(client: Redis) -> CorporaOfShard | None:
    return _parsed(client, "Corpora", CorporaOfShard.parse)


def streams(client: Redis) -> StreamProgress | None:
    return _parsed(client, "Streams", StreamProgress.parse)


def _parsed(client: Redis, trigger: str, parse: Callable[[Any], Result]) -> Result | None:
    """Returns the reply of a shard's trigger; None where it is not registered, or has nothing to tell."""
    try:
        return parse(command(client, "RG.TRIGGER", trigger))
    except ResponseError:
        return None
