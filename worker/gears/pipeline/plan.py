"""The plan of a run: its reader, its steps, and whether over all shards. It travels to other shards as it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shardqa.worker.gears.pipeline.steps import GearsStep, Kind, convert

GIVEN = "given"  # a reader of records that are there already: the initiating shard's alone
GIVEN_TO_ALL = "CommandReader"  # the same, on every shard
CONVERT, COLLECT = GearsStep(Kind.MAP, convert), GearsStep(Kind.COLLECT)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run that a script asked for."""

    reader: str
    argument: Any
    steps: tuple[GearsStep, ...]
    convert: bool  # convertToStr
    local: bool  # this shard alone
    collect: bool
    options: Mapping[str, Any] = field(default_factory=dict)  # of the reader, by RedisGears' names

    def all_steps(self) -> tuple[GearsStep, ...]:
        """Returns the steps, with those that `convertToStr` and `collect` stand for."""
        steps = (CONVERT,) if self.convert else ()
        return self.steps + steps + ((COLLECT,) if self.collect else ())
