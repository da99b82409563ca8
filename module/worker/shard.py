"""The parts of a worker that functions reach, in one place. Built once by __main__; nothing here is replaced later."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shardqa.module.worker.ai.models import Models
from shardqa.module.worker.calls import Calls, Command, Rights, first
from shardqa.module.worker.frames import Type
from shardqa.module.worker.gears.cluster.nodes import Cluster
from shardqa.module.worker.gears.cluster.peers import Peers
from shardqa.module.worker.gears.commands.inner_commands import InnerCommands, is_inner
from shardqa.module.worker.gears.pipeline.execution_list import Executions
from shardqa.module.worker.gears.pipeline.log_ring import LogRing
from shardqa.module.worker.gears.pipeline.profiles import Profiles
from shardqa.module.worker.gears.registry.prefix_watches import Watches
from shardqa.module.worker.gears.registry.registrations import Registration, Registrations
from shardqa.module.worker.gears.registry.requirements import Requirements
from shardqa.module.worker.gears.settings import WorkerSettings
from shardqa.module.worker.link import Link
from shardqa.module.worker.statistics import WorkerStatistics
from shardqa.module.worker.threads import Threads

LEVELS = ("debug", "verbose", "notice", "warning")


@dataclass(frozen=True, slots=True)
class Shard:
    link: Link
    calls: Calls
    threads: Threads
    cluster: Cluster
    peers: Peers
    executions: Executions
    profiles: Profiles
    settings: WorkerSettings
    requirements: Requirements
    models: Models
    registrations: Registrations
    watches: Watches
    statistics: WorkerStatistics
    ring: LogRing
    config: Mapping[str, str]  # module arguments, names in lower case
    inner: InnerCommands = field(default_factory=InnerCommands)

    @classmethod
    def of(
        cls,
        link: Link,
        calls: Calls,
        threads: Threads,
        cluster: Cluster,
        models: Models,
        requirements: Requirements,
        statistics: WorkerStatistics,
        config: Mapping[str, str],
    ) -> "Shard":
        """With parts of its own beside those that a worker and a local runner have of different kinds."""
        settings, profiles = WorkerSettings(config), Profiles()
        return cls(
            link=link,
            calls=calls,
            threads=threads,
            cluster=cluster,
            peers=Peers(cluster),
            executions=Executions(cluster, settings, profiles),
            profiles=profiles,
            settings=settings,
            requirements=requirements,
            models=models,
            registrations=Registrations(),
            watches=Watches(link, threads),
            statistics=statistics,
            ring=LogRing(),
            config=config,
        )

    def seconds_of(self, registration: Registration) -> float:
        """That a run of the registration may take in one thread."""
        if registration.reader == "CommandReader":
            return self.threads.stall  # its client waits no longer
        idle = self.settings.number("ExecutionMaxIdleTime") / 1000
        return self.registrations.seconds_of(registration, max(self.threads.stall, idle))

    def execute(self, rights: Rights, command: Command) -> Any:
        """One command, from any thread but the reading one. Raises redis.ResponseError."""
        if is_inner(command):
            return self.inner.execute(self, rights, command)
        return first(self.calls.run(rights, [command]))

    def log(self, text: str, level: str = "notice") -> None:
        if level not in LEVELS:
            raise ValueError(f"log level {level!r} does not exist; choose one of {', '.join(LEVELS)}")
        self.ring.add(text, level)
        self.link.send_list(Type.LOG, 0, [level, text[:4000]])
