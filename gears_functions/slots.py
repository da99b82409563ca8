"""Which slots of the cluster this shard serves, and which are on their way here or away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from redis import ResponseError
from redis.crc import key_slot

from shardqa import topology

if TYPE_CHECKING:
    from shardqa.gears_functions.runtime import Runtime

BETWEEN = ("TRYAGAIN", "MOVED", "ASK")  # how Redis begins what it says of a key whose slot is not all here


@dataclass(frozen=True, slots=True)
class Slots:
    ranges: tuple[tuple[int, int], ...]  # first and last slot, both served here
    moving: frozenset[int]

    @classmethod
    def parse(cls, nodes: str) -> Slots:
        """Of the reply of CLUSTER NODES."""
        mine = topology.myself(topology.parse(nodes))
        return cls(mine.slots, mine.moving)

    def begins_with(self, tag: str) -> bool:
        """Whether the tag is the shard's: of the lowest slot served here."""
        return slot_of(f"{{{tag}}}") == min((first for first, _ in self.ranges), default=None)

    def moves(self, key: str) -> bool:
        """Whether the key's slot is between shards, so that its keys may be on either."""
        return slot_of(key) in self.moving

    def holds(self, key: str) -> bool:
        """Whether the key belongs here and stays."""
        slot = slot_of(key)
        return slot not in self.moving and any(first <= slot <= last for first, last in self.ranges)


ALL = Slots(((0, 16_383),), frozenset())


async def look(runtime: Runtime) -> Slots:
    """As the cluster is now; all slots outside cluster mode."""
    try:
        reply = await runtime.call("CLUSTER", "NODES")
    except ResponseError as error:
        if "cluster support disabled" in str(error):
            return ALL
        raise
    return Slots.parse(reply.decode("utf-8", "replace"))


def slot_of(key: str) -> int:
    return int(key_slot(key.encode("utf-8", "surrogateescape")))
