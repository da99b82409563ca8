"""The reading thread's work: every frame to the part it concerns. Nothing here waits or computes."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import sys
from collections.abc import Callable, Coroutine

from shardqa.gears_functions.runtime import KeyEvent
from shardqa.module.worker import frames, resp
from shardqa.module.worker.ai import backend, redis_ai
from shardqa.module.worker.ai.models import Models
from shardqa.module.worker.calls import Calls
from shardqa.module.worker.frames import Frame, MalformedFrame, Type
from shardqa.module.worker.gears.cluster import Cluster
from shardqa.module.worker.gears.commands import Commands
from shardqa.module.worker.gears.events import Events, Happened
from shardqa.module.worker.gears.execution import Execution, Unset, describe, enter
from shardqa.module.worker.gears.readers import text
from shardqa.module.worker.gears.registrations import Registrations
from shardqa.module.worker.gears.sessions import Sessions
from shardqa.module.worker.gears.watches import Watches
from shardqa.module.worker.link import Link
from shardqa.module.worker.shard import Shard
from shardqa.module.worker.statistics import Statistics
from shardqa.module.worker.threads import Cancelled, Threads

WATCH = "watch"  # target of an EVENT that is for watches
STATISTICS_EVERY = 1.0  # seconds
STALL = 10.0  # seconds a function may hold the loop when requests have no deadline; else their deadline

Answer = Callable[[Execution, list[bytes]], Coroutine[None, None, bytes]]


class Worker:
    """Built from HELLO; `handle` runs in the reading thread, coroutines in the loop."""

    def __init__(self, link: Link, hello: Frame) -> None:
        protocol, node, role, clustered, _port, *config = _texts(hello)
        if protocol != str(frames.VERSION):
            raise MalformedFrame(f"HELLO of protocol {protocol}, wanted {frames.VERSION}; build module and worker anew")
        settings = {name.lower(): value for name, value in zip(config[::2], config[1::2], strict=True)}
        stall = int(settings.get("timeout", "0")) / 1000 or STALL
        calls, threads, statistics = Calls(link), Threads(stall), Statistics()
        self._shard = Shard(
            link=link,
            calls=calls,
            threads=threads,
            cluster=Cluster(calls, node, clustered == "1", role),
            models=Models(link, statistics, int(settings.get("threads", "1"))),
            registrations=Registrations(),
            watches=Watches(link, threads),
            statistics=statistics,
            config=settings,
        )
        self._sessions = Sessions(self._shard)
        self._commands = Commands(self._shard, self._sessions)
        self._events = Events(self._shard, self._commands)
        self._running: dict[int, Execution] = {}  # requests and misses by frame id; loop's thread
        sys.modules["redisAI"] = redis_ai.module(self._shard)
        threads.start()

    def handle(self, frame: Frame) -> None:
        """Raises MalformedFrame."""
        shard, spawn = self._shard, self._shard.threads.spawn
        match frame.type:
            case Type.CALLED:
                shard.calls.called(frame)
            case Type.EXECUTE:
                shard.models.execute(frame)
            case Type.EVENT:
                self._event(*_texts(frame))
            case Type.REQUEST | Type.MISS:
                user, *words = frame.items()
                if len(words) < (1 if frame.type is Type.REQUEST else 3):
                    raise MalformedFrame(f"{frame.type.name} of {len(words) + 1} items")
                answer = self._request if frame.type is Type.REQUEST else self._miss
                spawn(self._answer(frame.id, answer, user.decode("utf-8", "surrogateescape"), words))
            case Type.CANCEL:
                shard.models.cancel(frame.id)
                shard.threads.loop.call_soon_threadsafe(self._cancel, frame.id)
            case Type.MODELLOAD:
                shard.models.load(frame)
            case Type.MODELDROP:
                shard.models.drop(frame)
            case Type.SESSION:
                id, owner, code, count, *ids = _texts(frame)
                if int(count) != len(ids):
                    raise MalformedFrame(f"SESSION {id} says {count} registrations and names {len(ids)}")
                spawn(self._sessions.replay(id, owner, code, ids))
            case Type.START:
                spawn(self._start())
            case Type.ROLE:
                (shard.cluster.role,) = _texts(frame)
            case Type.RESYNC:
                (reason,) = _texts(frame)
                shard.threads.loop.call_soon_threadsafe(shard.watches.resync, reason)
            case _:
                raise MalformedFrame(f"{frame.type.name} is not for the worker")

    async def _start(self) -> None:
        shard = self._shard
        await self._sessions.replayed()
        await asyncio.to_thread(shard.models.wait_settled)
        versions = [str(frames.VERSION), str(os.getpid()), platform.python_version(), *backend.versions()]
        gc.freeze()  # what start and replays made stays: no collection walks through it again
        shard.link.send_list(Type.READY, 0, versions)
        shard.watches.start()
        shard.threads.task(shard.cluster.keep_fresh())
        shard.threads.task(self._send_statistics())

    async def _answer(self, id: int, answer: Answer, user: str, words: list[bytes]) -> None:
        """A request or miss from its frame to its REPLY."""
        execution = Execution(self._shard.threads, user)
        execution.task = asyncio.current_task()
        self._running[id] = execution
        enter(execution)
        try:
            reply = await answer(execution, words)
        except asyncio.CancelledError:
            reply = resp.error(describe(Cancelled()))
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
            reply = resp.error(describe(error))
        finally:
            del self._running[id]
        try:
            self._shard.link.send(Type.REPLY, id, reply)
        except frames.PayloadTooLarge as error:
            self._shard.link.send(Type.REPLY, id, resp.error(f"ERR {error}"))

    async def _request(self, execution: Execution, words: list[bytes]) -> bytes:
        """REQUEST: command, argument…"""
        self._shard.statistics.add("requests")
        name = words[0].decode("utf-8", "replace").upper()
        if name != "RG.PYEXECUTE":  # its own reply can't be overridden
            execution.command = text(words)
        return await self._commands.run(execution, name, words[1:])

    async def _miss(self, execution: Execution, words: list[bytes]) -> bytes:
        """MISS: registration id, key, command, argument…"""
        self._shard.statistics.add("misses")
        id, key, execution.command = words[0].decode(), text(words[1]), text(words[2:])
        registration = self._shard.registrations.get(id)
        if registration is None:
            why = self._sessions.why_inactive(id)
            return resp.NIL if why is None else resp.error(f"ERR registration {id} is not active: {why}")
        execution.user = registration.user
        record = {"key": key, "value": None, "type": None, "event": "keymiss"}
        if await self._commands.run_registration(execution, registration, record) is None:
            return resp.error(execution.errors[0])
        return resp.NIL if execution.reply is Unset.UNSET else resp.encode(execution.reply)

    def _event(self, target: str, event: str, key: str, type: str) -> None:
        if target == WATCH:
            self._shard.watches.event(KeyEvent(event, key, type))
        else:
            self._shard.threads.loop.call_soon_threadsafe(self._registered_event, target, Happened(event, key, type))

    def _registered_event(self, target: str, happened: Happened) -> None:
        registration = self._shard.registrations.get(target)
        if registration is not None:  # else unregistered meanwhile
            self._events.push(registration, happened)

    def _cancel(self, id: int) -> None:
        execution = self._running.get(id)
        if execution is not None:
            execution.cancel()

    async def _send_statistics(self) -> None:
        shard = self._shard
        while True:
            shard.statistics.set("functions_running", len(self._running))
            shard.statistics.set("events_queued", self._events.queued())
            shard.statistics.set("models_queued", shard.models.queued())
            changes = shard.statistics.changes()
            if changes:
                shard.link.send_list(Type.STATS, 0, changes)
            await asyncio.sleep(STATISTICS_EVERY)


def _texts(frame: Frame) -> list[str]:
    """The items as text; bytes that are not UTF-8 become surrogates, so that keys survive."""
    return [item.decode("utf-8", "surrogateescape") for item in frame.items()]
