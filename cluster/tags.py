"""Hash tags and slots: which master holds a key, and the tag under which each shard keeps what can be made again."""

import json
from collections.abc import Sequence
from typing import Any

from redis import Redis
from redis.crc import key_slot
from redis.exceptions import ResponseError

from shardqa.cluster.node import command
from shardqa.topology import Node


def slot(key: str) -> int:
    """The slot of a key, from its hash tag where it has one (https://redis.io/docs/latest/reference/cluster-spec/)."""
    return key_slot(key.encode())


def owner(nodes: Sequence[Node], key: str) -> Node | None:
    """The master that holds `key`; None when no node owns its slot."""
    return next((node for node in nodes if node.role == "master" and node.owns(slot(key))), None)


def corpora_of_shard(client: Redis) -> dict[str, Any] | None:
    """What the shard's functions tell of it: its `tag` and its `corpora`; None where they are not registered.

    Raises redis.RedisError when the node can't be reached.
    """
    try:
        reply = command(client, "RG.TRIGGER", "Corpora")
    except ResponseError:
        return None
    told = json.loads(reply[0] if isinstance(reply, list) else reply)
    assert isinstance(told, dict), f"Corpora replied {type(told).__name__}, not an object"
    return told


def of_shard(client: Redis) -> str | None:
    """The shard's own tag; None where its functions are not registered. Raises redis.RedisError."""
    told = corpora_of_shard(client)
    return str(told["tag"]) if told is not None else None
