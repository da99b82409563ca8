"""Replies that come piece by piece: an answer's steps as server-sent events, outcomes as lines of JSON."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Scope

EVENTS = "text/event-stream"
LINES = "application/x-ndjson"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # proxies must not hold back the first piece

Result = TypeVar("Result", bound=BaseModel)


def wanted(scope: Scope) -> bool:
    """Whether the client asks for events by its Accept header."""
    return any(EVENTS.encode() in value for name, value in scope["headers"] if name == b"accept")


def event(name: str, model: BaseModel) -> bytes:
    return f"event: {name}\ndata: {model.model_dump_json()}\n\n".encode()


async def steps(
    work: Callable[[Callable[[BaseModel], None]], Coroutine[Any, Any, Result]],
    conclude: Callable[[Result], bytes],
    explain: Callable[[Exception], bytes],
) -> StreamingResponse:
    """Sends an event for each step with which `work` calls its argument; `conclude` makes the last event of its result.

    A fault before the first step is raised; a later one, when the status is sent already, is `explain`'s event. The
    work ends when the client leaves.
    """
    queue: asyncio.Queue[BaseModel | None] = asyncio.Queue()
    working = asyncio.create_task(work(queue.put_nowait))
    working.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        first = await queue.get()
    except asyncio.CancelledError:
        working.cancel()
        raise
    if first is None:
        end = conclude(await working)
        return StreamingResponse(_once(end), media_type=EVENTS, headers=HEADERS)
    return StreamingResponse(_events(first, queue, working, conclude, explain), media_type=EVENTS, headers=HEADERS)


async def _once(piece: bytes) -> AsyncIterator[bytes]:
    yield piece


async def _events(
    step: BaseModel | None,
    queue: "asyncio.Queue[BaseModel | None]",
    working: asyncio.Task[Result],
    conclude: Callable[[Result], bytes],
    explain: Callable[[Exception], bytes],
) -> AsyncIterator[bytes]:
    try:
        while step is not None:
            yield event("step", step)
            step = await queue.get()
        try:
            last = conclude(await working)
        except Exception as error:  # noqa: BLE001 - the status is sent: whatever it is, the client is told here
            last = explain(error)
        yield last
    finally:
        working.cancel()
