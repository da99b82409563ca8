"""Runs of registrations, counted: what is triggered, and how it ended. Loop's thread only."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import perf_counter
from typing import Any

from shardqa.worker.gears.pipeline.chain import Chain
from shardqa.worker.gears.pipeline.execution_list import Execution
from shardqa.worker.gears.pipeline.plan import RunPlan
from shardqa.worker.gears.pipeline.run import FlatError, Run
from shardqa.worker.gears.pipeline.suspension import Suspended
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.registrations.plain_run import PlainRun, is_plain
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.registrations.registry import Registry
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.nodes import Cluster

RunAcross = Callable[[Session, Run, RunPlan, str], Awaitable[tuple[list[Any], list[str]]]]
"""(session, run, plan, registration id) -> results and errors of all shards"""


class RegistrationRuns:
    def __init__(
        self, registry: Registry, sessions: Sessions, cluster: Cluster, log: WorkerLog, run_across: RunAcross
    ) -> None:
        self._registrations = registry.registrations
        self._executions = registry.executions
        self._sessions = sessions
        self._cluster = cluster
        self._log = log
        self._run_across = run_across
        self._turns: dict[str, asyncio.Lock] = {}  # by id of registrations that are inorder
        self._running: Counter[str] = Counter()  # by registration id: what runs or waits for its turn
        self._registrations.listen(lambda _: None, self._forget)
        self._registrations.count_queue(lambda registration: self._running[registration.id])

    async def run(
        self, run: Run, registration: Registration, records: list[Any], *, listed: bool = False, in_queue: bool = False
    ) -> list[Any] | None:
        """Runs a registration over records; returns the results, None when a step failed (the run has the error).

        `listed`: RG.DUMPEXECUTIONS lists it, as nobody waits for its results. `in_queue`: the caller counts it: that it
        came, and while it is there.
        """
        if not in_queue:
            registration.statistics.trigger()
        with self._counted(run, registration, perf_counter(), in_queue) as errors:
            plan, session = registration.plan(records), self._sessions.get(registration.session)
            if session is not None and not plan.local and self._cluster.enabled:
                results, failures = await self._run_across(session, run, plan, registration.id)
                errors += failures
                return None if errors else results
            results = []
            execution: Execution | None = None
            self._executions.profile(registration.session, run)
            chain = Chain(run, plan.all_steps())
            if listed:
                execution = self._executions.begin(
                    registration.session,
                    run,
                    plan,
                    keeps_results=self._registrations.has(registration),
                    registration=registration.id,
                )
            try:
                results = await chain.feed(plan.argument) + await chain.end()
            finally:
                if execution is not None:
                    self._executions.finished(execution, results)
            errors += run.errors if execution is None else execution.errors
        return None if errors else results

    def is_plain(self, registration: Registration) -> bool:
        """Returns whether the registration's runs need neither the loop nor other shards."""
        return is_plain(registration) and (registration.plan([]).local or not self._cluster.enabled)

    def plain_run(self, registration: Registration, run: Run, record: Any) -> PlainRun:
        self._executions.profile(registration.session, run)
        return PlainRun(self._registrations, self._log, registration, run, record)

    async def finish(self, plain: PlainRun, suspension: Suspended, in_queue: bool = False) -> list[Any] | None:
        """Finishes a plain run that has to await something; returns its results, None when a step failed."""
        with self._counted(plain.run, plain.registration, plain.started, in_queue) as errors:
            results = await plain.chain.resume(suspension)
            errors += plain.run.errors
        return None if errors else results

    @asynccontextmanager
    async def turn(self, registration: Registration) -> AsyncIterator[None]:
        """Counts a run of a registration that is `inorder`, and waits for the runs before it."""
        registration.statistics.trigger()
        self._running[registration.id] += 1
        try:
            async with self._turns.setdefault(registration.id, asyncio.Lock()):
                if registration.is_dropped:
                    registration.statistics.abort()
                    raise FlatError("ERR the execution was aborted: its registration went before its turn")
                yield
        finally:
            self._running[registration.id] -= 1

    @contextmanager
    def _counted(self, run: Run, registration: Registration, start: float, in_queue: bool) -> Iterator[list[str]]:
        """Yields the list of the run's errors, to be filled in."""
        statistics, errors = registration.statistics, list[str]()
        self._registrations.prepare(registration, run)
        self._running[registration.id] += not in_queue
        try:
            yield errors
        except BaseException as error:
            statistics.broken(run, error)
            raise
        finally:
            self._running[registration.id] -= not in_queue
            self._registrations.has_run(registration)
        statistics.finished(start, errors[0] if errors else None)
        if errors:
            self._log.error(errors[0], run.name)

    def _forget(self, registration: Registration) -> None:
        self._turns.pop(registration.id, None)
        self._executions.forget(registration.id)
        self._running = +self._running  # without those at 0
