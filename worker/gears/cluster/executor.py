"""Executions from start to end: of scripts, of functions, and of registrations whose records cross shards."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from shardqa.worker.gears.cluster.coordination import Coordination
from shardqa.worker.gears.pipeline.execution_list import Execution, Executions
from shardqa.worker.gears.pipeline.plan import RunPlan
from shardqa.worker.gears.pipeline.run import Run, current, enter
from shardqa.worker.gears.sessions.pickling import CannotTravel
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.threads import Threads


class Executor:
    """Starts executions. Loop's thread, but for `from_function`."""

    def __init__(self, threads: Threads, executions: Executions, coordination: Coordination) -> None:
        self._threads = threads
        self._executions = executions
        self._coordination = coordination

    async def run(self, session: Session, run: Run, plan: RunPlan) -> tuple[list[Any], list[str]]:
        """Runs a plan in the caller's task; returns (results, errors). Raises CannotTravel."""
        execution = self._executions.begin(session.id, run, plan, keeps_results=False)
        await self._drive(session, execution)
        return execution.results, execution.errors

    def start(self, session: Session, request: Run, run: Run, plan: RunPlan) -> Execution:
        """Starts a plan that nobody waits for (UNBLOCKING), with the request's rights; its results are kept."""
        execution = self._executions.begin(session.id, run, plan, keeps_results=True)
        request.hold()
        run.task = self._threads.task(self._alone(session, execution))
        run.task.add_done_callback(lambda _: request.release())
        return execution

    async def run_registered(
        self, session: Session, run: Run, plan: RunPlan, registration: str
    ) -> tuple[list[Any], list[str]]:
        """Runs a registration over the plan's records; returns (results, errors)."""
        execution = self._executions.begin(session.id, run, plan, keeps_results=True, registration=registration)
        await self._drive(session, execution)
        return execution.results, execution.errors

    def from_function(self, session: Session, plan: RunPlan) -> AwaitableRun:
        """Starts a plan at once, for `run()` inside a function. Any thread."""
        around = current()
        run = Run(self._threads, session.rights_now())
        future: Future[list[Any]] = Future()

        async def go() -> None:
            if around is not None:
                around.hold()
            run.task = asyncio.current_task()
            enter(run)
            try:
                future.set_result(list(await self.run(session, run, plan)))
            except asyncio.CancelledError:
                future.set_exception(RuntimeError("the run was aborted"))
            except BaseException as error:  # noqa: BLE001 - handed to whoever awaits the run
                future.set_exception(error)
            finally:
                if around is not None:
                    around.release()

        self._threads.spawn(go())
        return AwaitableRun(future)

    async def _alone(self, session: Session, execution: Execution) -> None:
        enter(execution.run)
        with suppress(CannotTravel, asyncio.CancelledError):  # the run's errors tell
            await self._drive(session, execution)

    async def _drive(self, session: Session, execution: Execution) -> None:
        run, results = execution.run, list[Any]()
        try:
            results = await self._coordination.run(session, execution)
        except CannotTravel as error:
            run.failed(error)
            raise
        except asyncio.CancelledError:
            run.cancelled = True
            raise
        except BaseException as error:  # noqa: BLE001 - of a reader: an error of the run
            run.failed(error)
        finally:
            self._executions.finished(execution, results)


class AwaitableRun:
    """The value of `run()` inside a function; to await it gives [results, errors]."""

    def __init__(self, future: Future[list[Any]]) -> None:
        self._done = future

    def __await__(self) -> Generator[Any, None, list[Any]]:
        return asyncio.wrap_future(self._done).__await__()

    def result(self) -> list[Any]:
        """Waits for the value, in a thread that may."""
        return self._done.result()
