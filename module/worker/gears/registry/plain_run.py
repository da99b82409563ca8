"""A registration's plain steps in the thread that calls, counted like the runs that the loop drives."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from shardqa.module.worker.gears.pipeline.chain import Chain
from shardqa.module.worker.gears.pipeline.run import Run, enter
from shardqa.module.worker.gears.pipeline.steps import plain
from shardqa.module.worker.gears.pipeline.suspension import Suspended, Work
from shardqa.module.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.module.worker.gears.registry.registrations import Registration, Registrations


def is_plain(registration: Registration) -> bool:
    """Whether PlainRun can run its steps."""
    return plain(registration.steps)


class PlainRun:
    """One record of a registration whose steps are plain."""

    __slots__ = ("_log", "_registrations", "chain", "plan", "registration", "run", "started", "work")

    def __init__(
        self, registrations: Registrations, log: WorkerLog, registration: Registration, run: Run, record: Any
    ) -> None:
        registrations.prepare(registration, run)
        self._registrations = registrations
        self._log = log
        self.registration = registration
        self.run = run
        self.plan = registration.plan([record])
        self.chain = Chain(run, self.plan.all_steps())
        self.work = Work.of([record], 0, len(self.chain.operations))
        self.started = 0.0

    def begin(self) -> list[Any] | Suspended:
        """Returns what the record became, counted; or what is to be awaited first. In a context of its own.

        Errors are the run's. Raises Cancelled.
        """
        self.started = perf_counter()
        enter(self.run)
        try:
            outcome = self.chain.advance(self.work, self.run.computing())
        except BaseException as error:
            self.registration.statistics.trigger()
            self.registration.statistics.broken(self.run, error)
            raise
        finally:
            self._registrations.has_run(self.registration)
        if not isinstance(outcome, Suspended):
            self._count()
        return outcome

    def _count(self) -> None:
        error = self.run.errors[0] if self.run.errors else None
        self.registration.statistics.done(self.started, error)
        if error is not None:
            self._log.error(error, self.run.name)
