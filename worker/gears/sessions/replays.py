"""Stored sessions that are run again: in order after a start or on a replica, with the registration ids they had."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from shardqa.worker import resp
from shardqa.worker.calls import Rights
from shardqa.worker.frames import Type
from shardqa.worker.gears.pipeline.run import Run, describe, enter
from shardqa.worker.gears.registrations.stored_registrations import StoredIds, StoredRegistration
from shardqa.worker.gears.sessions.pickling import split, unpack_session
from shardqa.worker.gears.sessions.requirements import Requirements, unmarked
from shardqa.worker.gears.sessions.script_run import run_on_registered, run_script
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.io import Io
from shardqa.worker.nodes import Cluster

if TYPE_CHECKING:
    from shardqa.worker.gears.sessions.sessions import Sessions

T = TypeVar("T")
REPLAY_STALLS = 3  # times the time a function may run: what a stored session may take
AFTER_THE_MODULE = 5.0
"""Seconds past a replay's deadline. The module ends what can't be interrupted 1 s past it, and blames the session only
while nothing was answered: answered sooner, a script that hangs cost a worker each time, for ever."""


class Replays:
    """The stored sessions that are run again. Loop's thread only."""

    def __init__(self, io: Io, cluster: Cluster, requirements: Requirements, sessions: Sessions) -> None:
        self.failed: dict[str, str] = {}  # registration id -> why its session's replay failed
        self._io = io
        self._cluster = cluster
        self._requirements = requirements
        self._sessions = sessions
        self._replaying = asyncio.Lock()  # FIFO: sessions are replayed in the order they came
        self._under_way = 0  # begun and not done
        self._changed: list[Session] = []  # replayed with other registrations than stored

    def replay(
        self, request: int, id: str, user: str, stored: str, registrations: Sequence[StoredRegistration]
    ) -> None:
        """Runs a stored session again; a failure is the answer to `request` (0: no request)."""
        self._under_way += 1  # at once: what follows on the socket finds that it has to wait
        self._io.threads.task(self._replay_answered(request, id, user, stored, registrations))

    async def _replay_answered(
        self, request: int, id: str, user: str, stored: str, registrations: Sequence[StoredRegistration]
    ) -> None:
        try:
            async with self._replaying:
                failure = await self._replay(request, id, user, stored, registrations)
        finally:
            self._under_way -= 1
        if request:
            self._io.link.send(Type.REPLY, request, resp.OK if failure is None else resp.error(failure))

    async def _replay(
        self, request: int, id: str, user: str, stored: str, registrations: Sequence[StoredRegistration]
    ) -> str | None:
        """Runs a stored session again; returns why it failed, None where it did not."""
        self._sessions.forget(id, tell=False, drop=True)
        ids = [one.id for one in registrations]
        if ids and not any(ids):
            return None
        stored_ids = StoredIds(registrations, partial(self._new_id_besides, ids))
        rights = Rights.of_session(id, user)
        requirements, text = unmarked(stored)
        functions, script = split(text)
        session = self._sessions.make(id, rights, script, stored_ids.next)
        run = Run(self._io.threads, rights)
        run.name, run.request = f"session {id}, replayed".encode("utf-8", "replace"), request
        run.seconds = REPLAY_STALLS * self._io.threads.stall
        enter(run)
        try:
            await self._requirements.ensure(requirements)
            if functions is None:
                session.require(requirements)
            async with asyncio.timeout(run.seconds + AFTER_THE_MODULE):
                if functions is None:
                    await run_script(session, run)
                    await run_on_registered(session, run)
                else:
                    session.stored, session.requirements = stored, requirements
                    await self._replay_travelled(session, run, functions, ids)
        except BaseException as error:  # noqa: BLE001 - of the script
            why = f"TIMEOUT of {run.seconds:g} s" if isinstance(error, TimeoutError) else describe(error)
            self.failed.update(dict.fromkeys(filter(None, ids), why))
            self._sessions.host.log(f"session {id} could not be replayed: {why}", "warning")
            return why
        self._sessions.commit(session)
        self.failed = {one: why for one, why in self.failed.items() if one not in ids}
        if not stored_ids.are_those_of(session.registrations):
            self._changed.append(session)
        return None

    def _new_id_besides(self, ids: Collection[str]) -> str:
        """Makes an id for a registration that the script did not make when it was stored."""
        while (id := self._sessions.new_id()) in ids:
            pass
        return id

    async def _replay_travelled(self, session: Session, run: Run, functions: bytes, ids: Sequence[str]) -> None:
        """Restores the session's functions from `functions`, with the values of the script's variables."""
        session.remember_lines()
        session.commit()
        await self._io.threads.in_pool(run, unpack_session, session, functions)
        with_ids = zip(session.registrations, ids, strict=True)
        session.registrations = [registration for registration, id in with_ids if id]
        await run_on_registered(session, run)

    async def replayed(self) -> None:
        """Waits for all stored sessions so far. A master stores those again whose scripts now register something else.

        One that was a replica then does not: its own replicas may be of an earlier version, as in an upgrade, and would
        run the script again in the midst of what they are asked.
        """
        async with self._replaying:
            if self._cluster.role == "master":
                for session in self._changed:
                    self._sessions.store(session)
            self._changed.clear()

    def replaying(self) -> bool:
        return self._under_way > 0

    async def settled(self, find: Callable[[], T]) -> T | None:
        """Returns the value of `find()`; where it is None, its value after all replays so far.

        After a reload the sessions come again, and requests that follow them on the socket are faster than they are.
        """
        value = find()
        if value is None and self.replaying():
            async with self._replaying:
                value = find()
        return value

    async def forget_registration(self, id: str) -> None:
        """Notes that the module has removed a registration, which a replay under way may still bring."""
        await self.settled(lambda: self._sessions.registration(id))
        self._sessions.unregister(id, tell=False)
