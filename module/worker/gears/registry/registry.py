"""The functions of this shard: what is registered, what runs, and what is watched."""

from __future__ import annotations

from dataclasses import dataclass

from shardqa.module.worker.gears.pipeline.execution_list import Executions
from shardqa.module.worker.gears.registry.prefix_watches import Watches
from shardqa.module.worker.gears.registry.registrations import Registrations


@dataclass(frozen=True, slots=True)
class Registry:
    registrations: Registrations
    executions: Executions
    watches: Watches
