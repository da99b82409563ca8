"""Slots of the cluster: which this shard serves, and which are on their way to it or away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.crc import key_slot

from shardqa import keys, topology
from shardqa.worker.runtime import Runtime

NODES = ("CLUSTER", "NODES")
MIGRATIONS = ("CLUSTER", "GETSLOTMIGRATIONS")  # Valkey 9's way to move many slots at once, which NODES does not show
ENDED = (b"success", b"failed", b"cancelled")  # states of a migration that is over
NO_MIGRATIONS = "functions may use"  # how the module refuses to ask a server that has none


@dataclass(frozen=True, slots=True)
class Slots:
    ranges: tuple[tuple[int, int], ...]  # first and last slot, both served here
    moving: frozenset[int]

    @classmethod
    def parse(cls, nodes: str, migrations: Sequence[Sequence[Any]] = ()) -> Slots:
        """Reads the replies of CLUSTER NODES and CLUSTER GETSLOTMIGRATIONS."""
        mine = topology.myself(topology.parse(nodes))
        return cls(mine.slots, mine.moving.union(*map(_slots_of_migration, migrations)))

    def begins_with(self, tag: str) -> bool:
        """Returns whether the tag is the shard's: of the lowest slot served here."""
        return slot_of(f"{{{tag}}}") == min((first for first, _ in self.ranges), default=None)

    def holds(self, key: str) -> bool:
        """Returns whether the key belongs here and stays."""
        slot = slot_of(key)
        return slot not in self.moving and self.serves(slot)

    def serves(self, slot: int) -> bool:
        return any(first <= slot <= last for first, last in self.ranges)


OF_BUCKETS = {bucket: int(key_slot(bucket.encode())) for bucket in keys.ALL_BUCKETS}
ALL = Slots(((0, 16_383),), frozenset())


async def look(runtime: Runtime) -> Slots:
    """Returns the slots in the cluster's present state; all slots outside cluster mode."""
    nodes, migrations = await runtime.calls([NODES, MIGRATIONS])
    if isinstance(nodes, Exception):
        if "cluster support disabled" in str(nodes):
            return ALL
        raise nodes
    if isinstance(migrations, Exception):
        if NO_MIGRATIONS not in str(migrations):
            raise migrations
        migrations = []
    return Slots.parse(nodes.decode("utf-8", "replace"), migrations)


def _slots_of_migration(reply: Sequence[Any]) -> set[int]:
    """Returns the slots that a migration moves; none where it is over."""
    state = dict(zip(reply[::2], reply[1::2], strict=True))
    if state[b"state"] in ENDED:
        return set()
    ranges = (part.partition(b"-") for part in state[b"slot_ranges"].split())
    return {slot for first, _, last in ranges for slot in range(int(first), int(last or first) + 1)}


def slot_of(key: str) -> int:
    return int(key_slot(key.encode("utf-8", "surrogateescape")))
