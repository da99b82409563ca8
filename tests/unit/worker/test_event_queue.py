"""An event is in its registration's queue from its push until it is done, whoever has it."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, cast

import pytest

from shardqa.worker import frames, resp
from shardqa.worker.activity import Activity
from shardqa.worker.ai.function_runs import FunctionRuns
from shardqa.worker.calls import Calls, Rights
from shardqa.worker.frames import Frame, Type
from shardqa.worker.gears.gears import Gears
from shardqa.worker.gears.pipeline.run import Run, enter
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.sessions.requirements import Requirements
from shardqa.worker.gears.sessions.script import Script
from shardqa.worker.gears.sources.events import Events
from shardqa.worker.io import Io
from shardqa.worker.link import Link
from shardqa.worker.nodes import Cluster
from shardqa.worker.runtime import KeyEvent
from shardqa.worker.statistics import WorkerStatistics
from shardqa.worker.threads import Threads

SUSPENDED = "import asyncio\ndef f(r):\n    return asyncio.sleep(0)\n"
ASYNC = "import asyncio\nasync def f(r):\n    await asyncio.sleep(0)\n"
REGISTER = "GB().map(f).register('q:*', readValue=False, mode='async_local')"
EVENTS = 20  # more than may run at once
RIGHTS = Rights.of_request(1, "default")
STALL = 10.0  # seconds a function may compute
LIMITS = ("maxexecutions", "maxexecutionsperregistration", "executionmaxidletime", "profileexecutions")


class OkLink:
    """A module that answers each command with OK."""

    calls: Calls

    def send_list(self, type: Type, id: int, items: Iterable[bytes | str]) -> None:
        parts = [item.encode() if isinstance(item, str) else item for item in items]
        if type is Type.CALL:
            self.calls.called(Frame(Type.CALLED, id, resp.OK * int(parts[2])))

    def send(self, type: Type, id: int, payload: bytes) -> None:
        if type in (Type.LOCK, Type.UNLOCK):
            self.calls.called(Frame(Type.CALLED, id, resp.OK))
        elif type is Type.CALL:
            self.send_list(type, id, frames.unpack(payload))


def gears_on(io: Io) -> Gears:
    cluster = Cluster(io.calls, "0" * 40, False, "master")
    arguments = dict.fromkeys(LIMITS, "100")
    return Gears(io, cluster, cast(FunctionRuns, None), Requirements(None), WorkerStatistics(), arguments)


async def registered(gears: Gears, io: Io, code: str) -> Registration:
    run = Run(io.threads, RIGHTS)
    enter(run)
    session = await gears.sessions.execute(run, Script(code))
    await gears.distribution.register(session, None, run)
    return session.registrations[0]


async def looked_at(events: Events, registration: Registration, threads: Any) -> list[int]:
    """Events that are neither queued nor done, before each task of the loop begins its first step."""
    losses: list[int] = []
    empty, task = asyncio.Event(), threads.task

    def look() -> None:
        done = registration.statistics.success + registration.statistics.failures
        losses.append(EVENTS - done - events.queued())

    def over(_: Any) -> None:
        if events.queued() == 0:
            empty.set()

    def watched(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        threads.loop.call_soon(look)
        begun: asyncio.Task[Any] = task(coroutine)
        begun.add_done_callback(over)
        return begun

    threads.task = watched
    try:
        for number in range(EVENTS):
            events.push(registration, KeyEvent("set", f"q:{number}", "string"))
        await empty.wait()
    finally:
        del threads.task
    return losses


@pytest.mark.parametrize("code", [SUSPENDED, ASYNC], ids=["suspended", "async"])
def test_no_event_leaves_the_queue_before_it_is_done(code: str) -> None:
    link, activity = OkLink(), Activity()
    activity.start()
    threads = Threads(STALL, activity)
    threads.start()
    link.calls = Calls(cast(Link, link))
    io = Io(cast(Link, link), link.calls, threads)
    gears = gears_on(io)
    registration = threads.wait(registered(gears, io, code + REGISTER))
    events = Events(io, gears.registry, gears.runs, gears.streams)
    lost = threads.wait(looked_at(events, registration, threads))
    assert len(lost) >= EVENTS
    assert max(lost) == 0
    assert registration.statistics.success == EVENTS
