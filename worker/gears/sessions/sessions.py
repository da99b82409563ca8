"""The sessions of this shard: new scripts, and stored ones that are run again (replays.py).

A script that has succeeded is committed in the loop's thread, at once and as a whole. One that raises leaves nothing
behind.
"""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from shardqa.worker.calls import Rights
from shardqa.worker.frames import Type
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.registrations.registry import Registry
from shardqa.worker.gears.sessions.replays import Replays
from shardqa.worker.gears.sessions.requirements import Requirements
from shardqa.worker.gears.sessions.script import BESIDE, Script
from shardqa.worker.gears.sessions.script_run import run_script
from shardqa.worker.gears.sessions.session import NextId, Session, SessionHost
from shardqa.worker.io import Io
from shardqa.worker.nodes import Cluster

LOOK = 0.05  # seconds between two looks whether what a session left is done


class SessionExists(Exception):
    """The id is taken, and UPGRADE is missing."""


class Sessions:
    """The sessions of this shard. Loop's thread only."""

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
        self.host = host
        self._names_of = names_of
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)
        self.replays = Replays(io, cluster, requirements, self)
        registry.executions.is_used = self._is_taken

    def _is_taken(self, id: str) -> bool:
        return id in self._sessions or self._registry.registrations.get(id) is not None or id in self.replays.failed

    def new_id(self) -> str:
        while True:
            id = f"{self._cluster.node}-{next(self._numbers)}"
            if not self._is_taken(id) and self._registry.executions.get(id) is None:
                return id

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def get(self, id: str) -> Session | None:
        return self._sessions.get(id)

    def make(self, id: str, rights: Rights, code: str, next_id: NextId | None = None) -> Session:
        session = Session(id, rights, code, next_id or (lambda _: self.new_id()), self.host)
        around = self._sessions.get(around_of(id)) if BESIDE in id else None
        if around is None:
            session.names = self._names_of(session)
        else:
            session.names, session.globals, session.origin = around.names, around.globals, around
        return session

    def visiting(self, id: str, rights: Rights, code: str = "") -> Session:
        """Makes a session for functions from another shard; `code` is for their tracebacks."""
        session = self.make(id, rights, code)
        if code:
            session.remember_lines()
        session.commit()
        return session

    def beside(self, ids: Collection[str]) -> list[Session]:
        """Returns what functions of these sessions registered."""
        return [one for one in self if BESIDE in one.id and around_of(one.id) in ids]

    def registration(self, id: str) -> Registration | None:
        return self._registry.registrations.get(id)

    async def execute(self, run: Run, script: Script) -> Session:
        """Runs a new script, whose requirements are installed. Raises SessionExists, and what the script raises."""
        id, former = script.id, script.replace
        if former is not None and id is not None and id in self._sessions:
            raise SessionExists(f"Can not replace an existing session {id} with {former}; send UPGRADE in its place")
        if id is not None and id in self._sessions and not script.upgrade:
            raise SessionExists(f"Session {id} already exists; send UPGRADE to replace it")
        if former is not None and former not in self._sessions:
            raise SessionExists(f"Can not replace with {former}, session does not exists; leave REPLACE_WITH out")
        session = self.make(id or self.new_id(), run.rights, script.code)
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
        former = {session.id, replace or session.id}
        self.check_triggers(session, former)
        gone = {one.id for one in self.beside(former)} | ({replace} if replace is not None else set())
        if self._sessions.get(session.id, session).user != session.user:  # what runs has the rights of its own
            gone.add(session.id)
        for id in gone:
            self.forget(id, tell=True)
        self.commit(session)
        self.store(session, run.request)
        # what the script left running goes on with these when its request has ended
        session.rights = run.rights = Rights.of_session(session.id, session.user)

    def unregister(self, id: str, *, tell: bool = True, drop: bool = False) -> bool:
        """Removes one registration, with what waits for it (`drop`); its session goes with its last one."""
        self.replays.failed.pop(id, None)
        registration = self._registry.registrations.remove(id, drop or not tell)
        if registration is None:
            return False
        session = self._sessions[registration.session]
        session.registrations.remove(registration)
        session.removed.append(registration)
        if tell:
            self._io.link.send_list(Type.UNREGISTER, 0, [id])
        if not session.registrations:
            self.forget(session.id, tell=tell)
        return True

    def check_triggers(self, session: Session, former: set[str]) -> None:
        triggers: set[str] = set()
        for registration in session.registrations:
            if not registration.trigger:
                continue
            other = self._registry.registrations.triggered_by(registration.trigger)
            if registration.trigger in triggers or (other and not {other.session, around_of(other.session)} & former):
                here = " in this session" if registration.trigger in triggers else ""
                raise ValueError(f"trigger already registered{here}: {registration.trigger!r}; choose another name")
            triggers.add(registration.trigger)

    def commit(self, session: Session) -> None:
        self.forget(session.id, tell=False)
        self._sessions[session.id] = session
        for registration in session.registrations:
            self._registry.registrations.add(registration)
        for watch in session.watches:
            self._registry.watches.add(watch, self.host.log)

    def store(self, session: Session, request: int = 0) -> None:
        """Sends a session to the module, which persists it in place of one of the same id.

        Its user is that of `request`, as the module knows it; 0: of the session that is stored already.
        """
        items = [session.id, session.user, session.stored, str(len(session.registrations))]
        for registration in session.registrations:
            items += registration.wire()
        self._io.link.send_list(Type.REGISTER, request, items)

    def forget(self, id: str, tell: bool, drop: bool = False) -> None:
        """Forgets a session, with what waits for its functions (`drop`); `tell` the module to forget it, too."""
        session = self._sessions.pop(id, None)
        if session is None:
            return
        self._registry.watches.drop(id)
        for registration in session.registrations:
            self._registry.registrations.remove(registration.id, drop)
            if tell:
                self._io.link.send_list(Type.UNREGISTER, 0, [registration.id])
        if tell:
            self._release(session)

    def _release(self, session: Session) -> None:
        """Ends the rights of a session that went, once all is done that its functions had begun."""
        if any(map(self._registry.registrations.queue_of, session.removed + session.registrations)):
            self._io.threads.loop.call_later(LOOK, self._release, session)
        else:
            self._io.link.send_list(Type.RELEASE, 0, [session.id])


def around_of(id: str) -> str:
    """Returns the id of the session whose function registered this one, else its own."""
    return id.partition(BESIDE)[0]
