"""What all parts of an engine share: its connections, the epochs, and how a function's replies are read."""

import json
from time import perf_counter
from typing import Any

from shardqa.config import Settings
from shardqa.engine.connections import Reply, Shards
from shardqa.engine.epochs import Epochs
from shardqa.errors import (
    ClusterUnavailable,
)


def record_of(reply: Any) -> dict[str, Any]:
    """A function's reply: one record, JSON text."""
    record = reply[0] if isinstance(reply, list) else reply
    loaded = json.loads(record)
    assert isinstance(loaded, dict), f"a function replied {type(loaded).__name__}, not an object"
    return loaded


def came_and_failed(replies: list[Reply]) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """Replies that came and nodes that can't be reached; any other fault is raised."""
    came, failed = [], []
    for reply in replies:
        if isinstance(reply.fault, ClusterUnavailable):
            failed.append(reply.node)
        elif reply.fault is not None:
            raise reply.fault
        else:
            came.append((reply.node, record_of(reply.value)))
    if not came:
        faults = [reply.fault for reply in replies if reply.fault]
        raise faults[0] if faults else ClusterUnavailable("the cluster has no masters; see 'shardqa status'")
    return came, failed


def since(start: float) -> float:
    return round((perf_counter() - start) * 1_000, 3)


class Connected:
    def __init__(self, settings: Settings, masters: Shards) -> None:
        self.settings = settings
        self.masters = masters
        self.epochs = Epochs(masters)
