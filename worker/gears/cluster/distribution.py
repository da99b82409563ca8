"""Registrations on every master, as in RedisGears, under the same ids.

First all shards are asked to PREPARE: they read the functions (which travel as those of runs do), check ids and
triggers and run onRegistered. When all agreed they are told to COMMIT, else to DISCARD, and nothing has changed. A
shard that fails between the two is named in the error: then it runs the old version and the others the new one.

A session that travelled is stored with its functions as they came, so that a variable of the script keeps its one
value over restarts; and with the script, which is run instead where the Python is another one.
Loop's thread only.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from shardqa.topology import Node
from shardqa.worker import resp
from shardqa.worker.gears.cluster.peers import Neighbours
from shardqa.worker.gears.pipeline.run import Run, current, describe, enter
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.sessions.pickling import (
    PYTHON,
    CannotTravel,
    pack_session,
    split,
    stored_script,
    unpack_session,
)
from shardqa.worker.gears.sessions.requirements import Requirements, RequirementsFailed, marked, unmarked
from shardqa.worker.gears.sessions.script import BESIDE
from shardqa.worker.gears.sessions.script_run import run_on_registered
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.gears.sources.streams import Streams

MAX_PREPARED = 100  # sessions that wait for COMMIT; the oldest goes
INSTALLING = 660.0  # seconds a shard may take for installing what a script requires
NO_SCRIPT = "raise RuntimeError('a function registered this, in another version of Python: let it do so again')"
READ_SECONDS = 60.0  # seconds a shard may take for reading functions (it may import large packages) and onRegistered


class NotDistributed(Exception):
    """A shard has not taken the registrations."""


class Distribution:
    def __init__(
        self, neighbours: Neighbours, sessions: Sessions, streams: Streams, requirements: Requirements
    ) -> None:
        self._cluster = neighbours.cluster
        self._peers = neighbours.peers
        self._sessions = sessions
        self._streams = streams
        self._requirements = requirements
        self._prepared: dict[str, tuple[Session, Run]] = {}  # by session id; the run of its onRegistered
        self._peers.handle_with(REQUIRE=self._on_require, PREPARE=self._on_prepare, COMMIT=self._on_commit)
        self._peers.handle_with(DISCARD=self._on_discard, UNREGISTER=self._on_unregister, PAUSE=self._on_pause)

    async def register(self, session: Session, former: str | None, run: Run) -> None:
        """Registers the registrations of a script, here and on the other masters.

        Raises ValueError, CannotTravel and NotDistributed.
        """
        if not session.registrations and not session.watches:
            session.commit()
            return
        both = {session.id, former or session.id}
        self._sessions.check_triggers(session, both)
        others = await self._others(session)
        content = pack_session(session) if others else b""
        await run_on_registered(session, run)
        if others:
            await self._prepare(session, content, former, others)
            try:
                self._sessions.check_triggers(session, both)  # another script may have been faster
            except ValueError:
                await self._discard(session, others)
                raise
        self._sessions.take(session, former, run)
        await self._commit(session, former, others)

    def from_function(
        self, around: Session, registration: Registration, on_registered: list[Callable[[], Any]]
    ) -> None:
        """`register` inside a function of `around`: in a session of its own, which is replaced with that one.

        Any thread. Raises ValueError and CannotTravel; what becomes of it later is logged.
        """
        inside = current()
        if inside is None:
            raise RuntimeError("register works at the script's top level and in a function, not in a thread of its own")
        registration.id = self._sessions.new_id()
        registration.session = f"{around.id}{BESIDE}{registration.id}"
        session = self._sessions.visiting(registration.session, around.rights)
        session.names, session.globals, session.origin = around.names, around.globals, around.origin
        session.code = NO_SCRIPT
        session.registrations, session.on_registered = [registration], on_registered
        self._sessions.check_triggers(session, {session.id})
        session.stored = stored_script(pack_session(session), session.code)
        session.require(around.requirements)
        run = Run(inside.threads, around.rights)
        run.request = inside.request
        inside.threads.spawn(self._register_beside(session, run, inside))

    async def _register_beside(self, session: Session, run: Run, inside: Run) -> None:
        inside.hold()  # the rights of a script that runs
        enter(run)
        try:
            await self.register(session, None, run)
        except BaseException as error:  # noqa: BLE001 - of onRegistered, or of another shard
            self._sessions.host.log(f"session {session.id} was not registered: {describe(error)}", "warning")
        finally:
            inside.release()

    async def _others(self, session: Session) -> list[Node]:
        """Returns the other masters that get this session; one with watches belongs to this shard alone."""
        if session.watches or not session.registrations:
            return []
        return await self._cluster.other_masters()

    async def _prepare(self, session: Session, content: bytes, former: str | None, others: Sequence[Node]) -> None:
        """Has others read `content` (of `pack_session`). Raises NotDistributed; then nothing has changed anywhere."""
        session.stored = marked(session.requirements, stored_script(content, session.code))
        words = (session.id, PYTHON, session.id, session.user, former or "", session.description or "")
        await self._ask_all(
            others, "PREPARE", *words, content, session.code, json.dumps(session.requirements), undo=session
        )

    async def _commit(self, session: Session, former: str | None, others: Sequence[Node]) -> None:
        """Has all others take what they prepared. Raises NotDistributed, with the shards that did not."""
        await self._ask_all(others, "COMMIT", session.id, PYTHON, session.id, session.user, former or "")

    async def _discard(self, session: Session, others: Sequence[Node]) -> None:
        await self._peers.send_all(others, "DISCARD", session.id)

    async def introduce(self, session: Session, node: Node) -> None:
        """Registers a session of this shard on a master that lacks it. Raises NotDistributed and CannotTravel."""
        try:
            content = pack_session(session)
        except CannotTravel:  # onRegistered has made what can't; as it came, it could
            functions, _ = split(unmarked(session.stored)[1])
            if functions is None:
                raise
            content = functions
        if session.requirements:
            words = json.dumps({"requirements": session.requirements, "reinstall": False})
            await self._ask_all([node], "REQUIRE", words, patience=INSTALLING)
        whose = (session.id, PYTHON, session.id, session.user, "")
        more = (session.description or "", content, session.code, json.dumps(session.requirements))
        await self._ask_all([node], "PREPARE", *whose, *more)
        await self._ask_all([node], "COMMIT", *whose)

    async def require(self, requirements: Sequence[str], reinstall: bool) -> None:
        """Installs requirements on the other masters. Raises NotDistributed."""
        words = json.dumps({"requirements": list(requirements), "reinstall": reinstall})
        await self._ask_all(await self._cluster.other_masters(), "REQUIRE", words, patience=INSTALLING)

    async def unregister(self, *words: str) -> bool:
        """Removes the registration of this id, and with a second word what waits for it; returns whether it was there.

        A shard that can't be reached keeps and lists it.
        """
        if not await self._unregister(*words):
            return False
        await self._peers.send_all(await self._cluster.other_masters(), "UNREGISTER", *words, patience=READ_SECONDS)
        return True

    async def _unregister(self, id: str, abort_pending: str = "") -> bool:
        registration = await self._sessions.replays.settled(lambda: self._sessions.registration(id))
        if registration is not None:
            self._streams.forget(registration)
        return self._sessions.unregister(id, drop=bool(abort_pending))

    async def pause(self, ids: list[str], is_paused: bool) -> None:
        """Pauses registrations or lets them go on; a shard that can't be reached does not, and its list shows it."""
        self._pause(ids, is_paused)
        await self._peers.send_all(await self._cluster.other_masters(), "PAUSE", json.dumps([ids, is_paused]))

    def _pause(self, ids: list[str], is_paused: bool) -> None:
        for registration in filter(None, map(self._sessions.registration, ids)):
            self._streams.pause(registration, is_paused)

    async def _ask_all(
        self,
        others: Sequence[Node],
        verb: str,
        *words: Any,
        undo: Session | None = None,
        patience: float = READ_SECONDS,
    ) -> None:
        replies = await self._peers.send_all(others, verb, *words, patience=patience)
        pairs = zip(others, replies, strict=True)
        failures = [f"{node.address}: {reply}" for node, reply in pairs if isinstance(reply, BaseException)]
        if not failures:
            return
        if undo is not None:
            await self._discard(undo, others)
            raise NotDistributed(f"nothing was registered, because of shard {'; shard '.join(failures)}")
        if verb == "REQUIRE":
            raise NotDistributed(f"nothing was run, because of shard {'; shard '.join(failures)}")
        raise NotDistributed(f"registered, but not on shard {'; shard '.join(failures)}; send it again with UPGRADE")

    # ---- what peers send ----

    async def _on_require(self, _sender: str, arguments: list[bytes]) -> bytes:
        order = json.loads(arguments[0])
        try:
            await self._requirements.ensure(order["requirements"], order["reinstall"])
        except RequirementsFailed as error:
            return resp.error(f"ERR {error}")
        return resp.OK

    async def _on_prepare(self, _sender: str, arguments: list[bytes]) -> bytes:
        id, python, _, _, former, description = (word.decode("utf-8", "surrogateescape") for word in arguments[:6])
        content, code = arguments[6], arguments[7].decode("utf-8", "surrogateescape")
        run = current()
        assert run is not None
        if python != PYTHON:
            return resp.error(f"ERR functions of Python {python} can't run on {PYTHON}; use one Python everywhere")
        session = self._sessions.visiting(id, run.rights, code)
        session.description = description or None
        session.stored = stored_script(content, code)
        session.require(json.loads(arguments[8]) if len(arguments) > 8 else ())
        try:
            await run.threads.in_pool(run, unpack_session, session, content)
            self._sessions.check_triggers(session, {id, former or id})
            await run_on_registered(session, run)
        except BaseException as error:  # noqa: BLE001 - of whatever a user's code raises
            return resp.error(describe(error))
        self._prepared[id] = session, run
        while len(self._prepared) > MAX_PREPARED:
            del self._prepared[next(iter(self._prepared))]
        return resp.OK

    async def _on_commit(self, _sender: str, arguments: list[bytes]) -> bytes:
        id, _, _, _, former = (word.decode("utf-8", "surrogateescape") for word in arguments[:5])
        draft, run = self._prepared.pop(id, None), current()
        assert run is not None
        if draft is None:
            return resp.error("ERR it was not prepared: the worker was started anew meanwhile")
        session, preparing = draft
        try:
            self._sessions.take(session, former or None, run)
        except ValueError as error:
            return resp.error(f"ERR {error}")
        preparing.rights = session.rights  # of threads that onRegistered began
        return resp.OK

    async def _on_discard(self, _sender: str, arguments: list[bytes]) -> bytes:
        self._prepared.pop(arguments[0].decode("utf-8", "surrogateescape"), None)
        return resp.OK

    async def _on_pause(self, _sender: str, arguments: list[bytes]) -> bytes:
        self._pause(*json.loads(arguments[0]))
        return resp.OK

    async def _on_unregister(self, _sender: str, arguments: list[bytes]) -> bytes:
        words = [word.decode("utf-8", "surrogateescape") for word in arguments]
        return resp.encode(int(await self._unregister(*words)))
