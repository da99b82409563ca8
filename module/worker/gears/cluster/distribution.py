"""What a script registers is registered on every master, as in RedisGears, under the same ids.

First all shards are asked to PREPARE: they read the functions (which travel as those of runs do), check ids and
triggers and run onRegistered. When all agreed they are told to COMMIT, else to DISCARD, and nothing has changed. A
shard that fails between the two is named in the error: then it runs the old version and the others the new one.

A session that travelled is stored with its functions as they came, so that a variable of the script keeps its one
value over restarts; and with the script, which is run instead where the Python is another one.
Loop's thread only.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardqa.module.worker import resp
from shardqa.module.worker.gears.cluster import pickling
from shardqa.module.worker.gears.cluster.coordination import PYTHON
from shardqa.module.worker.gears.cluster.pickling import CannotTravel
from shardqa.module.worker.gears.pipeline.run import current, describe
from shardqa.module.worker.gears.registry.registrations import Registration, RegistrationStatistics
from shardqa.module.worker.gears.registry.requirements import RequirementsFailed, marked, unmarked
from shardqa.topology import Node

if TYPE_CHECKING:
    from shardqa.module.worker.gears.registry.sessions import Session, Sessions
    from shardqa.module.worker.shard import Shard

MARK = "# shardqa: functions as they travelled: "  # begins the first line of a stored session
MAX_PREPARED = 100  # sessions that wait for COMMIT; the oldest goes
INSTALLING = 660.0  # seconds a shard may take for installing what a script requires
PATIENCE = 60.0  # seconds a shard may take for reading functions (it may import large packages) and onRegistered


class NotDistributed(Exception):
    """A shard did not take the registrations."""


class Distribution:
    def __init__(self, shard: Shard, sessions: Sessions) -> None:
        self._shard = shard
        self._sessions = sessions
        self._prepared: dict[str, Session] = {}  # by session id
        self.before_unregister: Callable[[Registration], Awaitable[None]] | None = None  # while its rights last
        for verb, handler in (
            *(("REQUIRE", self._on_require), ("PREPARE", self._on_prepare), ("COMMIT", self._on_commit)),
            *(("DISCARD", self._on_discard), ("UNREGISTER", self._on_unregister)),
        ):
            shard.peers.handle_with(verb, handler)

    async def others(self, session: Session) -> list[Node]:
        """The masters that this session goes to besides this one. What a session watches is this shard's alone."""
        if session.watches or not session.registrations:
            return []
        return await self._shard.cluster.other_masters()

    async def prepare(self, session: Session, content: bytes, replaced: str | None, others: Sequence[Node]) -> None:
        """`content`: of `pack`. Raises NotDistributed; then nothing has changed anywhere."""
        session.stored = marked(session.requirements, stored(content, session.code))
        words = (session.id, PYTHON, session.id, session.user, replaced or "", session.description or "")
        await self._ask_all(
            others, "PREPARE", *words, content, session.code, json.dumps(session.requirements), undo=session
        )

    async def commit(self, session: Session, replaced: str | None, others: Sequence[Node]) -> None:
        """Raises NotDistributed, with the shards that did not go along."""
        await self._ask_all(others, "COMMIT", session.id, PYTHON, session.id, session.user, replaced or "")

    async def discard(self, session: Session, others: Sequence[Node]) -> None:
        await self._shard.peers.send_all(others, "DISCARD", session.id)

    async def introduce(self, session: Session, node: Node) -> None:
        """Registers a session of ours on a master that has it not. Raises NotDistributed and CannotTravel."""
        try:
            content = pack(session)
        except CannotTravel:  # onRegistered has made what can't; as it came, it could
            found, _ = split(unmarked(session.stored)[1])
            if found is None:
                raise
            content = found
        if session.requirements:
            words = json.dumps({"requirements": session.requirements, "reinstall": False})
            await self._ask_all([node], "REQUIRE", words, patience=INSTALLING)
        whose = (session.id, PYTHON, session.id, session.user, "")
        more = (session.description or "", content, session.code, json.dumps(session.requirements))
        await self._ask_all([node], "PREPARE", *whose, *more)
        await self._ask_all([node], "COMMIT", *whose)

    async def require(self, requirements: Sequence[str], reinstall: bool) -> None:
        """Installs on the other masters. Raises NotDistributed."""
        if self._shard.cluster.enabled:
            words = json.dumps({"requirements": list(requirements), "reinstall": reinstall})
            others = await self._shard.cluster.other_masters()
            await self._ask_all(others, "REQUIRE", words, patience=INSTALLING)

    async def unregister(self, id: str) -> None:
        if self._shard.cluster.enabled:
            await self._shard.peers.send_all(await self._shard.cluster.other_masters(), "UNREGISTER", id)

    async def _ask_all(
        self, others: Sequence[Node], verb: str, *words: Any, undo: Session | None = None, patience: float = PATIENCE
    ) -> None:
        replies = await self._shard.peers.send_all(others, verb, *words, patience=patience)
        failed = [f"{node.address}: {reply}" for node, reply in zip(others, replies, strict=True) if _is_error(reply)]
        if not failed:
            return
        if undo is not None:
            await self.discard(undo, others)
            raise NotDistributed(f"nothing was registered, because of shard {'; shard '.join(failed)}")
        if verb == "REQUIRE":
            raise NotDistributed(f"nothing was run, because of shard {'; shard '.join(failed)}")
        raise NotDistributed(f"registered, but not on shard {'; shard '.join(failed)}; send it again with UPGRADE")

    # ---- what peers send ----

    async def _on_require(self, _sender: str, arguments: list[bytes]) -> bytes:
        asked = json.loads(arguments[0])
        try:
            await self._shard.requirements.ensure(asked["requirements"], asked["reinstall"])
        except RequirementsFailed as error:
            return resp.error(f"ERR {error}")
        return resp.OK

    async def _on_prepare(self, _sender: str, arguments: list[bytes]) -> bytes:
        id, python, _, _, replaced, description = (word.decode("utf-8", "surrogateescape") for word in arguments[:6])
        content, code = arguments[6], arguments[7].decode("utf-8", "surrogateescape")
        run = current()
        assert run is not None
        if python != PYTHON:
            return resp.error(f"ERR functions of Python {python} can't run on {PYTHON}; use one Python everywhere")
        session = self._sessions.travelled(id, run, code)
        session.description = description or None
        session.stored = stored(content, code)
        session.require(json.loads(arguments[8]) if len(arguments) > 8 else ())
        try:
            await self._shard.threads.in_pool(run, unpack, session, content)
            self._sessions.check_triggers(session, {id, replaced or id})
            await session.run_on_registered(run)
        except BaseException as error:  # noqa: BLE001 - of whatever a user's code raises
            return resp.error(describe(error))
        self._prepared[id] = session
        while len(self._prepared) > MAX_PREPARED:
            del self._prepared[next(iter(self._prepared))]
        return resp.OK

    async def _on_commit(self, _sender: str, arguments: list[bytes]) -> bytes:
        id, _, _, _, replaced = (word.decode("utf-8", "surrogateescape") for word in arguments[:5])
        session, run = self._prepared.pop(id, None), current()
        assert run is not None
        if session is None:
            return resp.error("ERR it was not prepared: the worker was started anew meanwhile")
        try:
            self._sessions.take(session, replaced or None, run)
        except ValueError as error:
            return resp.error(f"ERR {error}")
        return resp.OK

    async def _on_discard(self, _sender: str, arguments: list[bytes]) -> bytes:
        self._prepared.pop(arguments[0].decode("utf-8", "surrogateescape"), None)
        return resp.OK

    async def _on_unregister(self, _sender: str, arguments: list[bytes]) -> bytes:
        id = arguments[0].decode("utf-8", "surrogateescape")
        registration = self._shard.registrations.get(id)
        if registration is not None and self.before_unregister is not None:
            await self.before_unregister(registration)
        return resp.encode(int(self._sessions.unregister(id)))


def _is_error(reply: Any) -> bool:
    return isinstance(reply, BaseException)


# ---- a session as it travels and as it is stored ----


def pack(session: Session) -> bytes:
    """Before onRegistered is run, which may make what can't travel. Raises CannotTravel."""
    fresh = [replace(registration, statistics=RegistrationStatistics()) for registration in session.registrations]
    return pickling.pack(session, (fresh, session.on_registered))


def unpack(session: Session, content: bytes) -> None:
    """Gives `session` what `pack` took from another. Raises whatever the code in it raises."""
    session.registrations, session.on_registered = pickling.unpack(session, content)


def stored(content: bytes, code: str) -> str:
    """A script of Python all the same: its first line is a comment."""
    return f"{MARK}{PYTHON} {base64.b85encode(content).decode()}\n{code}"


def split(code: str) -> tuple[bytes | None, str]:
    """(what travelled, or None where this Python can't read it; the script) of a stored session."""
    if not code.startswith(MARK):
        return None, code
    first, _, script = code.partition("\n")
    python, _, content = first.removeprefix(MARK).partition(" ")
    return (base64.b85decode(content) if python == PYTHON else None), script
