"""Records on their way between the shards of one execution: inboxes, and the ways out to them.

A batch is sent when the one before it was taken, and an inbox that is full refuses it until there is room: so memory is
bounded on every shard, and a slow one slows the others down. A batch that waits holds no connection.
Loop's thread only.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Protocol

BATCH = 1000  # records sent at once
ROOM = 8 * BATCH  # records that may wait in one inbox
PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # seconds before a refused batch is offered again; the last repeats

TAKEN, FULL, UNKNOWN = 1, 0, -1  # what a shard says to a batch
UNKNOWN_FOR = 10.0  # seconds in which a shard may not have heard of the execution yet

Send = Callable[[bool, list[Any]], Awaitable[int]]  # (the last batch, records) -> TAKEN, FULL or UNKNOWN


class Out(Protocol):
    """The way of records to one inbox."""

    async def put(self, records: list[Any]) -> None: ...

    async def close(self) -> None: ...


class Inbox:
    """The records that all shards send to one stage of this one."""

    def __init__(self, sources: Iterable[str]) -> None:
        self._open = set(sources)  # node ids that still send
        self._batches: deque[list[Any]] = deque()
        self._records = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()

    def is_full(self) -> bool:
        return self._records >= ROOM

    def put(self, source: str, records: list[Any], last: bool) -> None:
        if records:
            self._batches.append(records)
            self._records += len(records)
        if last:
            self._open.discard(source)
        self._changed.set()

    def end(self, source: str) -> None:
        """Notes that no more records come from this source."""
        self._open.discard(source)
        self._changed.set()

    async def batches(self) -> AsyncIterator[list[Any]]:
        while True:
            while self._batches:
                batch = self._batches.popleft()
                self._records -= len(batch)
                self._room.set()
                yield batch
            if not self._open:
                return
            self._changed.clear()
            await self._changed.wait()

    async def wait_for_room(self) -> None:
        while self.is_full():
            self._room.clear()
            await self._room.wait()


class Near:
    """The way to an inbox of this shard."""

    def __init__(self, inbox: Inbox, source: str) -> None:
        self._inbox = inbox
        self._source = source

    async def put(self, records: list[Any]) -> None:
        await self._inbox.wait_for_room()
        self._inbox.put(self._source, records, last=False)

    async def close(self) -> None:
        self._inbox.end(self._source)


class Far:
    """The way to an inbox of another shard; ends where `lost()` says between tries that the shard left."""

    def __init__(self, send: Send, has_left: Callable[[], bool], on_fault: Callable[[BaseException], None]) -> None:
        self._send = send
        self._lost = has_left
        self._failed = on_fault
        self._collected: list[Any] = []
        self._sending: asyncio.Task[None] | None = None  # one batch is on its way while the next is filled

    async def put(self, records: list[Any]) -> None:
        self._collected += records
        if len(self._collected) >= BATCH:
            await self._flush(last=False)

    async def close(self) -> None:
        await self._flush(last=True)
        await self._sent()

    async def cancel(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _flush(self, last: bool) -> None:
        await self._sent()
        records, self._collected = self._collected, []
        self._sending = asyncio.create_task(self._deliver(last, records))

    async def _sent(self) -> None:
        if self._sending is not None:
            await self._sending

    async def _deliver(self, last: bool, records: list[Any]) -> None:
        unknown_until = asyncio.get_running_loop().time() + UNKNOWN_FOR
        tries = 0
        while not self._lost():
            try:
                verdict = await self._send(last, records)
            except Exception as error:  # noqa: BLE001 - what a record's own pickling raises, or the connection
                self._failed(error)
                return
            if verdict == TAKEN:
                return
            if verdict == UNKNOWN and asyncio.get_running_loop().time() > unknown_until:
                self._failed(RuntimeError("a shard does not know this execution; its worker was started anew"))
                return
            await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
            tries += 1
