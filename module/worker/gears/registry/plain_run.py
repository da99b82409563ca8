"""A registration's plain steps in the thread that calls, counted like the runs that the loop drives."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from shardqa.module.worker.gears.pipeline.run import Run, enter
from shardqa.module.worker.gears.pipeline.steps import Chain, Suspended, plain

if TYPE_CHECKING:
    from shardqa.module.worker.gears.commands.rg_commands import Commands
    from shardqa.module.worker.gears.registry.registrations import Registration
    from shardqa.module.worker.shard import Shard


def runs_here(registration: Registration) -> bool:
    """Whether RunHere can run its steps."""
    return plain(registration.steps)


class RunHere:
    """One record of a registration whose steps are plain."""

    __slots__ = ("_chain", "_shard", "_started", "plan", "registration", "run")

    def __init__(self, shard: Shard, registration: Registration, run: Run, record: Any) -> None:
        run.name, run.seconds = registration.title(), shard.seconds_of(registration)
        run.turns = shard.registrations.turns_of(registration)
        self._shard = shard
        self.registration = registration
        self.run = run
        self.plan = registration.plan([record])
        self._chain = Chain(run, self.plan.all_steps())
        self._started = 0.0

    def begin(self) -> list[Any] | Suspended:
        """What the record became, counted; or what is to be awaited first. In a context of its own; raises Cancelled.

        Errors are the run's.
        """
        self._started = perf_counter()
        enter(self.run)
        try:
            with self.run.running(self._shard.threads.activity):
                met = self._chain.begin_here(list(self.plan.argument))
        except BaseException as error:
            self.registration.statistics.trigger()
            self.registration.statistics.broken(self.run, error)
            raise
        finally:
            self._shard.registrations.has_run(self.registration)
        if not isinstance(met, Suspended):
            self._count()
        return met

    async def rest(self, commands: Commands, met: Suspended, in_queue: bool = False) -> list[Any] | None:
        """In the loop: goes on; None when a step failed. `in_queue`: as of `run_registration`."""

        async def ended() -> tuple[list[Any], list[str]]:
            return await self._chain.go_on(met), self.run.errors

        return await commands.counted(self.run, self.registration, ended(), self._started, in_queue)

    def _count(self) -> None:
        error = self.run.errors[0] if self.run.errors else None
        self.registration.statistics.done(self._started, error)
        if error is not None:
            self._shard.ring.add(error, "error", self.run.name.decode("utf-8", "replace"))
