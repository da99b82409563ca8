"""Bounds connections: their number, their number per address, and size and time of a request's head.

uvicorn bounds none of this. What waits for the head of a request (new connections, kept ones, heads that stay
unfinished) holds a place only until somebody else needs it: the one that has waited longest goes, first of the same
address, then of all. So a new connection always gets in, and with it /healthz, whoever holds thousands open; what is
being served is never cut. One ConnectionLimits a process, on the event loop's only thread.
"""

import asyncio
import logging
import resource
import uuid
from functools import cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from shardqa.api import problems
from shardqa.api.faults import BadHttp, HeadTooLarge, SlowHead, TooManyConnections, UrlTooLong
from shardqa.config import Settings
from shardqa.errors import ShardqaError

MAX_URL = 16_384  # bytes: a question of 2,000 characters, percent-encoded, in an address
MAX_HEAD = 65_536  # bytes of a request's line and headers
MAX_HEADERS = 128
PIPELINED = 32  # requests of one connection that wait for the one before them
OTHER_FILES = 128  # descriptors left for Redis, files and the log
SPARE = 32  # connections above the bound while nothing waits: they are told so

log = logging.getLogger("shardqa.api")


class ConnectionLimits:
    def __init__(self, connections: int, per_address: int, head_seconds: float) -> None:
        self.head_seconds = head_seconds
        self._connections = connections
        self._per_address = per_address
        self._addresses: dict[str, int] = {}  # connections by address
        self._count = 0
        # Those that wait for a head, longest first; of all and by address. A dict is an ordered set.
        self._waiting: dict[Bounded, None] = {}
        self._waiting_of: dict[str, dict[Bounded, None]] = {}

    def enter(self, connection: "Bounded") -> bool:
        """A new connection. False where there is no room, even after idle ones were closed."""
        address = connection.address
        self._count += 1
        self._addresses[address] = self._addresses.get(address, 0) + 1
        self.waits(connection)
        if self._addresses[address] > self._per_address:
            self._close_oldest(self._waiting_of[address])
        if self._count > self._connections:
            self._close_oldest(self._waiting)
        return self._count <= self._connections + SPARE and self._addresses[address] <= self._per_address + SPARE

    def leave(self, connection: "Bounded") -> None:
        address = connection.address
        self._count -= 1
        self._addresses[address] -= 1
        self.serves(connection)
        if not self._addresses[address]:
            del self._addresses[address]
            self._waiting_of.pop(address, None)

    def waits(self, connection: "Bounded") -> None:
        """The connection waits for the head of a request."""
        self._waiting[connection] = None
        self._waiting_of.setdefault(connection.address, {})[connection] = None

    def serves(self, connection: "Bounded") -> None:
        """The connection has a request that is served, or is closing."""
        self._waiting.pop(connection, None)
        self._waiting_of.get(connection.address, {}).pop(connection, None)

    def _close_oldest(self, waiting: "dict[Bounded, None]") -> None:
        """Closes the one that has waited longest; never the newest, which is at the end."""
        if len(waiting) > 1:
            next(iter(waiting)).cut()


@cache
def limits_of_process() -> ConnectionLimits:
    """Those of this process: what the settings say, fewer connections where descriptors are few."""
    settings = Settings()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.http_connections + SPARE + OTHER_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = max(soft - SPARE - OTHER_FILES, SPARE)
    if room < settings.http_connections:
        log.warning(
            "%d connections at once rather than %d: this process may open %d files",
            room,
            settings.http_connections,
            soft,
        )
    return ConnectionLimits(
        min(settings.http_connections, room), settings.http_connections_per_address, settings.http_head_seconds
    )


class _Refused(Exception):
    def __init__(self, fault: ShardqaError) -> None:
        self.fault = fault


class Bounded(HttpToolsProtocol):
    """uvicorn's protocol, bounded."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.address = ""
        self._limits = limits_of_process()
        self._left = False
        self._is_waiting = True  # for a head; False while a request is served
        self._head = 0  # bytes received while waiting
        self._timer: asyncio.TimerHandle | None = None
        self._fault: ShardqaError | None = None

    # ---- connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._wait_for_head()
        if not self._limits.enter(self):
            self._refuse(TooManyConnections("this process serves as many connections as it may; try again later"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)

    def cut(self) -> None:
        """Closes it at once, since another connection needs its descriptor."""
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        self._stop_timer()
        if not self._left:
            self._left = True
            self._limits.leave(self)

    # ---- heads

    def data_received(self, data: bytes) -> None:
        if self._left or self.transport.is_closing():
            return
        if self._is_waiting:
            self._head += len(data)
            if self._timer is None:
                self._wait_for_head()
        super().data_received(data)
        if self._is_waiting and self._head > MAX_HEAD and not self.transport.is_closing():
            self._refuse(_head_too_large(f"more than {MAX_HEAD:,} bytes"))

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_URL:
            self._end(
                UrlTooLong(f"the address has more than {MAX_URL:,} bytes; POST /v1/ask takes the question in its body")
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._end(_head_too_large(f"more than {MAX_HEADERS} headers"))

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MAX_HEAD:
            self._end(_head_too_large(f"{size:,} bytes"))
        if len(self.pipeline) >= PIPELINED:
            self._end(BadHttp(f"more than {PIPELINED} requests wait on this connection; wait for replies in between"))
        self._stop_timer()
        self._is_waiting = False
        self._limits.serves(self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._left and not self.pipeline and (self.cycle is None or self.cycle.response_complete):
            self._is_waiting, self._head = True, 0
            self._limits.waits(self)

    # ---- time

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self._limits.head_seconds, self._late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if self._head:
            self._refuse(SlowHead(f"the request's head did not come within {self._limits.head_seconds:g} s"))
        else:
            self.transport.close()  # nothing was asked

    # ---- refusals

    def _end(self, fault: ShardqaError) -> None:
        """Out of a callback of the parser, which turns any exception into `send_400_response`."""
        self._fault = self._fault or fault
        raise _Refused(fault)

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._fault or BadHttp("what came is not HTTP/1.1; the connection is closed"))

    def _refuse(self, fault: ShardqaError) -> None:
        """Replies with a problem and closes; behind replies that are under way there is no place for it."""
        self._stop_timer()
        if self.cycle is None or self.cycle.response_complete:
            body = problems.of(fault, str(uuid.uuid4())).model_dump_json(exclude_none=True).encode()
            self.transport.write(
                b"%scontent-type: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
                % (STATUS_LINE[fault.status], problems.MEDIA_TYPE.encode(), len(body), body)
            )
        self.transport.close()


def _head_too_large(met: str) -> HeadTooLarge:
    return HeadTooLarge(f"the request's head has {met}, at most {MAX_HEAD:,} bytes and {MAX_HEADERS} headers are taken")
