"""Time events (registerTE) as they run.

Of all shards the one that owns its key runs it; one without a key goes by its session's id. The key is a plain one, and
whoever deletes it ends the function. Loop's thread only.
"""

import asyncio

from redis import ResponseError

from shardqa.worker.calls import first
from shardqa.worker.gears.pipeline.run import Run, describe, enter
from shardqa.worker.gears.registrations.registrations import TIMER, Registration
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.gears.sources.registration_runs import RegistrationRuns
from shardqa.worker.io import Io
from shardqa.worker.nodes import Cluster


class Timers:
    def __init__(self, io: Io, sessions: Sessions, runs: RegistrationRuns, cluster: Cluster) -> None:
        self._calls, self._threads = io.calls, io.threads
        self._sessions = sessions
        self._runs = runs
        self._cluster = cluster
        self._resting: dict[str, asyncio.Task[None]] = {}  # by registration id: what sleeps

    def begin(self, registration: Registration) -> None:
        if registration.reader == TIMER:
            self._resting[registration.id] = self._threads.task(self._beat(registration))

    def end(self, registration: Registration) -> None:
        resting = self._resting.pop(registration.id, None)
        if resting is not None:
            resting.cancel()

    async def _beat(self, registration: Registration) -> None:
        beating = self._resting[registration.id]
        while self._sessions.registration(registration.id) is registration:
            self._resting[registration.id] = beating
            await asyncio.sleep(registration.period)
            del self._resting[registration.id]
            if self._cluster.role != "master" or not self._cluster.owns(registration.prefix or registration.session):
                continue
            run = Run(self._threads, registration.rights)
            enter(run)
            try:
                if registration.prefix and not await self._has_key(registration):
                    self._sessions.unregister(registration.id)
                    return
                await self._runs.run(run, registration, [None])
            except BaseException as error:
                registration.statistics.last_error = describe(error)
                if isinstance(error, asyncio.CancelledError):
                    raise

    async def _has_key(self, registration: Registration) -> bool:
        """Returns whether the timer's key exists; one that can't be seen now (its slot moves) counts."""
        try:
            return bool(first(await self._calls.run_async(registration.rights, [("EXISTS", registration.prefix)])))
        except ResponseError:
            return True
