"""RedisGears on one shard: all its parts, built once, by a worker."""

from collections.abc import Mapping

from shardqa.worker.ai.function_runs import FunctionRuns
from shardqa.worker.gears.cluster.coordination import Coordination
from shardqa.worker.gears.cluster.distribution import Distribution
from shardqa.worker.gears.cluster.executor import Executor
from shardqa.worker.gears.cluster.new_masters import NewMasters
from shardqa.worker.gears.cluster.peers import Neighbours, Peers
from shardqa.worker.gears.commands.cluster_commands import ClusterCommands
from shardqa.worker.gears.commands.execution_commands import ExecutionCommands
from shardqa.worker.gears.commands.pyexecute import PyExecute
from shardqa.worker.gears.commands.registration_commands import RegistrationCommands
from shardqa.worker.gears.commands.rg_commands import RgCommands
from shardqa.worker.gears.commands.session_commands import ProcessCommands, SessionCommands
from shardqa.worker.gears.commands.triggers import Triggers
from shardqa.worker.gears.pipeline.execution_list import Executions
from shardqa.worker.gears.pipeline.inner_commands import InnerCommands
from shardqa.worker.gears.pipeline.profiles import Profiles
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.registrations.prefix_watches import Watches
from shardqa.worker.gears.registrations.registrations import Registrations
from shardqa.worker.gears.registrations.registry import Registry
from shardqa.worker.gears.sessions.requirements import Requirements
from shardqa.worker.gears.sessions.script_functions import ScriptHost, namespace
from shardqa.worker.gears.sessions.session import Session, SessionHost
from shardqa.worker.gears.sessions.session_runtime import SessionRuntime
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.gears.settings import WorkerSettings
from shardqa.worker.gears.sources.registration_runs import RegistrationRuns
from shardqa.worker.gears.sources.streams import Streams
from shardqa.worker.gears.sources.timers import Timers
from shardqa.worker.io import Io
from shardqa.worker.nodes import Cluster
from shardqa.worker.statistics import WorkerStatistics


class Gears:
    def __init__(
        self,
        io: Io,
        cluster: Cluster,
        models: FunctionRuns,
        requirements: Requirements,
        statistics: WorkerStatistics,
        arguments: Mapping[str, str],
    ) -> None:
        """Builds all parts; `arguments` are the module's, with names in lower case."""
        settings, profiles, self.log = WorkerSettings(arguments), Profiles(), WorkerLog(io.link)
        neighbours = Neighbours(cluster, Peers(cluster))
        registrations = Registrations(io.threads.stall, settings)
        executions = Executions(cluster, settings, profiles)
        self.registry = Registry(registrations, executions, Watches(io.link, io.threads))
        self.inner = InnerCommands(io)

        def runtime_of(session: Session) -> SessionRuntime:
            return SessionRuntime(session, io.calls, cluster, models, statistics, self.log, io.threads.activity)

        self.host = ScriptHost(io.calls, io.threads, cluster, settings, self.log, runtime_of)
        sessions_host = SessionHost(self.log, self.inner, interpreter_of=requirements.interpreter_of)
        self.sessions = Sessions(
            io, self.registry, cluster, requirements, sessions_host, lambda session: namespace(self.host, session)
        )
        coordination = Coordination(io, neighbours, self.registry, self.log, self.sessions)
        self.executor = Executor(io.threads, executions, coordination)
        sessions_host.start_run = self.executor.from_function
        self.runs = RegistrationRuns(self.registry, self.sessions, cluster, self.log, self.executor.run_registered)
        self.streams = Streams(io, registrations, cluster, self.runs)
        timers = Timers(io, self.sessions, self.runs, cluster)
        registrations.listen(timers.begin, timers.end)
        self.distribution = Distribution(neighbours, self.sessions, self.streams, requirements)
        sessions_host.register = self.distribution.from_function
        self.new_masters = NewMasters(neighbours, self.sessions, self.distribution, self.log)
        triggers = Triggers(registrations, self.sessions, self.runs)
        self.commands = RgCommands(
            PyExecute(self.sessions, self.distribution, self.executor, requirements, self.log).table(),
            triggers.table(),
            RegistrationCommands(registrations, self.distribution).table(),
            ExecutionCommands(executions, neighbours).table(),
            SessionCommands(self.sessions, registrations, requirements, profiles, coordination.sessions).table(),
            ProcessCommands(settings, self.log).table(),
            ClusterCommands(neighbours, self.new_masters).table(),
        )
        self.inner.answer, self.inner.trigger = self.commands.run, triggers.run_within
