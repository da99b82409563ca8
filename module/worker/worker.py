"""The leading thread's work: every frame to the part it concerns. Nothing here waits or computes."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import socket
import sys
import threading
from collections.abc import Callable, Coroutine

from shardqa.gears_functions.runtime import KeyEvent
from shardqa.module.worker import frames, resp
from shardqa.module.worker.activity import Activity
from shardqa.module.worker.ai import backend, redis_ai
from shardqa.module.worker.ai.models import Models
from shardqa.module.worker.calls import Calls, Rights, section
from shardqa.module.worker.frames import Frame, MalformedFrame, Type
from shardqa.module.worker.gears.cluster.new_masters import Newcomers
from shardqa.module.worker.gears.cluster.nodes import REFRESH, Cluster
from shardqa.module.worker.gears.commands.rg_commands import Commands
from shardqa.module.worker.gears.pipeline.readers import Happened, text
from shardqa.module.worker.gears.pipeline.run import Run, describe, enter
from shardqa.module.worker.gears.registry import redisgears_module, script_module, stored_registrations
from shardqa.module.worker.gears.registry.events import Events
from shardqa.module.worker.gears.registry.hooks import Hooks
from shardqa.module.worker.gears.registry.info_lines import Told
from shardqa.module.worker.gears.registry.misses import Misses
from shardqa.module.worker.gears.registry.prefix_watches import PROMOTED
from shardqa.module.worker.gears.registry.requirements import Requirements
from shardqa.module.worker.gears.registry.sessions import Sessions
from shardqa.module.worker.link import Link
from shardqa.module.worker.shard import Shard
from shardqa.module.worker.socket_threads import Work
from shardqa.module.worker.statistics import WorkerStatistics, allocated
from shardqa.module.worker.threads import Cancelled, Threads

WATCH = "watch"  # target of an EVENT that is for watches
STATISTICS_EVERY = 1.0  # seconds
STALL = 10.0  # seconds a function may hold the loop when requests have no deadline; else their deadline

ASKING = (
    Type.REQUEST,
    Type.SYNC,
    Type.MISS,
    Type.HOOK,
    Type.MODELLOAD,
    Type.EXECUTE,
    Type.SCRIPT,
    Type.DAG,
)  # a bad frame of these ends that request alone

FOR_ANOTHER = (b"RUN", b"READ", b"PREPARE", b"COMMIT")  # verbs of RG._PEER that name the user they are for

Answer = Callable[[Run, list[bytes]], Coroutine[None, None, bytes]]


class Worker:
    """Built from HELLO; `handle` runs in the thread that leads (socket_threads.py), coroutines in the loop."""

    def __init__(
        self, link: Link, hello: Frame, activity: Activity, confined: str, installer: socket.socket | None
    ) -> None:
        protocol, node, role, clustered, _port, *config = _texts(hello)
        if protocol != str(frames.VERSION):
            raise MalformedFrame(f"HELLO of protocol {protocol}, wanted {frames.VERSION}; build module and worker anew")
        settings = {name.lower(): value for name, value in zip(config[::2], config[1::2], strict=True)}
        stall = int(settings.get("timeout", "0")) / 1000 or STALL
        calls, threads, statistics = Calls(link), Threads(stall, activity), WorkerStatistics()
        cluster, computing = Cluster(calls, node, clustered == "1", role), threading.Lock()
        statistics.set("sandbox", confined)
        models = Models(
            link,
            statistics,
            activity,
            calls,
            int(settings.get("threads", "1")),
            limit=int(settings.get("execution_timeout", "0")) / 1000,
            runs=int(settings.get("threads_per_queue", "1")),
            computing=computing,
        )
        installing = Requirements(installer)
        self._shard = Shard.of(link, calls, threads, cluster, models, installing, statistics, settings)
        self._sessions = Sessions(self._shard)
        self._newcomers = Newcomers(self._shard, self._sessions)
        self._commands = Commands(self._shard, self._sessions, self._newcomers)
        self._hooks = Hooks(self._shard, self._sessions, self._commands)
        self._events = Events(self._shard, self._commands)
        self._told = Told(self._shard)
        self._running: dict[int, Run] = {}  # requests and misses by frame id; loop's thread
        finish, running = self._answered, self._running
        self._misses = Misses(self._shard, self._sessions, self._commands, running, computing, self._reply, finish)
        self._arrived: list[tuple[str, Happened]] = []  # events for the loop; of the thread that leads
        self._early: list[tuple[str, Happened]] = []  # events of registrations that a replay is about to bring back
        self._handlers: dict[Type, Callable[[Frame], Work | None]] = {
            Type.SESSION: self._handle_session,
            Type.START: self._handle_start,
            Type.REQUEST: self._handle_request,
            Type.SYNC: self._handle_sync,
            Type.MISS: self._handle_miss,
            Type.HOOK: self._handle_hook,
            Type.EVENT: self._handle_event,
            Type.MODELLOAD: self._shard.models.load,
            Type.MODELDROP: self._shard.models.drop,
            Type.EXECUTE: self._shard.models.execute,
            Type.SCRIPT: self._shard.models.script,
            Type.DAG: self._shard.models.graph,
            Type.CANCEL: self._handle_cancel,
            Type.CALLED: calls.called,
            Type.ROLE: self._handle_role,
            Type.RESYNC: self._handle_resync,
            Type.FORGET: self._handle_forget,
        }
        sys.modules["redisAI"] = redis_ai.module(self._shard)
        script_module.install()
        redisgears_module.install(self._shard)
        threads.start()

    def handle(self, frame: Frame) -> Work | None:
        """Returns what the thread is to compute once another one reads. Raises MalformedFrame."""
        if self._arrived and frame.type is not Type.EVENT:
            self.handled()
        handler = self._handlers.get(frame.type)
        if handler is None:
            raise MalformedFrame(f"{frame.type.name} is not for the worker")
        try:
            return handler(frame)
        except (MalformedFrame, ValueError, RuntimeError) as error:  # RuntimeError: no more threads
            if frame.type not in ASKING:
                raise
            self._shard.link.send(Type.REPLY, frame.id, resp.error(f"ERR the worker can't serve this request: {error}"))
            return None

    def handled(self) -> None:
        """What came together is handled: the loop gets the events of it in one go, and in their place."""
        if self._arrived:
            events, self._arrived = self._arrived, []
            self._shard.threads.loop.call_soon_threadsafe(self._registered_events, events)

    def _handle_request(self, frame: Frame) -> None:
        user, *words = frame.items()
        if not words:
            raise MalformedFrame("REQUEST without a command")
        self._shard.threads.spawn(self._answer(frame.id, self._request, user, words))

    def _handle_sync(self, frame: Frame) -> None:
        number, user, *words = frame.items()
        self._shard.threads.spawn(self._held(frame.id, int(number), user, words))

    async def _held(self, id: int, number: int, user: bytes, words: list[bytes]) -> None:
        """A trigger that a transaction or a script waits for: its commands are those of a section."""
        section.set(number)
        await self._answer(id, self._sync, user, words)

    async def _sync(self, run: Run, words: list[bytes]) -> bytes:
        run.holds = True
        return await self._request(run, words)

    def _handle_miss(self, frame: Frame) -> Work | None:
        user, *words = frame.items()
        if len(words) < 3:
            raise MalformedFrame(f"MISS of {len(words) + 1} items")
        run = self._run_of(frame.id, user, words)
        work = self._misses.claim(run, words)
        if work is None:
            self._shard.threads.spawn(self._answered(run, self._misses.answer(run, words)))
        return work

    def _handle_hook(self, frame: Frame) -> None:
        user, *words = frame.items()
        self._shard.threads.spawn(self._answer(frame.id, self._hooks.answer, user, words))

    def _handle_cancel(self, frame: Frame) -> None:
        self._shard.models.cancel(frame.id)
        self._shard.threads.loop.call_soon_threadsafe(self._cancel, frame.id)

    def _handle_session(self, frame: Frame) -> None:
        id, owner, code, count, *items = _texts(frame)
        try:
            registered = stored_registrations.parse(int(count), items)
        except ValueError as error:
            raise MalformedFrame(f"SESSION {id}: {error}") from None
        self._misses.forget_session(id)
        self._shard.threads.loop.call_soon_threadsafe(self._sessions.replay, frame.id, id, owner, code, registered)

    def _handle_forget(self, frame: Frame) -> None:
        (id,) = _texts(frame)
        self._misses.forget(id)
        self._shard.threads.spawn(self._sessions.forget_registration(id))

    def _handle_start(self, frame: Frame) -> None:
        self._shard.threads.spawn(self._start())

    def _handle_role(self, frame: Frame) -> None:
        before = self._shard.cluster.role
        (self._shard.cluster.role,) = _texts(frame)
        if before != "master" and self._shard.cluster.role == "master":
            self._shard.threads.loop.call_soon_threadsafe(self._commands.streams.begin_all)
            self._shard.watches.resync(PROMOTED)  # its predecessor may have died between an event and its effect

    def _handle_resync(self, frame: Frame) -> None:
        (reason,) = _texts(frame)
        self._shard.threads.loop.call_soon_threadsafe(self._commands.streams.begin_all)
        self._shard.watches.resync(reason)  # here, so that it keeps its place among the events

    def _handle_event(self, frame: Frame) -> None:
        target, event, key, type = _texts(frame)
        if target == WATCH:
            self._shard.watches.event(KeyEvent(event, key, type))
        else:
            self._arrived.append((target, Happened(event, key, type)))

    async def _start(self) -> None:
        shard = self._shard
        await self._sessions.replayed()
        await asyncio.to_thread(shard.models.wait_settled)
        versions = [str(frames.VERSION), str(os.getpid()), platform.python_version(), *backend.versions()]
        gc.freeze()  # what start and replays made stays: no collection walks through it again
        shard.link.send_list(Type.READY, 0, versions)
        shard.watches.start()
        self._commands.streams.begin_all()
        shard.threads.for_ever(self._refresh, REFRESH)
        shard.threads.for_ever(self._send_statistics, STATISTICS_EVERY)

    def _run_of(self, id: int, user: bytes, words: list[bytes]) -> Run:
        """Any thread: of a request or miss."""
        rights = Rights.of_request(id, user.decode("utf-8", "surrogateescape"))
        run = Run(self._shard.threads, rights)
        run.request = id
        run.name = f"{text(words[0])} of {rights.user}".encode("utf-8", "replace")
        run.on_progress = lambda: self._shard.link.send_list(Type.PROGRESS, id, ())
        return run

    async def _answer(self, id: int, answer: Answer, user: bytes, words: list[bytes]) -> None:
        """A request from its frame to its REPLY."""
        run = self._run_of(id, user, words)
        if answer == self._request and _outlasts_its_reply(words):
            run.on_release = lambda: self._shard.link.send_list(Type.RELEASE, id, ())
        await self._answered(run, answer(run, words))

    async def _answered(self, run: Run, answer: Coroutine[None, None, bytes]) -> None:
        """A request or miss from where it is to its REPLY."""
        id, run.task = run.request, asyncio.current_task()
        self._running[id] = run
        enter(run)
        try:
            reply = await answer
        except asyncio.CancelledError:
            reply = resp.error(describe(Cancelled()))
        except BaseException as error:  # noqa: BLE001 - sys.exit of a function must not end the worker
            reply = resp.error(describe(error))
        finally:
            del self._running[id]
        self._reply(id, reply)
        run.release()

    def _reply(self, id: int, reply: bytes) -> None:
        try:
            self._shard.link.send(Type.REPLY, id, reply)
        except frames.PayloadTooLarge as error:
            self._shard.link.send(Type.REPLY, id, resp.error(f"ERR {error}"))

    async def _request(self, run: Run, words: list[bytes]) -> bytes:
        """REQUEST: command, argument…"""
        self._shard.statistics.add("requests")
        name = words[0].decode("utf-8", "replace").upper()
        if name != "RG.PYEXECUTE":  # its own reply can't be overridden
            run.command = text(words)
        return await self._commands.run(run, name, words[1:])

    def _registered_events(self, events: list[tuple[str, Happened]]) -> None:
        for target, happened in events:
            self._registered_event(target, happened)

    def _registered_event(self, target: str, happened: Happened) -> None:
        if self._early or (self._sessions.replaying() and self._shard.registrations.get(target) is None):
            self._early.append((target, happened))
            if len(self._early) == 1:
                self._shard.threads.task(self._push_early())
        else:
            self._push_event(target, happened)

    async def _push_early(self) -> None:
        await self._sessions.settled(lambda: None)
        early, self._early = self._early, []
        for target, happened in early:
            self._push_event(target, happened)

    def _push_event(self, target: str, happened: Happened) -> None:
        registration = self._shard.registrations.get(target)
        if registration is not None:  # else unregistered meanwhile
            self._events.push(registration, happened)

    def _cancel(self, id: int) -> None:
        run = self._running.get(id)
        if run is not None:
            run.cancel()

    async def _refresh(self) -> None:
        await self._shard.cluster.refresh()
        await self._newcomers.look()

    async def _send_statistics(self) -> None:
        shard = self._shard
        shard.statistics.set("functions_running", len(self._running))
        shard.statistics.set("events_queued", self._events.queued())
        shard.statistics.set("models_queued", shard.models.queued())
        shard.statistics.set("allocated_mb", allocated() >> 20)
        self._told.tell()
        shard.models.send_runs()
        shard.models.tell()
        changes = shard.statistics.changes()
        if changes:
            shard.link.send_list(Type.STATS, 0, changes)


def _outlasts_its_reply(words: list[bytes]) -> bool:
    """Whether the module keeps the rights of a request until it is released: scripts, and what other shards' began."""
    name = words[0].upper()
    return name == b"RG.PYEXECUTE" or (name == b"RG._PEER" and len(words) >= 8 and words[3].upper() in FOR_ANOTHER)


def _texts(frame: Frame) -> list[str]:
    """The items as text; bytes that are not UTF-8 become surrogates, so that keys survive."""
    return [item.decode("utf-8", "surrogateescape") for item in frame.items()]
