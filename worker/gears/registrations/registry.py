"""The functions of this shard: what is registered, what runs, and what is watched."""

from dataclasses import dataclass

from shardqa.worker.gears.pipeline.execution_list import Executions
from shardqa.worker.gears.registrations.prefix_watches import Watches
from shardqa.worker.gears.registrations.registrations import Registrations


@dataclass(frozen=True, slots=True)
class Registry:
    registrations: Registrations
    executions: Executions
    watches: Watches
