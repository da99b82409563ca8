"""Sessions: the scripts of RG.PYEXECUTE, run once each, and what they leave registered.

A script runs on the pool with globals of its own. What it registers, watches or wants to run is only collected;
when it has succeeded it is committed in the loop's thread, at once and as a whole. A script that raises leaves
nothing behind. Stored sessions are replayed in order after a start, with the registration ids they had.
"""

import asyncio
import inspect
import itertools
import linecache
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shardqa.module.worker.frames import Type
from shardqa.module.worker.gears import functions
from shardqa.module.worker.gears.builder import RunPlan
from shardqa.module.worker.gears.execution import Execution, current, describe, enter
from shardqa.module.worker.gears.registrations import Registration
from shardqa.module.worker.gears.runs import run_here
from shardqa.module.worker.gears.watches import Watch
from shardqa.module.worker.shard import Shard


class SessionExists(Exception):
    """An id that is taken, without UPGRADE."""


class Session:
    """One script. Written by the pool's thread while it runs, by the loop's thread afterwards."""

    def __init__(self, shard: Shard, id: str, user: str, code: str, ids: Callable[[], str]) -> None:
        self.shard = shard
        self.id = id
        self.user = user
        self.code = code
        self.next_id = ids
        self.description: str | None = None
        self.registrations: list[Registration] = []
        self.watches: list[Watch] = []
        self.plan: RunPlan | None = None  # of a run at the script's top level
        self._on_registered: list[Callable[[], Any]] = []
        self._committed = False

    def run(self, plan: RunPlan) -> Any:
        execution = current()
        if self._committed and execution is not None:
            return run_here(self, execution, plan)
        if self.plan is not None:
            raise RuntimeError("a script may run once; send the second run in a script of its own")
        self.plan = plan
        return None

    def register(self, registration: Registration, on_registered: Callable[[], Any] | None) -> None:
        if self._committed:
            raise RuntimeError("register belongs at the script's top level, not inside a function")
        if not registration.id:  # a replay of what was unregistered since
            return
        self.registrations.append(registration)
        if on_registered is not None:
            self._on_registered.append(on_registered)

    def watch(self, watch: Watch) -> None:
        if self._committed:
            raise RuntimeError("watch belongs at the script's top level, not inside a function")
        self.watches.append(watch)

    async def execute_code(self, execution: Execution) -> None:
        """Runs the script. Raises whatever it raises."""
        await self.shard.threads.in_pool(execution, self._execute)
        for function in self._on_registered:
            if inspect.iscoroutinefunction(function):
                await function()
            else:
                await self.shard.threads.in_pool(execution, function)
        self._committed = True

    def forget_lines(self) -> None:
        linecache.cache.pop(f"<session {self.id}>", None)

    def _execute(self) -> None:
        name = f"<session {self.id}>"
        linecache.cache[name] = (len(self.code), None, self.code.splitlines(True), name)
        try:
            exec(compile(self.code, name, "exec"), functions.namespace(self))
        except StopIteration as error:  # can't travel through a future
            raise RuntimeError("the script raised StopIteration") from error


class Sessions:
    """Loop's thread only."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)
        self._replaying = asyncio.Lock()  # FIFO: sessions are replayed in the order they came
        self._failed: dict[str, str] = {}  # registration id -> why its session's replay failed
        self._changed: list[Session] = []  # replayed with other registrations than stored

    def new_id(self) -> str:
        while True:
            id = f"{self._shard.cluster.node}-{next(self._numbers)}"
            if id not in self._sessions and self._shard.registrations.get(id) is None and id not in self._failed:
                return id

    def _new_id_besides(self, stored: Sequence[str]) -> str:
        """For a script that registers more than it did when it was stored."""
        while (id := self.new_id()) in stored:
            pass
        return id

    def why_inactive(self, registration: str) -> str | None:
        return self._failed.get(registration)

    async def execute(
        self,
        execution: Execution,
        id: str | None,
        code: str,
        description: str | None,
        upgrade: bool,
        replace: str | None,
        partial: bool,
    ) -> Session:
        """Runs a new script and commits it (unless `partial`: the shard that leads its run does that).

        Raises SessionExists, or what the script raised.
        """
        if id is not None and id in self._sessions and not upgrade:
            raise SessionExists(f"Session {id} already exists; send UPGRADE to replace it")
        if replace is not None and replace not in self._sessions:
            raise SessionExists(f"Session {replace}, given as REPLACE_WITH, does not exist; leave it out")
        session = Session(self._shard, id or self.new_id(), execution.user, code, self.new_id)
        session.description = description
        try:
            await session.execute_code(execution)
        finally:
            if id is None:  # it may be the only run under this name: its lines must not pile up
                session.forget_lines()
        if (session.registrations or session.watches) and not partial:
            self._check_triggers(session, {session.id, replace or session.id})
            if replace is not None:
                self._forget(replace, tell=True)
            self._commit(session)
            self._store(session)
        return session

    async def replay(self, id: str, user: str, code: str, ids: Sequence[str]) -> None:
        """A stored session, on start or on a replica; a failure is logged and kept as its registrations' reason.

        `ids` go to its registrations in order; an empty one was unregistered since and stays out.
        """
        async with self._replaying:
            self._forget(id, tell=False)
            if ids and not any(ids):
                return
            stored = iter(ids)
            session = Session(self._shard, id, user, code, lambda: _next(stored, lambda: self._new_id_besides(ids)))
            execution = Execution(self._shard.threads, user)
            enter(execution)
            try:
                await session.execute_code(execution)
            except BaseException as error:  # noqa: BLE001 - of the script
                self._failed.update(dict.fromkeys(filter(None, ids), describe(error)))
                self._shard.log(f"session {id} could not be replayed: {describe(error)}", "warning")
                return
            self._commit(session)
            if [r.id for r in session.registrations] != [i for i in ids if i]:
                self._changed.append(session)

    async def replayed(self) -> None:
        """All stored sessions so far are done; a master stores anew those whose script now registers otherwise."""
        async with self._replaying:
            if self._shard.cluster.role == "master":
                for session in self._changed:
                    self._store(session)
            self._changed.clear()

    def unregister(self, id: str) -> bool:
        """Drops one registration; its session goes with its last one."""
        registration = self._shard.registrations.remove(id)
        if registration is None:
            return False
        session = self._sessions[registration.session]
        session.registrations.remove(registration)
        self._shard.link.send_list(Type.UNREGISTER, 0, [id])
        if not session.registrations:
            self._forget(session.id, tell=False)
        return True

    def _check_triggers(self, session: Session, replaced: set[str]) -> None:
        seen: set[str] = set()
        for registration in session.registrations:
            if registration.reader != "CommandReader":
                continue
            other = self._shard.registrations.triggered_by(registration.trigger)
            if registration.trigger in seen or (other is not None and other.session not in replaced):
                raise ValueError(f"trigger {registration.trigger!r} is already registered; choose another name")
            seen.add(registration.trigger)

    def _commit(self, session: Session) -> None:
        self._forget(session.id, tell=False)
        self._sessions[session.id] = session
        for registration in session.registrations:
            self._shard.registrations.add(registration)
        for watch in session.watches:
            self._shard.watches.add(watch, self._shard.log)

    def _store(self, session: Session) -> None:
        """Tells the module, which persists the session and replaces one of the same id."""
        items = [session.id, session.user, session.code, str(len(session.registrations))]
        for registration in session.registrations:
            items += registration.wire()
        self._shard.link.send_list(Type.REGISTER, 0, items)

    def _forget(self, id: str, tell: bool) -> None:
        session = self._sessions.pop(id, None)
        if session is None:
            return
        self._shard.watches.drop(id)
        for registration in session.registrations:
            self._shard.registrations.remove(registration.id)
            if tell:
                self._shard.link.send_list(Type.UNREGISTER, 0, [registration.id])


def _next(stored: Iterator[str], new: Callable[[], str]) -> str:
    """The next stored id, also an empty one; a new one past the last."""
    id = next(stored, None)
    return new() if id is None else id
