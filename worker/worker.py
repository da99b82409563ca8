"""The leading thread's work: every frame to the part it concerns. Nothing here waits or computes."""

import asyncio
import gc
import os
import platform
import socket
import sys
import threading
from collections.abc import Callable, Coroutine

from shardqa.worker import frames, resp
from shardqa.worker.activity import Activity
from shardqa.worker.ai import backend, redis_ai
from shardqa.worker.ai.function_runs import FunctionRuns
from shardqa.worker.ai.models import Models
from shardqa.worker.calls import Calls, section
from shardqa.worker.config import WorkerConfig
from shardqa.worker.frames import Frame, MalformedFrame, Type
from shardqa.worker.gears.gears import Gears
from shardqa.worker.gears.interpreters.interpreter import Interpreters
from shardqa.worker.gears.pipeline import function_threads
from shardqa.worker.gears.pipeline.readers import text
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.registrations import stored_registrations
from shardqa.worker.gears.registrations.info_lines import InfoLines
from shardqa.worker.gears.registrations.prefix_watches import PROMOTED
from shardqa.worker.gears.sessions import redisgears_module, script_module
from shardqa.worker.gears.sessions.requirements import Requirements
from shardqa.worker.gears.sources.arrivals import Arrivals
from shardqa.worker.gears.sources.events import Events
from shardqa.worker.gears.sources.hooks import Hooks
from shardqa.worker.gears.sources.misses import Misses
from shardqa.worker.io import Io
from shardqa.worker.link import Link
from shardqa.worker.nodes import REFRESH, Cluster
from shardqa.worker.requests import Requests
from shardqa.worker.runtime import KeyEvent
from shardqa.worker.socket_threads import Work
from shardqa.worker.statistics import WorkerStatistics, allocated
from shardqa.worker.threads import Threads

WATCH = "watch"  # target of an EVENT that is for watches
MISS = b"shardqa.get"  # in a SYNC
STATISTICS_EVERY = 1.0  # seconds
FULL_COLLECTION = 100  # younger ones before it: it keeps the interpreter's lock for 0.1 s, and a document made 22

# a bad frame of these ends that request alone
ASKING = (Type.REQUEST, Type.SYNC, Type.MISS, Type.HOOK, Type.MODELLOAD, Type.EXECUTE, Type.SCRIPT, Type.DAG)
FOR_ANOTHER = (b"RUN", b"READ", b"PREPARE", b"COMMIT")  # verbs of RG._PEER that name the user they are for


class Worker:
    """The parts of a worker, built from HELLO; `handle` runs in the thread that leads, coroutines in the loop."""

    def __init__(
        self,
        link: Link,
        hello: Frame,
        activity: Activity,
        confined: str,
        installer: socket.socket | None,
        starter: socket.socket | None,
    ) -> None:
        config = WorkerConfig.of_hello(hello)
        self._link, self._calls, self._threads = link, Calls(link), Threads(config.stall, activity)
        self._statistics, computing = WorkerStatistics(), threading.Lock()
        self._statistics.set("sandbox", confined)
        self._cluster = Cluster(self._calls, config.node, config.clustered, config.role)
        self._functions = FunctionRuns(link, self._statistics, self._calls)
        self._models = Models(
            link,
            self._statistics,
            activity,
            self._functions,
            threads=config.model_threads,
            limit=config.model_seconds,
            runs=config.model_runs,
            computing=computing,
        )
        io = Io(link, self._calls, self._threads)
        requirements = Requirements(installer, Interpreters(starter, self._threads))
        gears = Gears(io, self._cluster, self._functions, requirements, self._statistics, config.arguments)
        self._gears, self._sessions, self._registry = gears, gears.sessions, gears.registry
        self._events = Events(io, gears.registry, gears.runs, gears.streams)
        self._hooks = Hooks(io, gears.inner, gears.sessions, gears.runs, self._events)
        self._info_lines = InfoLines(gears.registry, self._statistics)
        self._requests, registrations = Requests(link, self._threads, computing), gears.registry.registrations
        self._misses = Misses(registrations, gears.sessions, gears.runs, self._statistics, self._requests)
        self._arrivals = Arrivals(self._threads, registrations, gears.sessions, self._events)
        self.handled = self._arrivals.hand_over
        self._handlers = self._handler_table()
        sys.modules["redisAI"] = redis_ai.module(self._calls, self._threads, self._functions)
        script_module.install()
        redisgears_module.install(gears.host, gears.inner)
        function_threads.install()
        self._threads.start()

    def _handler_table(self) -> dict[Type, Callable[[Frame], Work | None]]:
        return {
            Type.SESSION: self._handle_session,
            Type.START: self._handle_start,
            Type.REQUEST: self._handle_request,
            Type.SYNC: self._handle_sync,
            Type.MISS: self._handle_miss,
            Type.HOOK: self._handle_hook,
            Type.EVENT: self._handle_event,
            Type.MODELLOAD: self._models.load,
            Type.MODELDROP: self._models.drop,
            Type.EXECUTE: self._models.execute,
            Type.SCRIPT: self._models.script,
            Type.DAG: self._models.graph,
            Type.CANCEL: self._handle_cancel,
            Type.CALLED: self._calls.called,
            Type.ROLE: self._handle_role,
            Type.RESYNC: self._handle_resync,
            Type.FORGET: self._handle_forget,
        }

    def handle(self, frame: Frame) -> Work | None:
        """Returns what the thread is to compute once another one reads. Raises MalformedFrame."""
        if frame.type is not Type.EVENT:
            self._arrivals.hand_over()
        handler = self._handlers.get(frame.type)
        if handler is None:
            raise MalformedFrame(f"{frame.type.name} is not for the worker")
        try:
            return handler(frame)
        except (MalformedFrame, ValueError, RuntimeError) as error:  # RuntimeError: no more threads
            if frame.type not in ASKING:
                raise
            self._link.send(Type.REPLY, frame.id, resp.error(f"ERR the worker can't serve this request: {error}"))
            return None

    def _handle_request(self, frame: Frame) -> None:
        user, *words = frame.items()
        if not words:
            raise MalformedFrame("REQUEST without a command")
        run, reply = self._request(frame.id, user, words)
        if _outlasts_its_reply(words):
            run.on_release = lambda: self._link.send_list(Type.RELEASE, frame.id, ())
        self._requests.spawn(run, reply)

    def _handle_sync(self, frame: Frame) -> None:
        """A trigger or a miss that a transaction or a script waits for: its commands are those of a section."""
        number, user, *words = frame.items()
        if words[0] == MISS:
            run = self._requests.run_of(frame.id, user, words)
            reply = self._misses.answer(run, [*words[1:], b"get", words[-1]])
        else:
            run, reply = self._request(frame.id, user, words)
        run.holds = True

        async def within_section() -> bytes:
            section.set(int(number))
            return await reply

        self._requests.spawn(run, within_section())

    def _request(self, id: int, user: bytes, words: list[bytes]) -> tuple[Run, Coroutine[None, None, bytes]]:
        """Returns the run of a command and its reply, to be awaited in the loop."""
        self._statistics.add("requests")
        run, name = self._requests.run_of(id, user, words), words[0].decode("utf-8", "replace").upper()
        if name != "RG.PYEXECUTE":  # its own reply can't be overridden
            run.command = text(words)
        return run, self._gears.commands.run(run, name, words[1:])

    def _handle_miss(self, frame: Frame) -> Work | None:
        user, *words = frame.items()
        if len(words) < 3:
            raise MalformedFrame(f"MISS of {len(words) + 1} items")
        run = self._requests.run_of(frame.id, user, words)
        work = self._misses.claim(run, words)
        if work is None:
            self._requests.spawn(run, self._misses.answer(run, words))
        return work

    def _handle_hook(self, frame: Frame) -> None:
        user, *words = frame.items()
        run = self._requests.run_of(frame.id, user, words)
        self._requests.spawn(run, self._hooks.answer(run, words))

    def _handle_cancel(self, frame: Frame) -> None:
        self._models.cancel(frame.id)
        self._threads.loop.call_soon_threadsafe(self._requests.cancel, frame.id)

    def _handle_session(self, frame: Frame) -> None:
        id, owner, code, count, *items = frame.texts()
        try:
            registrations = stored_registrations.parse(int(count), items)
        except ValueError as error:
            raise MalformedFrame(f"SESSION {id}: {error}") from None
        self._misses.forget_session(id)
        self._threads.loop.call_soon_threadsafe(self._sessions.replays.replay, frame.id, id, owner, code, registrations)

    def _handle_forget(self, frame: Frame) -> None:
        (id,) = frame.texts()
        self._misses.forget(id)
        self._threads.spawn(self._sessions.replays.forget_registration(id))

    def _handle_start(self, frame: Frame) -> None:
        self._threads.spawn(self._start())

    def _handle_role(self, frame: Frame) -> None:
        before = self._cluster.role
        (self._cluster.role,) = frame.texts()
        if before != "master" and self._cluster.role == "master":
            self._threads.loop.call_soon_threadsafe(self._gears.streams.begin_all)
            self._registry.watches.resync(PROMOTED)  # its predecessor may have died between an event and its effect

    def _handle_resync(self, frame: Frame) -> None:
        (reason,) = frame.texts()
        self._threads.loop.call_soon_threadsafe(self._gears.streams.begin_all)
        self._registry.watches.resync(reason)  # here, so that it keeps its place among the events

    def _handle_event(self, frame: Frame) -> None:
        target, event, key, type = frame.texts()
        if target == WATCH:
            self._registry.watches.event(KeyEvent(event, key, type))
        else:
            self._arrivals.add(target, KeyEvent(event, key, type, frame.id))

    async def _start(self) -> None:
        await self._sessions.replays.replayed()
        await asyncio.to_thread(self._functions.stored.wait_settled)
        versions = [str(frames.VERSION), str(os.getpid()), platform.python_version(), *backend.versions()]
        gc.freeze()  # what start and replays made stays: no collection walks through it again
        gc.enable()
        gc.set_threshold(*gc.get_threshold()[:2], FULL_COLLECTION)
        self._link.send_list(Type.READY, 0, versions)
        self._registry.watches.start()
        self._gears.streams.begin_all()
        self._threads.for_ever(self._refresh, REFRESH)
        self._threads.for_ever(self._send_statistics, STATISTICS_EVERY)

    async def _refresh(self) -> None:
        await self._cluster.refresh()
        await self._gears.new_masters.look()

    async def _send_statistics(self) -> None:
        statistics = self._statistics
        statistics.set("functions_running", len(self._requests.running))
        statistics.set("events_queued", self._events.queued())
        statistics.set("models_queued", self._models.queued())
        statistics.set("allocated_mb", allocated() >> 20)
        self._info_lines.update()
        self._functions.send()
        self._models.tell()
        changes = statistics.changes()
        if changes:
            self._link.send_list(Type.STATS, 0, changes)


def _outlasts_its_reply(words: list[bytes]) -> bool:
    """Whether the module keeps the rights of a request until it is released: scripts, and what other shards' began."""
    name = words[0].upper()
    return name == b"RG.PYEXECUTE" or (name == b"RG._PEER" and len(words) >= 8 and words[3].upper() in FOR_ANOTHER)
