"""The executions of this shard: those that run, and the last ones that are done, until they are dropped.

A run that a client waits for is listed while it runs; one sent UNBLOCKING, or started by a registration or a function,
is kept with its results. Loop's thread only.
"""

import asyncio
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from shardqa.worker.gears.histogram import RunHistogram
from shardqa.worker.gears.pipeline.plan import GIVEN, GIVEN_TO_ALL, RunPlan
from shardqa.worker.gears.pipeline.profiles import Profiles
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.settings import WorkerSettings
from shardqa.worker.nodes import Cluster

NO_CLUSTER = "0" * 40  # where a shard's id would stand


class Execution:
    """An entry of RG.DUMPEXECUTIONS."""

    def __init__(self, id: str, session: str, run: Run, plan: RunPlan, keeps_results: bool, registration: str) -> None:
        self.id = id
        self.session = session  # id
        self.run = run
        self.plan = plan
        self.keeps_results = keeps_results  # with its results, once it is done
        self.registration = registration  # id, or empty
        self.waits = False  # in a queue of its registration
        self.aborted = False
        self.results: list[Any] = []
        self.errors: list[str] = []
        self.members = 1  # shards that take part
        self.records_read: int | None = None  # on this shard so far; None: its records were there
        self.started = time.monotonic()
        self.milliseconds = 0.0
        self.read_milliseconds = 0.0
        self._is_done = False
        self._done: asyncio.Event | None = None

    @property
    def status(self) -> str:
        """Returns the status; an execution aborted while it ran is `done`, as in RedisGears."""
        if self._is_done:
            return "aborted" if self.waits else "done"
        has_begun = not self.registration or self.run.records or self.records_read is not None
        return "running" if has_begun else "created"

    def records(self) -> int:
        """Returns how many records were read on this shard so far."""
        if self.records_read is not None:
            return self.records_read
        return len(self.plan.argument) if self.plan.reader in (GIVEN, GIVEN_TO_ALL) else 0

    def error_count(self) -> int:
        """Returns how many errors this shard has so far; the initiator has those of all at the end."""
        return len(self.errors) if self.is_done() else len(self.run.errors) + self.run.dropped_errors

    def elapsed(self) -> float:
        """Returns the milliseconds since the start."""
        return self.milliseconds if self.is_done() else (time.monotonic() - self.started) * 1000

    def begin(self, plan: RunPlan) -> None:
        self.plan = plan
        self.waits = False
        self.started = time.monotonic()

    def is_done(self) -> bool:
        return self._is_done

    async def wait(self) -> None:
        if not self.is_done():
            self._done = self._done or asyncio.Event()
            await self._done.wait()

    def finish(self) -> None:
        self._is_done = True
        self.milliseconds = (time.monotonic() - self.started) * 1000
        if self._done is not None:
            self._done.set()


class Executions:
    def __init__(self, cluster: Cluster, settings: WorkerSettings, profiles: Profiles) -> None:
        self._cluster = cluster
        self._profiles = profiles
        self._settings = settings
        self._by_id: dict[str, Execution] = {}  # in the order they began
        self._of_registration: dict[str, deque[str]] = {}  # registration id -> ids of its kept executions
        self._numbers = itertools.count(1)
        self.is_used: Callable[[str], bool] = lambda _: False  # by something else: an id names one thing
        self.list_waiting: Callable[[], None] = lambda: None  # calls `wait` for what is to be listed
        self.endings: Counter[str] = Counter()  # how runs of scripts and functions ended: done, failed, aborted
        self.times = RunHistogram()  # of the same

    def all(self) -> list[Execution]:
        return list(self._by_id.values())

    def get(self, id: str) -> Execution | None:
        return self._by_id.get(id)

    def new_id(self) -> str:
        while True:
            id = f"{self._cluster.node if self._cluster.enabled else NO_CLUSTER}-{next(self._numbers)}"
            if not self.is_used(id):
                return id

    def begin(
        self,
        session: str,
        run: Run,
        plan: RunPlan,
        *,
        keeps_results: bool,
        registration: str = "",
        id: str | None = None,
    ) -> Execution:
        """Lists an execution of this session; `id` is given where it is a part of another shard's execution.

        One that was listed before it began stays the same: clients may wait for its end.
        """
        id = id or run.waited_as or self.new_id()
        self.profile(session, run)
        waited = self._by_id.get(id) if id == run.waited_as else None
        execution = self._by_id[id] = waited or Execution(id, session, run, plan, keeps_results, registration)
        execution.begin(plan)
        if not registration:
            run.name = f"execution {id} of session {session}, by {run.rights.user}".encode("utf-8", "replace")
            idle = self._settings.number("ExecutionMaxIdleTime") / 1000
            run.seconds, run.each = max(run.threads.stall, idle), True
        if registration and keeps_results:
            self._keep_within(self._of_registration.setdefault(registration, deque()), id)
        self._make_room()
        return execution

    def wait(self, session: str, run: Run, plan: RunPlan, registration: str) -> Execution:
        """Lists an execution that has not begun, with its run."""
        id = run.waited_as = self.new_id()
        execution = self._by_id[id] = Execution(id, session, run, plan, keeps_results=True, registration=registration)
        execution.waits = True
        return execution

    def abort(self, execution: Execution) -> None:
        execution.run.cancel()
        if execution.waits:
            self.finished(execution, [])

    def profile(self, session: str, run: Run) -> None:
        """Profiles the run for its session, where the setting is on."""
        if self._settings.number("ProfileExecutions"):
            run.profile = partial(self._profiles.measuring, session)

    def finished(self, execution: Execution, results: list[Any]) -> None:
        """Notes that the run of `execution` is over."""
        run = execution.run
        execution.results = results
        execution.errors = list(run.errors)
        if run.dropped_errors:
            execution.errors.append(f"ERR and {run.dropped_errors} more errors")
        is_aborted = execution.aborted = run.cancelled
        if is_aborted and not execution.errors:
            execution.errors.append("ERR the execution was aborted")
        execution.finish()
        if not execution.registration:
            self.endings["aborted" if is_aborted else "failed" if execution.errors else "done"] += 1
            self.times.add(execution.milliseconds * 1000)
        if not execution.keeps_results:
            self.drop(execution)

    def drop(self, execution: Execution) -> None:
        self._by_id.pop(execution.id, None)

    def forget(self, registration: str) -> None:
        """Drops a registration's executions, as RedisGears does; a running one goes when it has ended."""
        self._of_registration.pop(registration, None)
        for execution in self.all():
            if execution.registration == registration:
                execution.keeps_results = False
                if execution.is_done():
                    self.drop(execution)

    def _keep_within(self, ids: deque[str], id: str) -> None:
        ids.append(id)
        while len(ids) > self._settings.number("MaxExecutionsPerRegistration"):
            self._by_id.pop(ids.popleft(), None)

    def _make_room(self) -> None:
        """Drops the oldest executions that are done."""
        over = len(self._by_id) - self._settings.number("MaxExecutions")
        if over > 0:
            for execution in list(itertools.islice(filter(Execution.is_done, self._by_id.values()), over)):
                self.drop(execution)
