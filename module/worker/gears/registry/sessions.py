"""Sessions: the scripts of RG.PYEXECUTE, run once each, and what they leave registered.

A script runs on the pool with globals of its own. What it registers, watches or wants to run is only collected;
when it has succeeded it is committed in the loop's thread, at once and as a whole. A script that raises leaves
nothing behind. Stored sessions are replayed in order after a start, with the registration ids they had.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import linecache
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from shardqa.module.worker import resp
from shardqa.module.worker.calls import Rights
from shardqa.module.worker.frames import Type
from shardqa.module.worker.gears.cluster.coordination import Coordination
from shardqa.module.worker.gears.cluster.distribution import Distribution, pack, split, unpack
from shardqa.module.worker.gears.cluster.executor import Executor
from shardqa.module.worker.gears.pipeline.plan import RunPlan
from shardqa.module.worker.gears.pipeline.run import Run, current, describe, enter
from shardqa.module.worker.gears.registry import script_functions, script_module
from shardqa.module.worker.gears.registry.builder_options import check_text
from shardqa.module.worker.gears.registry.prefix_watches import Watch
from shardqa.module.worker.gears.registry.registrations import Registration
from shardqa.module.worker.gears.registry.requirements import marked, unmarked
from shardqa.module.worker.gears.registry.stored_registrations import StoredIds, StoredRegistration
from shardqa.module.worker.shard import Shard

if TYPE_CHECKING:
    from shardqa.module.worker.gears.commands.pyexecute import Script

T = TypeVar("T")
Ids: TypeAlias = Callable[[Registration], str]
REPLAY_STALLS = 3  # times the time a function may run: what a stored session may take
AFTER_THE_MODULE = 5.0
"""Seconds past a replay's deadline. The module ends what can't be interrupted 1 s past it, and blames the session only
while nothing was answered: answered sooner, a script that hangs cost a worker each time, for ever."""


class SessionExists(Exception):
    """An id that is taken, without UPGRADE."""


class Session:
    """One script. Written by the pool's thread while it runs, by the loop's thread afterwards."""

    def __init__(self, shard: Shard, id: str, rights: Rights, code: str, ids: Ids, runs: Executor) -> None:
        self.shard = shard
        self.id = id
        self.rights = rights  # of the request that runs the script; once it is stored, its own
        self.code = code
        self.next_id = ids
        self.description: str | None = None
        self.registrations: list[Registration] = []
        self.watches: list[Watch] = []
        self.plan: RunPlan | None = None  # of a run at the script's top level
        self.names = script_functions.namespace(self)  # what the worker gives to the script
        self._runs = runs
        self.requirements: tuple[str, ...] = ()
        self.on_registered: list[Callable[[], Any]] = []
        self.stored = code  # what a replay begins with: the script, or what travelled (distribution.py)
        self._committed = False
        self._ignored: set[str] = set()

    def require(self, requirements: Sequence[str]) -> None:
        """They are there already."""
        self.requirements = tuple(requirements)
        self.stored = marked(self.requirements, self.stored)

    @property
    def user(self) -> str:
        return self.rights.user

    def rights_now(self) -> Rights:
        """Of the function that runs now in this task or thread; outside of one, the session's own."""
        run = current()
        return self.rights if run is None else run.rights

    def run(self, plan: RunPlan) -> Any:
        if self._committed:
            return self._runs.from_function(self, plan)
        if self.plan is not None:
            raise RuntimeError(
                "Can not run more then 1 executions in a single script; send the second run in a script of its own"
            )
        self.plan = plan
        return None

    def register(self, registration: Registration, on_registered: Callable[[], Any] | None) -> None:
        if self._committed:
            raise RuntimeError("register belongs at the script's top level, not inside a function")
        if not registration.id:  # a replay of what was unregistered since
            return
        check_text(*registration.wire())
        self.registrations.append(registration)
        if on_registered is not None:
            self.on_registered.append(on_registered)

    def ignore(self, action: str, reader: str, names: Collection[str]) -> None:
        """Arguments that nobody knows, as RedisGears passes them over: the log says it once a script."""
        for name in names:
            text = f"session {self.id}: {action} of a {reader} ignores the unknown argument {name}"
            if text not in self._ignored:
                self._ignored.add(text)
                self.shard.log(text)

    def watch(self, watch: Watch) -> None:
        if self._committed:
            raise RuntimeError("watch belongs at the script's top level, not inside a function")
        check_text(watch.prefix)
        self.watches.append(watch)

    async def execute_code(self, run: Run) -> None:
        """Runs the script. Raises whatever it raises."""
        await self.execute_script(run)
        await self.run_on_registered(run)

    async def execute_script(self, run: Run) -> None:
        """The same without what is to run once it is registered."""
        await self.shard.threads.in_pool(run, self._execute)

    async def run_on_registered(self, run: Run) -> None:
        """The last thing before it is committed. Raises whatever a function raises."""
        for function in self.on_registered:
            if inspect.iscoroutinefunction(function):
                await self.shard.threads.stepping(function(), run.name, run.request)
            else:
                await self.shard.threads.in_pool(run, function)
        self._committed = True

    def visit(self) -> None:
        """The session runs on another shard: here are only functions that travelled."""
        self._committed = True

    def forget_lines(self) -> None:
        linecache.cache.pop(f"<session {self.id}>", None)

    def remember_lines(self) -> None:
        """For tracebacks."""
        name = f"<session {self.id}>"
        linecache.cache[name] = (len(self.code), None, self.code.splitlines(True), name)

    def _execute(self) -> None:
        name = f"<session {self.id}>"
        self.remember_lines()
        try:
            with script_module.in_use(self.names):
                exec(compile(self.code, name, "exec"), script_functions.old_names(self.names) | self.names)
        except StopIteration as error:  # can't travel through a future
            raise RuntimeError("the script raised StopIteration") from error


class Sessions:
    """Loop's thread only."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.runs = Executor(shard, Coordination(shard, self))
        self.distribution = Distribution(shard, self)
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)
        self._replaying = asyncio.Lock()  # FIFO: sessions are replayed in the order they came
        self._replays = 0  # asked for and not done
        self._failed: dict[str, str] = {}  # registration id -> why its session's replay failed
        self._changed: list[Session] = []  # replayed with other registrations than stored
        shard.executions.avoid(self._is_taken)

    def _is_taken(self, id: str) -> bool:
        return id in self._sessions or self._shard.registrations.get(id) is not None or id in self._failed

    def new_id(self) -> str:
        while True:
            id = f"{self._shard.cluster.node}-{next(self._numbers)}"
            if not self._is_taken(id) and self._shard.executions.get(id) is None:
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

    def visiting(self, id: str, rights: Rights) -> Session:
        """A session of another shard, for functions that came from there."""
        session = Session(self._shard, id, rights, "", self._id_of, self.runs)
        session.visit()
        return session

    def why_inactive(self, registration: str) -> str | None:
        return self._failed.get(registration)

    async def execute(self, run: Run, script: Script) -> Session:
        """Runs a new script, whose requirements are there, and commits it.

        Raises SessionExists, or what the script raised.
        """
        id, upgrade, replace = script.id, script.upgrade, script.replace
        if id is not None and id in self._sessions and not upgrade:
            raise SessionExists(f"Session {id} already exists; send UPGRADE to replace it")
        if replace is not None and replace not in self._sessions:
            raise SessionExists(f"Session {replace}, given as REPLACE_WITH, does not exist; leave it out")
        session = Session(self._shard, id or self.new_id(), run.rights, script.code, self._id_of, self.runs)
        session.description = script.description
        session.require(script.requirements)
        try:
            await session.execute_script(run)
        finally:
            if id is None:  # it may be the only run under this name: its lines must not pile up
                session.forget_lines()
        if session.registrations or session.watches:
            await self._register(session, replace, run)
        else:
            session.visit()
        return session

    async def _register(self, session: Session, replace: str | None, run: Run) -> None:
        """Here and on the other masters. Raises ValueError, CannotTravel and NotDistributed."""
        replaced = {session.id, replace or session.id}
        self.check_triggers(session, replaced)
        others = await self.distribution.others(session)
        content = pack(session) if others else b""
        await session.run_on_registered(run)
        if others:
            await self.distribution.prepare(session, content, replace, others)
            try:
                self.check_triggers(session, replaced)  # another script may have been faster
            except ValueError:
                await self.distribution.discard(session, others)
                raise
        self.take(session, replace, run)
        await self.distribution.commit(session, replace, others)

    def take(self, session: Session, replace: str | None, run: Run) -> None:
        """Commits and stores it. Raises ValueError when a trigger is taken."""
        self.check_triggers(session, {session.id, replace or session.id})
        if replace is not None:
            self._forget(replace, tell=True)
        self._commit(session)
        self._store(session, run.request)
        # what the script left running goes on with these when its request has ended
        session.rights = run.rights = Rights.of_session(session.id, session.user)

    def travelled(self, id: str, run: Run, code: str) -> Session:
        """A session of another shard that is about to be registered here too."""
        session = Session(self._shard, id, run.rights, code, self._id_of, self.runs)
        session.remember_lines()
        session.visit()
        return session

    def replay(self, request: int, id: str, user: str, code: str, stored: Sequence[StoredRegistration]) -> None:
        """A stored session, on start or on a replica; a failure is the answer to `request` (0: there is no request)."""
        self._replays += 1  # at once: what follows on the socket finds that it has to wait
        self._shard.threads.task(self._replay_answered(request, id, user, code, stored))

    async def _replay_answered(
        self, request: int, id: str, user: str, code: str, stored: Sequence[StoredRegistration]
    ) -> None:
        try:
            async with self._replaying:
                failure = await self._replay(request, id, user, code, stored)
        finally:
            self._replays -= 1
        if request:
            self._shard.link.send(Type.REPLY, request, resp.OK if failure is None else resp.error(failure))

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
        session = Session(self._shard, id, rights, script, stored_ids.next, self.runs)
        run = Run(self._shard.threads, rights)
        run.name, run.request = f"session {id}, replayed".encode("utf-8", "replace"), request
        run.seconds = REPLAY_STALLS * self._shard.threads.stall
        enter(run)
        try:
            await self._shard.requirements.ensure(requirements)
            if content is None:
                session.require(requirements)
            async with asyncio.timeout(run.seconds + AFTER_THE_MODULE):
                if content is None:
                    await session.execute_code(run)
                else:
                    session.stored, session.requirements = code, requirements
                    await self._replay_travelled(session, run, content, ids)
        except BaseException as error:  # noqa: BLE001 - of the script
            self._failed.update(dict.fromkeys(filter(None, ids), describe(error)))
            self._shard.log(f"session {id} could not be replayed: {describe(error)}", "warning")
            return describe(error)
        self._commit(session)
        for registration in ids:
            self._failed.pop(registration, None)
        if not stored_ids.are_those_of(session.registrations):
            self._changed.append(session)
        return None

    async def _replay_travelled(self, session: Session, run: Run, content: bytes, ids: Sequence[str]) -> None:
        """Its functions as they came, with the values that the script's variables had."""
        session.remember_lines()
        session.visit()
        await self._shard.threads.in_pool(run, unpack, session, content)
        kept = zip(session.registrations, ids, strict=True)
        session.registrations = [registration for registration, id in kept if id]
        await session.run_on_registered(run)

    async def replayed(self) -> None:
        """All stored sessions so far are done; a master stores anew those whose script now registers otherwise.

        One that was a replica then does not: its own replicas may be of an earlier version, as in an upgrade, and would
        run the script again in the midst of what they are asked.
        """
        async with self._replaying:
            if self._shard.cluster.role == "master":
                for session in self._changed:
                    self._store(session)
            self._changed.clear()

    def replaying(self) -> bool:
        return self._replays > 0

    async def settled(self, find: Callable[[], T]) -> T | None:
        """What `find` gives; where that is None, what it gives once all replays that were asked for are done.

        After a reload the sessions come again, and requests that follow them on the socket are faster than they are.
        """
        found = find()
        if found is None and self.replaying():
            async with self._replaying:
                found = find()
        return found

    async def forget_registration(self, id: str) -> None:
        """The module has removed it; a replay under way may still bring it."""
        await self.settled(lambda: self._shard.registrations.get(id))
        self.unregister(id, tell=False)

    def unregister(self, id: str, tell: bool = True) -> bool:
        """Drops one registration; its session goes with its last one."""
        self._failed.pop(id, None)
        registration = self._shard.registrations.remove(id)
        if registration is None:
            return False
        session = self._sessions[registration.session]
        session.registrations.remove(registration)
        if tell:
            self._shard.link.send_list(Type.UNREGISTER, 0, [id])
        if not session.registrations:
            self._forget(session.id, tell=False)
        return True

    def check_triggers(self, session: Session, replaced: set[str]) -> None:
        seen: set[str] = set()
        for registration in session.registrations:
            if not registration.trigger:
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

    def _store(self, session: Session, request: int = 0) -> None:
        """Tells the module, which persists the session and replaces one of the same id.

        Its user is that of `request`, as the module knows it; 0: of the session that is stored already.
        """
        items = [session.id, session.user, session.stored, str(len(session.registrations))]
        for registration in session.registrations:
            items += registration.wire()
        self._shard.link.send_list(Type.REGISTER, request, items)

    def _forget(self, id: str, tell: bool) -> None:
        session = self._sessions.pop(id, None)
        if session is None:
            return
        self._shard.watches.drop(id)
        for registration in session.registrations:
            self._shard.registrations.remove(registration.id)
            if tell:
                self._shard.link.send_list(Type.UNREGISTER, 0, [registration.id])
