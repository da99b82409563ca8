"""Limits of one process: requests at once, and bytes of their bodies and of replies that nobody reads.

On the event loop's only thread, so its counters need no lock. A body is read here, whole and bounded in size, time and
sum, before the request takes its place: a slow upload holds bytes of the budget, never a
place, and neither does a client that is slow to read its reply. What is refused is refused at once; nothing queues.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shardqa.api import problems
from shardqa.api.connection_limits import owner_of
from shardqa.api.faults import BodyTooLarge, ClientLeft, ClientStalled, EncodedBody, SlowBody
from shardqa.api.metrics import Metrics
from shardqa.errors import ShardqaError, TooManyRequests

MIB = 1024 * 1024
MAX_DOCUMENTS_BODY = 64 * MIB  # of POST /v1/documents: one document of the largest size, with JSON's escapes
MAX_BODY = 2 * MIB  # of everything else; room for a 1 MB question to get its own error
MAX_BODIES = 256 * MIB  # sum of all bodies held at once
MAX_BODIES_OF_OWNER = MAX_BODIES // 2  # of those from one address, so that it never shuts out another
BODY_PAUSE = 15.0  # seconds between two parts of a body
BODY_SECONDS = 120.0  # for a whole body: 64 MiB at 0.5 MiB/s
SEND_SECONDS = 30.0  # for one part of a reply, when the client does not read
SEND_PART = 64 * 1024  # bytes of a reply given to the server at once, which holds as many for each slow client
MAX_UNREAD = 64 * MIB  # of replies that clients have not read; past it the one that has waited longest is given up
MAX_UNREAD_OF_OWNER = MAX_UNREAD // 4  # of those to one address
DISCARDED = 16 * MIB  # of a refused body, read so that a client that only writes then sees the reply
DISCARD_SECONDS = 2.0
DISCARD_PAUSE = 0.25  # seconds without a part after which the client is taken to wait for the reply


@dataclass(eq=False, slots=True)
class _Reply:
    """A part of a reply, while it is sent."""

    owner: str
    size: int
    until: asyncio.Timeout | None = None  # of the piece that the client has to take next

    def give_up(self) -> None:
        if self.until is not None and not self.until.expired():
            self.until.reschedule(0)


class SendDeadlines:
    """ASGI middleware: a client that does not read its reply is given up, at once where others' fill the memory."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._unread: dict[_Reply, None] = {}  # longest first; a dict is an ordered set

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, self._in_time(scope, send) if scope["type"] == "http" else send)

    def _in_time(self, scope: Scope, send: Send) -> Send:
        """Returns a `send` that gives up on a client which does not read.

        The server waits for the client before it takes the next part, never after the last: so large bodies go in
        parts.
        """
        owner = owner_of(scope["client"][0]) if scope["client"] else ""

        async def sent(message: Message) -> None:
            reply = _Reply(owner, len(message.get("body", b"")))
            self._unread[reply] = None
            self._make_room(owner)
            try:
                for part in _parts(message):
                    async with asyncio.timeout(SEND_SECONDS) as reply.until:  # wait_for makes a task of each
                        await send(part)
                    reply.size -= len(part.get("body", b""))
            except TimeoutError:
                raise ClientStalled from None
            finally:
                del self._unread[reply]

        return sent

    def _make_room(self, owner: str) -> None:
        for replies, most in (
            ([reply for reply in self._unread if reply.owner == owner], MAX_UNREAD_OF_OWNER),
            (list(self._unread), MAX_UNREAD),
        ):
            left = sum(reply.size for reply in replies)
            for reply in replies[:-1]:  # never the newest
                if left <= most:
                    break
                left -= reply.size
                reply.give_up()


class Limits:
    def __init__(self, concurrency: int, metrics: Metrics) -> None:
        self.concurrency = concurrency
        self.metrics = metrics
        self.serving = 0  # requests that hold a place
        self.body_bytes = 0  # of all bodies in memory
        self.body_bytes_of: dict[str, int] = {}  # by address

    async def serve(self, app: ASGIApp, most: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads the body (`most` bytes at most) and has `app` serve the request while it holds a place."""
        try:
            await self._serve(app, most, scope, receive, send)
        except _Refused as refused:
            self.metrics.rejected.labels(refused.fault.code).inc()
            await _discard(receive, refused.body_left)
            headers = {"Connection": "close"} if refused.body_left else {}
            await problems.reply(refused.fault, scope, headers=headers)(scope, receive, send)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Holds a place for a request whose body nobody reads. Raises TooManyRequests."""
        try:
            self._check_place(body_left=False)
        except _Refused as refused:
            self.metrics.rejected.labels(refused.fault.code).inc()
            raise refused.fault from None
        with self._held_place():
            yield

    async def _serve(self, app: ASGIApp, most: int, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        coding = headers.get("content-encoding", "identity").strip().lower()
        if has_body and coding != "identity":
            raise _Refused(EncodedBody(f"the body is encoded as {coding[:80]!r}; send it as it is"), body_left=True)
        self._check_place(body_left=has_body)
        with self._budget(scope) as budget:
            body = await self._read(receive, most, headers, budget) if has_body else b""
            self._check_place(body_left=False)
            with self._held_place():
                whole = {"type": "http.request", "body": body, "more_body": False}
                await app(scope, replayed(whole, receive), self._without_place(send))

    def _without_place(self, send: Send) -> Send:
        """Returns a `send` that lends the place to others while it waits for the client."""

        async def sent(message: Message) -> None:
            self.serving -= 1
            try:
                await send(message)
            finally:
                self.serving += 1

        return sent

    @contextmanager
    def _held_place(self) -> Iterator[None]:
        self.serving += 1
        try:
            yield
        finally:
            self.serving -= 1

    def _check_place(self, body_left: bool) -> None:
        if self.serving >= self.concurrency:
            raise _Refused(TooManyRequests(f"{self.serving} requests run, of {self.concurrency}"), body_left)

    @contextmanager
    def _budget(self, scope: Scope) -> Iterator["_Budget"]:
        client = scope["client"]
        budget = _Budget(self, owner_of(client[0]) if client else "")
        try:
            yield budget
        finally:
            budget.give_back()

    async def _read(self, receive: Receive, most: int, headers: Headers, budget: "_Budget") -> bytes:
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise _Refused(_too_large(f"{int(length):,}", most), body_left=True)
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    async with asyncio.timeout(BODY_PAUSE):
                        message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeft
                    part = message.get("body", b"")
                    if len(body) + len(part) > most:
                        raise _Refused(_too_large(f"more than {most:,}", most), message.get("more_body", False))
                    budget.take(len(part))
                    body += part
                    more = message.get("more_body", False)
        except TimeoutError:
            raise _Refused(
                SlowBody(
                    f"{len(body):,} bytes of the body came; the next must come within {BODY_PAUSE:g} s "
                    f"and all within {BODY_SECONDS:g} s"
                ),
                body_left=True,
            ) from None
        return bytes(body)


class _Budget:
    """The bytes of one request's body; they count in the process' sum and in that of its address."""

    def __init__(self, limits: Limits, owner: str) -> None:
        self.limits = limits
        self.owner = owner
        self.size = 0

    def take(self, size: int) -> None:
        of_all, of_owner = self.limits.body_bytes, self.limits.body_bytes_of.get(self.owner, 0)
        for total, most, whose in ((of_all, MAX_BODIES, "all"), (of_owner, MAX_BODIES_OF_OWNER, "your address'")):
            if total + size > most:
                raise _Refused(TooManyRequests(f"{whose} bodies take {total:,} bytes of {most:,}"), body_left=True)
        self.size += size
        self.limits.body_bytes = of_all + size
        self.limits.body_bytes_of[self.owner] = of_owner + size

    def give_back(self) -> None:
        self.limits.body_bytes -= self.size
        left = self.limits.body_bytes_of.pop(self.owner, 0) - self.size
        if left:
            self.limits.body_bytes_of[self.owner] = left


class _Refused(Exception):
    """The end of a request that does not reach the app: its problem."""

    def __init__(self, fault: ShardqaError, body_left: bool) -> None:
        self.fault = fault
        self.body_left = body_left  # the client may still be writing


def _too_large(size: str, most: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body has {size} bytes, and at most {most:,} are taken here")


def replayed(message: Message, receive: Receive) -> Receive:
    """Returns a `receive` that gives the message once, then the server's own: that the client left."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return message

    return replay


def _parts(message: Message) -> Iterator[Message]:
    body = message.get("body", b"")
    if len(body) <= SEND_PART:
        yield message
        return
    view = memoryview(body)
    for start in range(0, len(body), SEND_PART):
        more = start + SEND_PART < len(body) or message.get("more_body", False)
        yield {**message, "body": bytes(view[start : start + SEND_PART]), "more_body": more}


async def _discard(receive: Receive, body_left: bool) -> None:
    """Reads some of the body that a refused client still writes: closing at once would reset its reply, too."""
    size = 0
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while body_left and size < DISCARDED:
                message = await asyncio.wait_for(receive(), DISCARD_PAUSE)
                size += len(message.get("body", b""))
                body_left = message.get("more_body", False)
    except TimeoutError:
        return  # it stalls or waits: it gets the reply now
