"""Hash tags and slots: which master holds a key, and the tag under which each shard keeps what can be made again."""

from collections.abc import Sequence

from redis import Redis
from redis.crc import key_slot
from redis.exceptions import ResponseError

from shardqa.cluster.node import command
from shardqa.description import CorporaOfShard, ShardDescription, StreamProgress
from shardqa.topology import Node


def slot(key: str) -> int:
    """The slot of a key, from its hash tag where it has one (https://redis.io/docs/latest/reference/cluster-spec/)."""
    return key_slot(key.encode())


def owner(nodes: Sequence[Node], key: str) -> Node | None:
    """The master that holds `key`; None when no node owns its slot."""
    return next((node for node in nodes if node.role == "master" and node.owns(slot(key))), None)


def description(client: Redis) -> ShardDescription | None:
    """What the shard's functions tell of it; None where they are not registered.

    Raises redis.RedisError when the node can't be reached.
    """
    try:
        return ShardDescription.parse(command(client, "RG.TRIGGER", "Shard"))
    except ResponseError:
        return None


def corpora(client: Redis) -> CorporaOfShard | None:
    """The same with its corpora."""
    try:
        return CorporaOfShard.parse(command(client, "RG.TRIGGER", "Corpora"))
    except ResponseError:
        return None


def streams(client: Redis) -> StreamProgress | None:
    """How far its streams of documents are; None where its functions know of none."""
    try:
        return StreamProgress.parse(command(client, "RG.TRIGGER", "Streams"))
    except ResponseError:
        return None
