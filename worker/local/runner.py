"""Runs functions without Redis, for their tests: the worker's own builder, readers, steps and runtime in this process.

    from shardqa.gears import local

    def test_the_words_are_counted():
        results, errors = local.run("wordcount.py", keys={"line:1": "to be or not to be"})

What differs from a cluster: there is one shard, `execute` is answered by fakeredis (or by `redis=`), models are not
there, and a function that never ends is interrupted but never killed.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import hiredis
from redis import Redis, RedisError, ResponseError

from shardqa.worker import frames, resp
from shardqa.worker.activity import Activity
from shardqa.worker.ai.function_runs import FunctionRuns
from shardqa.worker.calls import CHECK, Calls, Rights
from shardqa.worker.frames import Frame, Type
from shardqa.worker.gears.gears import Gears
from shardqa.worker.gears.pipeline.plan import GIVEN
from shardqa.worker.gears.pipeline.readers import KeyEvent, event_records, text
from shardqa.worker.gears.pipeline.run import Run, enter
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.sessions import script_module
from shardqa.worker.gears.sessions.builder import Builder
from shardqa.worker.gears.sessions.requirements import Requirements
from shardqa.worker.gears.sessions.script import Script
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.io import Io
from shardqa.worker.link import Link
from shardqa.worker.local import keyspace
from shardqa.worker.local.keyspace import LocalKeys
from shardqa.worker.nodes import Cluster
from shardqa.worker.statistics import WorkerStatistics
from shardqa.worker.threads import Threads

T = TypeVar("T")
NODE = "0" * 40
STALL = 10.0  # seconds a function may compute, as in the worker where requests have no deadline
# of a module without arguments: what arguments.h has for those that the worker is told
ARGUMENTS = {
    "maxexecutions": "1000",
    "maxexecutionsperregistration": "100",
    "executionmaxidletime": "5000",
    "profileexecutions": "0",
}
USER = "default"
RIGHTS = Rights.of_request(1, USER)

What: TypeAlias = "str | Path | Any"
"""A script: its path, or its text where that has more than one line; or a builder: GB().map(...), without run()"""
Replies: TypeAlias = Mapping[str, Any]
"""Command -> its reply, or a function of its arguments (str) that gives it; an exception is raised"""


class LocalResult(NamedTuple):
    results: list[Any]
    errors: list[str]


def run(
    what: What,
    records: Iterable[Any] | None = None,
    *,
    keys: Mapping[str, Any] | None = None,
    replies: Replies | None = None,
    redis: Redis | None = None,
    convert: bool = False,
) -> LocalResult:
    """Runs a script once on a shard of its own; see LocalShard.run."""
    return LocalShard(keys, replies=replies, redis=redis).run(what, records, convert=convert)


class LocalShard:
    """A shard in this process. Its methods may be called from any thread but one of its own functions'."""

    def __init__(
        self, keys: Mapping[str, Any] | None = None, *, replies: Replies | None = None, redis: Redis | None = None
    ) -> None:
        self.logged: list[str] = []  # what functions gave to log(), in order
        self._space = LocalKeys(keys or {})
        self._io = _io(_LocalLink(_answering(self._space, replies or {}, redis), self.logged))
        self._threads = self._io.threads
        cluster, models = Cluster(self._io.calls, NODE, False, "master"), cast(FunctionRuns, _NoModels())
        self._gears = Gears(self._io, cluster, models, Requirements(None), WorkerStatistics(), ARGUMENTS)

    @property
    def keys(self) -> dict[str, Any]:
        """The contents of the key space in memory."""
        return self._space.as_dict()

    def run(self, what: What, records: Iterable[Any] | None = None, *, convert: bool = False) -> LocalResult:
        """A script's run, or a builder's; over `records` where they are given, in place of what its reader reads.

        A script that only registers gives no results, unless it gets records: then those of its one registration.
        Results are the records themselves; with `convert` what a client gets (convertToStr). Raises what the script
        raises.
        """
        rows = None if records is None else list(records)
        return self._wait(self._run(what, rows, convert))

    def trigger(self, name: str, *arguments: Any) -> Any:
        """The reply of RG.TRIGGER, from a script that was run here. Raises redis.ResponseError."""
        return self._wait(self._command("RG.TRIGGER", name, *arguments))

    def event(self, event: str, key: str) -> list[LocalResult]:
        """Returns what the registrations of this key give to an event of it ('hset', 'del' …), in their order."""
        return self._wait(self._event(event, key))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._threads.wait(coroutine)

    async def _run(self, what: What, records: list[Any] | None, convert: bool) -> LocalResult:
        run = Run(self._threads, RIGHTS)
        enter(run)
        session = await self._session(what, run)
        with script_module.in_use(session.names):
            if session.plan is None and records is not None and len(session.registrations) == 1:
                return await self._registered(session.registrations[0], records, convert)
            if session.plan is None:
                if records is not None:
                    raise ValueError(f"records are for a script that runs or registers once: {_named(what)} does not")
                return LocalResult([], [])
            plan = session.plan if records is None else replace(session.plan, reader=GIVEN, argument=records)
            plan = replace(plan, convert=plan.convert and convert)
            return LocalResult(*await self._gears.executor.run(session, run, plan))

    async def _session(self, what: What, run: Run) -> Session:
        sessions = self._gears.sessions
        if not isinstance(what, Builder):
            session = await sessions.execute(run, Script(_code(what)))
            await self._gears.distribution.register(session, None, run)
            return session
        session = sessions.visiting(sessions.new_id(), RIGHTS)
        session.plan = what.plan_of_run()
        return session

    async def _registered(self, registration: Registration, records: list[Any], convert: bool) -> LocalResult:
        run = Run(self._threads, RIGHTS)
        enter(run)
        own = replace(registration, convert=registration.convert and convert)
        results = await self._gears.runs.run(run, own, records)
        return LocalResult(results or [], run.errors)

    async def _command(self, name: str, *words: Any) -> Any:
        run = Run(self._threads, RIGHTS)
        data = [keyspace.data(word) for word in words]
        run.command = text([name.encode(), *data])
        enter(run)
        return _decoded(await self._gears.commands.run(run, name, data))

    async def _event(self, event: str, key: str) -> list[LocalResult]:
        results = []
        for registration in list(self._gears.registry.registrations):
            if registration.reader == "KeysReader" and not registration.commands and _wants(registration, event, key):
                kind = self._gears.inner.execute(RIGHTS, ("TYPE", key)).decode()
                events = [KeyEvent(event, key, kind)]
                (record,) = await event_records(self._io.calls, RIGHTS, events, registration.read_value)
                results.append(await self._registered(registration, [record], False))
        return results


def _wants(registration: Registration, event: str, key: str) -> bool:
    if registration.events is not None and event not in registration.events:
        return False
    prefix = registration.prefix
    return key.startswith(prefix[:-1]) if prefix.endswith("*") else key == prefix


def _code(what: str | Path) -> str:
    if isinstance(what, str) and ("\n" in what or "(" in what):
        return what
    return Path(what).read_text()


def _named(what: What) -> str:
    return repr(str(what))[:80]


def _decoded(reply: bytes) -> Any:
    reader = hiredis.Reader(replyError=ResponseError)
    reader.feed(reply)
    result = reader.gets()
    if isinstance(result, Exception):
        raise result
    return text(result)


@functools.cache
def _shared_threads() -> Threads:
    """Makes one loop and one pool for all shards of this process: nothing ends them but its end."""
    activity = Activity()
    activity.start()
    threads = Threads(STALL, activity)
    threads.start()
    return threads


def _io(link: _LocalLink) -> Io:
    ours = cast(Link, link)
    calls = Calls(ours)
    link.answered = calls.called
    return Io(ours, calls, _shared_threads())


class _NoModels:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("models run in a worker alone: give the function a stand-in, or test it on a node")


class _LocalLink:
    """The module's side of the socket: answers CALL frames, keeps LOG, and has no use for the others."""

    def __init__(self, answer: Callable[[Sequence[bytes]], Any], lines: list[str]) -> None:
        self.answered: Callable[[Frame], None] | None = None  # takes CALLED
        self._answer = answer
        self._logged = lines
        self._section = threading.RLock()  # a section keeps it: no other thread's command comes between

    def send_list(self, type: Type, id: int, items: Iterable[bytes | str]) -> None:
        parts = (item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item for item in items)
        self.send(type, id, frames.pack(parts))

    def send(self, type: Type, id: int, payload: bytes) -> None:
        if type is Type.LOG:
            self._logged.append(frames.unpack(payload)[1].decode("utf-8", "replace"))
        elif type in (Type.LOCK, Type.UNLOCK):
            self._section.acquire() if type is Type.LOCK else self._section.release()
            self._tell(id, resp.OK)
        elif type is Type.CALL:
            self._tell(id, self._called(frames.unpack(payload)))

    def _tell(self, id: int, reply: bytes) -> None:
        assert self.answered is not None
        self.answered(Frame(Type.CALLED, id, reply))

    def _called(self, items: list[bytes]) -> bytes:
        """Answers a CALL: rights, flags, n, then per command argc and its words."""
        checks, rest, replies = items[1] == CHECK, iter(items[3:]), b""
        with self._section:
            for _ in range(int(items[2])):
                command = [next(rest) for _ in range(int(next(rest)))]
                replies += resp.OK if checks else _encoded(self._answer, command)
        return replies


def _encoded(answer: Callable[[Sequence[bytes]], Any], command: Sequence[bytes]) -> bytes:
    try:
        reply = answer(command)
    except RedisError as error:
        return resp.error(str(error))
    return resp.error(str(reply)) if isinstance(reply, Exception) else resp.encode(reply)


def _answering(space: LocalKeys, replies: Replies, redis: Redis | None) -> Callable[[Sequence[bytes]], Any]:
    table = {name.upper(): reply for name, reply in replies.items()}

    def answer(command: Sequence[bytes]) -> Any:
        name = command[0].decode(errors="replace").upper()
        if name in table:
            reply = table[name]
            return reply(*map(text, command[1:])) if callable(reply) else reply
        return space.execute(command) if redis is None else _asked(redis, command)

    return answer


def _asked(redis: Redis, command: Sequence[bytes]) -> Any:
    """The reply as it came, for the worker's own reading of it: redis-py's commands give other types."""
    connection = redis.connection_pool.get_connection()
    try:
        connection.send_command(*command)
        return _as_resp2(connection.read_response(disable_decoding=True))
    finally:
        redis.connection_pool.release(connection)


def _as_resp2(reply: Any) -> Any:
    """Redis-py may speak RESP3; functions see what RESP2 has."""
    match reply:
        case bool():
            return int(reply)
        case float():
            return f"{reply:.17g}".encode()
        case dict():
            return [_as_resp2(one) for pair in reply.items() for one in pair]
        case list() | set():
            return [_as_resp2(one) for one in reply]
    return reply
