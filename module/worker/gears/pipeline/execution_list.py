"""The executions of this shard: those that run, and the last ones that are done, until they are dropped.

A run that a client waits for is listed while it runs; one sent UNBLOCKING, or started by a registration or a function,
is kept with its results. Loop's thread only.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from shardqa.module.worker.gears.histogram import RunHistogram
from shardqa.module.worker.gears.pipeline.plan import GIVEN, RunPlan
from shardqa.module.worker.gears.pipeline.run import Execution

if TYPE_CHECKING:
    from shardqa.module.worker.gears.cluster.execution_part import ExecutionPart
    from shardqa.module.worker.gears.cluster.nodes import Cluster
    from shardqa.module.worker.gears.pipeline.profiles import Profiles
    from shardqa.module.worker.gears.settings import WorkerSettings

NO_CLUSTER = "0" * 40  # where a shard's id would stand


class Run:
    """One execution as it is listed."""

    __slots__ = (
        *("id", "session", "execution", "plan", "kept", "registration", "status", "results", "errors", "part"),
        *("started", "milliseconds", "read_milliseconds", "_done"),
    )

    def __init__(
        self, id: str, session: str, execution: Execution, plan: RunPlan, kept: bool, registration: str
    ) -> None:
        self.id = id
        self.session = session  # id
        self.execution = execution
        self.plan = plan
        self.kept = kept  # with its results, once it is done
        self.registration = registration  # id, or empty
        self.status = "running"  # or done, aborted
        self.results: list[Any] = []
        self.errors: list[str] = []
        self.part: ExecutionPart | None = None
        self.started = time.monotonic()
        self.milliseconds = 0.0
        self.read_milliseconds = 0.0
        self._done: asyncio.Event | None = None

    def records(self) -> int:
        """Read on this shard so far."""
        if self.part is not None:
            return self.part.records
        return len(self.plan.argument) if self.plan.reader == GIVEN else 0

    def error_count(self) -> int:
        """So far, of this shard; the initiating one has those of all when it is done."""
        return len(self.errors) if self.is_done() else len(self.execution.errors) + self.execution.dropped_errors

    def elapsed(self) -> float:
        """Milliseconds."""
        return self.milliseconds if self.is_done() else (time.monotonic() - self.started) * 1000

    def is_done(self) -> bool:
        return self.status != "running"

    async def wait(self) -> None:
        if not self.is_done():
            self._done = self._done or asyncio.Event()
            await self._done.wait()

    def finish(self, status: str) -> None:
        self.status = status
        self.milliseconds = (time.monotonic() - self.started) * 1000
        if self._done is not None:
            self._done.set()


class Executions:
    def __init__(self, cluster: Cluster, settings: WorkerSettings, profiles: Profiles) -> None:
        self._cluster = cluster
        self._profiles = profiles
        self._settings = settings
        self._runs: dict[str, Run] = {}  # in the order they began
        self._of_registration: dict[str, deque[str]] = {}  # registration id -> ids of its kept executions
        self._numbers = itertools.count(1)
        self._taken: Callable[[str], bool] = lambda _: False
        self.ended: Counter[str] = Counter()  # how runs of scripts and functions ended: done, failed, aborted
        self.times = RunHistogram()  # of the same

    def all(self) -> list[Run]:
        return list(self._runs.values())

    def get(self, id: str) -> Run | None:
        return self._runs.get(id)

    def avoid(self, taken: Callable[[str], bool]) -> None:
        """`taken` says which ids something else has: an id names one thing."""
        self._taken = taken

    def new_id(self) -> str:
        while True:
            id = f"{self._cluster.node if self._cluster.enabled else NO_CLUSTER}-{next(self._numbers)}"
            if not self._taken(id):
                return id

    def begin(
        self, id: str, session: str, execution: Execution, plan: RunPlan, kept: bool, registration: str = ""
    ) -> Run:
        if self._settings.number("ProfileExecutions"):
            execution.profile = partial(self._profiles.measuring, session)
        run = self._runs[id] = Run(id, session, execution, plan, kept, registration)
        if not registration:
            execution.name = f"execution {id} of session {session}, by {execution.rights.user}".encode(
                "utf-8", "replace"
            )
        if registration:
            self._keep_within(self._of_registration.setdefault(registration, deque()), id)
        else:
            self._make_room()
        return run

    def finished(self, run: Run, results: list[Any], execution: Execution) -> None:
        """The run is over; `execution` has its errors."""
        run.results = results
        run.errors = list(execution.errors)
        if execution.dropped_errors:
            run.errors.append(f"ERR and {execution.dropped_errors} more errors")
        aborted = execution.cancelled
        if aborted and not run.errors:
            run.errors.append("ERR the execution was aborted")
        run.finish("aborted" if aborted else "done")
        if not run.registration:
            self.ended["aborted" if aborted else "failed" if run.errors else "done"] += 1
            self.times.add(run.milliseconds * 1000)
        if run.part is not None:
            run.read_milliseconds = run.part.read_milliseconds
        if not run.kept:
            self.drop(run)

    def drop(self, run: Run) -> None:
        self._runs.pop(run.id, None)

    def forget_registration(self, id: str) -> None:
        """Its executions stay, as RedisGears keeps them, but count among the others."""
        self._of_registration.pop(id, None)

    def _keep_within(self, ids: deque[str], id: str) -> None:
        ids.append(id)
        while len(ids) > self._settings.number("MaxExecutionsPerRegistration"):
            self._runs.pop(ids.popleft(), None)

    def _make_room(self) -> None:
        """Drops the oldest that are done."""
        of_scripts = [run for run in self._runs.values() if not run.registration]
        over = len(of_scripts) - self._settings.number("MaxExecutions")
        for run in [run for run in of_scripts if run.is_done()][: max(over, 0)]:
            self.drop(run)
