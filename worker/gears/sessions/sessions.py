"""The sessions of this shard: new scripts, and stored ones that are replayed.

A script that has succeeded is committed in the loop's thread, at once and as a whole. One that raises leaves nothing
behind. Stored sessions are replayed in order after a start, with the registration ids they had.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from shardqa.worker import resp
from shardqa.worker.calls import Rights
from shardqa.worker.frames import Type
from shardqa.worker.gears.pipeline.run import Run, describe, enter
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.registrations.registry import Registry
from shardqa.worker.gears.registrations.stored_registrations import StoredIds, StoredRegistration
from shardqa.worker.gears.sessions.pickling import split, unpack_session
from shardqa.worker.gears.sessions.requirements import Requirements, unmarked
from shardqa.worker.gears.sessions.script import Script
from shardqa.worker.gears.sessions.script_run import run_on_registered, run_script
from shardqa.worker.gears.sessions.session import NextId, Session, SessionHost
from shardqa.worker.io import Io
from shardqa.worker.nodes import Cluster

T = TypeVar("T")
REPLAY_STALLS = 3  # times the time a function may run: what a stored session may take
AFTER_THE_MODULE = 5.0
"""Seconds past a replay's deadline. The module ends what can't be interrupted 1 s past it, and blames the session only
while nothing was answered: answered sooner, a script that hangs cost a worker each time, for ever."""


class SessionExists(Exception):
    """An id that is taken, without UPGRADE."""


class Sessions:
    """Loop's thread only."""

    def __init__(
        self,
        io: Io,
        registry: Registry,
        cluster: Cluster,
        requirements: Requirements,
        host: SessionHost,
        names_of: Callable[[Session], Mapping[str, Any]],
    ) -> None:
        self._io = io
        self._registry = registry
        self._cluster = cluster
        self._requirements = requirements
        self._host = host
        self._names_of = names_of
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)
        self._replaying = asyncio.Lock()  # FIFO: sessions are replayed in the order they came
        self._replays = 0  # begun and not done
        self._failed: dict[str, str] = {}  # registration id -> why its session's replay failed
        self._changed: list[Session] = []  # replayed with other registrations than stored
        registry.executions.is_used = self._is_taken

    def _is_taken(self, id: str) -> bool:
        return id in self._sessions or self._registry.registrations.get(id) is not None or id in self._failed

    def new_id(self) -> str:
        while True:
            id = f"{self._cluster.node}-{next(self._numbers)}"
            if not self._is_taken(id) and self._registry.executions.get(id) is None:
                return id

    def _id_of(self, _registration: Registration) -> str:
        return self.new_id()

    def _new_id_besides(self, stored: Collection[str]) -> str:
        """For a script that registers more than it did when it was stored."""
        while (id := self.new_id()) in stored:
            pass
        return id

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def get(self, id: str) -> Session | None:
        return self._sessions.get(id)

    def _session(self, id: str, rights: Rights, code: str, next_id: NextId | None = None) -> Session:
        session = Session(id, rights, code, next_id or self._id_of, self._host)
        session.names = self._names_of(session)
        return session

    def visiting(self, id: str, rights: Rights, code: str = "") -> Session:
        """Makes a session of functions that came from elsewhere; `code` is for their tracebacks."""
        session = self._session(id, rights, code)
        if code:
            session.remember_lines()
        session.commit()
        return session

    def registration(self, id: str) -> Registration | None:
        return self._registry.registrations.get(id)

    def why_inactive(self, registration: str) -> str | None:
        return self._failed.get(registration)

    async def execute(self, run: Run, script: Script) -> Session:
        """Runs a new script, whose requirements are there. Raises SessionExists, or what the script raised."""
        id, replaced = script.id, script.replace
        if replaced is not None and id is not None and id in self._sessions:
            raise SessionExists(f"Can not replace an existing session {id} with {replaced}; send UPGRADE in its place")
        if id is not None and id in self._sessions and not script.upgrade:
            raise SessionExists(f"Session {id} already exists; send UPGRADE to replace it")
        if replaced is not None and replaced not in self._sessions:
            raise SessionExists(f"Can not replace with {replaced}, session does not exists; leave REPLACE_WITH out")
        session = self._session(id or self.new_id(), run.rights, script.code)
        session.description, session.is_new = script.description, True
        session.require(script.requirements)
        try:
            await run_script(session, run)
        finally:
            if id is None:  # it may be the only run under this name: its lines must not pile up
                session.forget_lines()
        return session

    def take(self, session: Session, replace: str | None, run: Run) -> None:
        """Commits and stores it. Raises ValueError when a trigger is taken."""
        self.check_triggers(session, {session.id, replace or session.id})
        if replace is not None:
            self._forget(replace, tell=True)
        self._commit(session)
        self._store(session, run.request)
        # what the script left running goes on with these when its request has ended
        session.rights = run.rights = Rights.of_session(session.id, session.user)

    def replay(self, request: int, id: str, user: str, code: str, stored: Sequence[StoredRegistration]) -> None:
        """A stored session, on start or on a replica; a failure is the answer to `request` (0: there is no request)."""
        self._replays += 1  # at once: what follows on the socket finds that it has to wait
        self._io.threads.task(self._replay_answered(request, id, user, code, stored))

    async def _replay_answered(
        self, request: int, id: str, user: str, code: str, stored: Sequence[StoredRegistration]
    ) -> None:
        try:
            async with self._replaying:
                failure = await self._replay(request, id, user, code, stored)
        finally:
            self._replays -= 1
        if request:
            self._io.link.send(Type.REPLY, request, resp.OK if failure is None else resp.error(failure))

    async def _replay(
        self, request: int, id: str, user: str, code: str, stored: Sequence[StoredRegistration]
    ) -> str | None:
        """Why it failed."""
        self._forget(id, tell=False)
        ids = [one.id for one in stored]
        if ids and not any(ids):
            return None
        stored_ids = StoredIds(stored, partial(self._new_id_besides, ids))
        rights = Rights.of_session(id, user)
        requirements, travelling = unmarked(code)
        content, script = split(travelling)
        session = self._session(id, rights, script, stored_ids.next)
        run = Run(self._io.threads, rights)
        run.name, run.request = f"session {id}, replayed".encode("utf-8", "replace"), request
        run.seconds = REPLAY_STALLS * self._io.threads.stall
        enter(run)
        try:
            await self._requirements.ensure(requirements)
            if content is None:
                session.require(requirements)
            async with asyncio.timeout(run.seconds + AFTER_THE_MODULE):
                if content is None:
                    await run_script(session, run)
                    await run_on_registered(session, run)
                else:
                    session.stored, session.requirements = code, requirements
                    await self._replay_travelled(session, run, content, ids)
        except BaseException as error:  # noqa: BLE001 - of the script
            why = f"TIMEOUT of {run.seconds:g} s" if isinstance(error, TimeoutError) else describe(error)
            self._failed.update(dict.fromkeys(filter(None, ids), why))
            self._host.log(f"session {id} could not be replayed: {why}", "warning")
            return why
        self._commit(session)
        self._failed = {one: why for one, why in self._failed.items() if one not in ids}
        if not stored_ids.are_those_of(session.registrations):
            self._changed.append(session)
        return None

    async def _replay_travelled(self, session: Session, run: Run, content: bytes, ids: Sequence[str]) -> None:
        """Takes its functions as they came, with the values that the script's variables had."""
        session.remember_lines()
        session.commit()
        await self._io.threads.in_pool(run, unpack_session, session, content)
        with_ids = zip(session.registrations, ids, strict=True)
        session.registrations = [registration for registration, id in with_ids if id]
        await run_on_registered(session, run)

    async def replayed(self) -> None:
        """All stored sessions so far are done; a master stores anew those whose script now registers otherwise.

        One that was a replica then does not: its own replicas may be of an earlier version, as in an upgrade, and would
        run the script again in the midst of what they are asked.
        """
        async with self._replaying:
            if self._cluster.role == "master":
                for session in self._changed:
                    self._store(session)
            self._changed.clear()

    def replaying(self) -> bool:
        return self._replays > 0

    async def settled(self, find: Callable[[], T]) -> T | None:
        """Returns what `find` gives; where that is None, what it gives once all replays so far are done.

        After a reload the sessions come again, and requests that follow them on the socket are faster than they are.
        """
        found = find()
        if found is None and self.replaying():
            async with self._replaying:
                found = find()
        return found

    async def forget_registration(self, id: str) -> None:
        """The module has removed it; a replay under way may still bring it."""
        await self.settled(lambda: self._registry.registrations.get(id))
        self.unregister(id, tell=False)

    def unregister(self, id: str, tell: bool = True) -> bool:
        """Drops one registration; its session goes with its last one."""
        self._failed.pop(id, None)
        registration = self._registry.registrations.remove(id)
        if registration is None:
            return False
        session = self._sessions[registration.session]
        session.registrations.remove(registration)
        if tell:
            self._io.link.send_list(Type.UNREGISTER, 0, [id])
        if not session.registrations:
            self._forget(session.id, tell=False)
        return True

    def check_triggers(self, session: Session, replaced: set[str]) -> None:
        seen: set[str] = set()
        for registration in session.registrations:
            if not registration.trigger:
                continue
            other = self._registry.registrations.triggered_by(registration.trigger)
            if registration.trigger in seen or (other is not None and other.session not in replaced):
                here = " in this session" if registration.trigger in seen else ""
                raise ValueError(f"trigger already registered{here}: {registration.trigger!r}; choose another name")
            seen.add(registration.trigger)

    def _commit(self, session: Session) -> None:
        self._forget(session.id, tell=False)
        self._sessions[session.id] = session
        for registration in session.registrations:
            self._registry.registrations.add(registration)
        for watch in session.watches:
            self._registry.watches.add(watch, self._host.log)

    def _store(self, session: Session, request: int = 0) -> None:
        """Tells the module, which persists the session and replaces one of the same id.

        Its user is that of `request`, as the module knows it; 0: of the session that is stored already.
        """
        items = [session.id, session.user, session.stored, str(len(session.registrations))]
        for registration in session.registrations:
            items += registration.wire()
        self._io.link.send_list(Type.REGISTER, request, items)

    def _forget(self, id: str, tell: bool) -> None:
        session = self._sessions.pop(id, None)
        if session is None:
            return
        self._registry.watches.drop(id)
        for registration in session.registrations:
            self._registry.registrations.remove(registration.id)
            if tell:
                self._io.link.send_list(Type.UNREGISTER, 0, [registration.id])
