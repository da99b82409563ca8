"""RedisGears on one shard: all its parts, built once, by a worker or by the local runner."""

from __future__ import annotations

from collections.abc import Mapping

from shardqa.module.worker.ai.models import Models
from shardqa.module.worker.gears.cluster.coordination import Coordination
from shardqa.module.worker.gears.cluster.distribution import Distribution
from shardqa.module.worker.gears.cluster.executor import Executor
from shardqa.module.worker.gears.cluster.new_masters import NewMasters
from shardqa.module.worker.gears.cluster.peers import Neighbours, Peers
from shardqa.module.worker.gears.commands.cluster_commands import ClusterCommands
from shardqa.module.worker.gears.commands.execution_commands import ExecutionCommands
from shardqa.module.worker.gears.commands.pyexecute import PyExecute
from shardqa.module.worker.gears.commands.registration_commands import RegistrationCommands
from shardqa.module.worker.gears.commands.rg_commands import RgCommands
from shardqa.module.worker.gears.commands.session_commands import ProcessCommands, SessionCommands
from shardqa.module.worker.gears.commands.triggers import Triggers
from shardqa.module.worker.gears.pipeline.execution_list import Executions
from shardqa.module.worker.gears.pipeline.inner_commands import InnerCommands
from shardqa.module.worker.gears.pipeline.profiles import Profiles
from shardqa.module.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.module.worker.gears.registry.prefix_watches import Watches
from shardqa.module.worker.gears.registry.registration_runs import RegistrationRuns
from shardqa.module.worker.gears.registry.registrations import Registrations
from shardqa.module.worker.gears.registry.registry import Registry
from shardqa.module.worker.gears.registry.requirements import Requirements
from shardqa.module.worker.gears.registry.script_functions import ScriptHost, namespace
from shardqa.module.worker.gears.registry.session import Session, SessionHost
from shardqa.module.worker.gears.registry.session_runtime import SessionRuntime
from shardqa.module.worker.gears.registry.sessions import Sessions
from shardqa.module.worker.gears.registry.streams import Streams
from shardqa.module.worker.gears.registry.timers import Timers
from shardqa.module.worker.gears.settings import WorkerSettings
from shardqa.module.worker.io import Io
from shardqa.module.worker.nodes import Cluster
from shardqa.module.worker.statistics import WorkerStatistics


class Gears:
    def __init__(
        self,
        io: Io,
        cluster: Cluster,
        models: Models,
        requirements: Requirements,
        statistics: WorkerStatistics,
        arguments: Mapping[str, str],
    ) -> None:
        """`arguments` are the module's, with names in lower case."""
        settings, profiles, self.log = WorkerSettings(arguments), Profiles(), WorkerLog(io.link)
        neighbours = Neighbours(cluster, Peers(cluster))
        registrations = Registrations(io.threads.stall, settings)
        executions = Executions(cluster, settings, profiles)
        self.registry = Registry(registrations, executions, Watches(io.link, io.threads))
        self.inner = InnerCommands(io)

        def runtime_of(session: Session) -> SessionRuntime:
            return SessionRuntime(session, io.calls, cluster, models, statistics, self.log)

        self.host = ScriptHost(io.calls, io.threads, cluster, settings, self.log, runtime_of)
        sessions_host = SessionHost(self.log, self.inner)
        self.sessions = Sessions(
            io, self.registry, cluster, requirements, sessions_host, lambda session: namespace(self.host, session)
        )
        coordination = Coordination(io, neighbours, executions, self.log, self.sessions.visiting)
        self.executor = Executor(io.threads, executions, coordination)
        sessions_host.start_run = self.executor.from_function
        self.runs = RegistrationRuns(self.registry, self.sessions, cluster, self.log, self.executor.run_registered)
        self.streams = Streams(io, registrations, cluster, self.runs)
        timers = Timers(io, self.sessions, self.runs, cluster)
        registrations.listen(timers.begin, timers.end)
        self.distribution = Distribution(neighbours, self.sessions, self.streams, requirements)
        self.new_masters = NewMasters(neighbours, self.sessions, self.distribution, self.log)
        self.commands = RgCommands(
            PyExecute(self.sessions, self.distribution, self.executor, requirements, self.log).table(),
            Triggers(registrations, self.sessions, self.runs).table(),
            RegistrationCommands(registrations, self.streams, self.distribution, executions).table(),
            ExecutionCommands(executions, neighbours).table(),
            SessionCommands(self.sessions, registrations, profiles).table(),
            ProcessCommands(settings, self.log, requirements).table(),
            ClusterCommands(neighbours, self.new_masters).table(),
        )
        self.inner.answer = self.commands.run
