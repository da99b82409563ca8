"""An event is in its registration's queue from its push until it is done, whoever has it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from shardqa.gears import local
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.sources.events import Events
from shardqa.worker.runtime import KeyEvent

SUSPENDED = "import asyncio\ndef f(r):\n    return asyncio.sleep(0)\n"
ASYNC = "import asyncio\nasync def f(r):\n    await asyncio.sleep(0)\n"
REGISTER = "GB().map(f).register('q:*', readValue=False, mode='async_local')"
EVENTS = 20  # more than may run at once


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
    shard = local.LocalShard()
    shard.run(code + REGISTER)
    gears = shard._gears
    (registration,) = gears.registry.registrations
    events = Events(shard._io, gears.registry, gears.runs, gears.streams)
    lost = shard._wait(looked_at(events, registration, shard._threads))
    assert len(lost) >= EVENTS
    assert max(lost) == 0
    assert registration.statistics.success == EVENTS
