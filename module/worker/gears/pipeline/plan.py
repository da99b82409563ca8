"""What a run is asked to do: its reader, its steps, and over which shards. It travels to other shards as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redis.crc import key_slot

from shardqa.module.worker.gears.pipeline.steps import GearsStep, Kind, convert
from shardqa.topology import SLOTS

GIVEN = "given"  # a reader of records that are there already: the initiating shard's alone


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run a script asked for."""

    reader: str
    argument: Any
    steps: tuple[GearsStep, ...]
    convert: bool  # convertToStr
    local: bool  # this shard alone
    collect: bool
    options: Mapping[str, Any] = field(default_factory=dict)  # of the reader, by RedisGears' names

    def all_steps(self) -> tuple[GearsStep, ...]:
        """The steps with those that `convertToStr` and `collect` stand for."""
        added = (GearsStep(Kind.MAP, convert),) if self.convert else ()
        return self.steps + added + ((GearsStep(Kind.COLLECT),) if self.collect else ())


@dataclass(frozen=True, slots=True)
class Member:
    """A shard that takes part in an execution."""

    id: str  # of its master
    slots: tuple[tuple[int, int], ...]


def owners(members: tuple[Member, ...]) -> list[int]:
    """Index of the member that owns each slot, as the initiator saw it: equal on all shards, so that equal keys meet.

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
