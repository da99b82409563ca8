"""Runs from their start to their end: of scripts, of functions, and of registrations whose records cross shards."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shardqa.module.worker.gears.cluster.coordination import Coordination
from shardqa.module.worker.gears.cluster.pickling import CannotTravel
from shardqa.module.worker.gears.pipeline.execution_list import Run
from shardqa.module.worker.gears.pipeline.plan import RunPlan
from shardqa.module.worker.gears.pipeline.run import Execution, current, enter

if TYPE_CHECKING:
    from shardqa.module.worker.gears.registry.sessions import Session
    from shardqa.module.worker.shard import Shard


class Runs:
    """Loop's thread, but for `from_function`."""

    def __init__(self, shard: Shard, coordination: Coordination) -> None:
        self._shard = shard
        self._coordination = coordination

    async def run(self, session: Session, execution: Execution, plan: RunPlan) -> tuple[list[Any], list[str]]:
        """(results, errors), in the caller's task. Raises CannotTravel."""
        run = self._begin(session, execution, plan, kept=False)
        await self._drive(session, run, execution, plan)
        return run.results, run.errors

    def start(self, session: Session, request: Execution, execution: Execution, plan: RunPlan) -> Run:
        """UNBLOCKING: goes on by itself, with the rights of the script's request, and is kept with its results."""
        run = self._begin(session, execution, plan, kept=True)
        request.hold()
        execution.task = self._shard.threads.task(self._alone(session, run, execution, plan))
        execution.task.add_done_callback(lambda _: request.release())
        return run

    async def given(
        self, session: Session, execution: Execution, plan: RunPlan, registration: str
    ) -> tuple[list[Any], list[str]]:
        """A registration's run over records that are there."""
        executions = self._shard.executions
        run = executions.begin(executions.new_id(), session.id, execution, plan, True, registration)
        await self._drive(session, run, execution, plan)
        return run.results, run.errors

    def from_function(self, session: Session, plan: RunPlan) -> Running:
        """`run()` inside a function: starts at once; any thread."""
        around = current()
        execution = Execution(self._shard.threads, session.rights_now())
        done: Future[list[Any]] = Future()

        async def go() -> None:
            if around is not None:
                around.hold()
            execution.task = asyncio.current_task()
            enter(execution)
            try:
                done.set_result(list(await self.run(session, execution, plan)))
            except BaseException as error:  # noqa: BLE001 - handed to whoever awaits the run
                done.set_exception(RuntimeError("the run was aborted") if _is_cancel(error) else error)
            finally:
                if around is not None:
                    around.release()

        self._shard.threads.spawn(go())
        return Running(done)

    def _begin(self, session: Session, execution: Execution, plan: RunPlan, kept: bool) -> Run:
        executions = self._shard.executions
        return executions.begin(executions.new_id(), session.id, execution, plan, kept)

    async def _alone(self, session: Session, run: Run, execution: Execution, plan: RunPlan) -> None:
        enter(execution)
        with suppress(CannotTravel, asyncio.CancelledError):  # the run's errors tell
            await self._drive(session, run, execution, plan)

    async def _drive(self, session: Session, run: Run, execution: Execution, plan: RunPlan) -> None:
        results: list[Any] = []
        try:
            results = await self._coordination.run(session, run, execution, plan)
        except CannotTravel as error:
            execution.failed(error)
            raise
        except asyncio.CancelledError:
            execution.cancelled = True
            raise
        except BaseException as error:  # noqa: BLE001 - of a reader: an error of the run
            execution.failed(error)
        finally:
            self._shard.executions.finished(run, results, execution)


class Running:
    """What `run()` gives inside a function: awaited, it is [results, errors]."""

    def __init__(self, done: Future[list[Any]]) -> None:
        self._done = done

    def __await__(self) -> Generator[Any, None, list[Any]]:
        return asyncio.wrap_future(self._done).__await__()


def _is_cancel(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError)
