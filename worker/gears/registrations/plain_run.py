"""A registration's steps in the thread that calls, counted like the runs that the loop drives."""

from time import perf_counter
from typing import Any

from redis import ResponseError

from shardqa.worker.calls import Rights
from shardqa.worker.gears.pipeline.chain import Chain, compute_here
from shardqa.worker.gears.pipeline.run import NextHook, Run, current, enter
from shardqa.worker.gears.pipeline.steps import plain
from shardqa.worker.gears.pipeline.suspension import Suspended, Work
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.registrations.registrations import Registration, Registrations
from shardqa.worker.threads import Threads


def is_plain(registration: Registration) -> bool:
    """Returns whether PlainRun can run the registration's steps."""
    return plain(registration.steps)


class PlainRun:
    """A run of one record, whose registration has plain steps. The caller counts that it came."""

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
        """Returns the results, counted, or what must be awaited first. In a context of its own.

        Errors are the run's. Raises Cancelled.
        """
        self.started = perf_counter()
        enter(self.run)
        try:
            outcome = self.chain.advance(self.work, self.run.computing())
        except BaseException as error:
            self.registration.statistics.broken(self.run, error)
            raise
        finally:
            self._registrations.has_run(self.registration)
        if not isinstance(outcome, Suspended):
            self._count()
        return outcome

    def _count(self) -> None:
        error = self.run.errors[0] if self.run.errors else None
        self.registration.statistics.finished(self.started, error)
        if error is not None:
            self._log.error(error, self.run.name)


def run_within(
    threads: Threads,
    rights: Rights,
    registration: Registration,
    command: list[Any],
    record: list[Any],
    hook: NextHook | None = None,
) -> tuple[Run, list[Any]]:
    """Runs a registration inside the calling function; returns (run, results). Raises redis.ResponseError."""
    inner, before = Run(threads, rights), current()
    inner.name, inner.command, inner.hook = registration.title(), command, hook
    inner.request = 0 if before is None else before.request
    registration.enter(inner)
    start = perf_counter()
    enter(inner)
    try:
        results = compute_here(inner, registration.plan([record]).all_steps(), [record])
    finally:
        enter(before)
    error = inner.errors[0] if inner.errors else None
    threads.loop.call_soon_threadsafe(registration.statistics.done, start, error)
    if error is not None:
        raise ResponseError(error)
    return inner, results
