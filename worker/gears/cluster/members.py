"""The shards that take part in an execution, and which of them gets a record."""

from dataclasses import dataclass
from typing import Any

from redis.crc import key_slot

from shardqa.topology import SLOTS


@dataclass(frozen=True, slots=True)
class Member:
    """A shard that takes part in an execution."""

    id: str  # of its master
    slots: tuple[tuple[int, int], ...]


def owners(members: tuple[Member, ...]) -> list[int]:
    """Returns, for each slot, the index of its owner as the initiator saw it: so equal keys meet on one shard.

    Slots that nobody owned go round robin.
    """
    table = [slot % len(members) for slot in range(SLOTS)]
    for index, member in enumerate(members):
        for first, last in member.slots:
            table[first : last + 1] = [index] * (last - first + 1)
    return table


def slot_of(key: Any) -> int:
    data = key if isinstance(key, bytes) else str(key).encode("utf-8", "surrogatepass")
    return int(key_slot(data))
