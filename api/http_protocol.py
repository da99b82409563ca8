"""The bytes of HTTP/1.1: what is no request gets a problem and is closed, and no client makes it wait or grow.

The parser is llhttp's, as uvicorn runs it. What it lets pass and no handler may see is refused here; heads, trailers,
extensions of chunks and replies are bounded in size and time (bodies are by `limits`), connections by
`connection_limits`.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import httptools
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from shardqa.api import problems
from shardqa.api.connection_limits import limits_of_process, owner_of
from shardqa.api.faults import BadHttp, HeadTooLarge, SlowHead, TooManyConnections, UrlTooLong
from shardqa.errors import ShardqaError

MAX_URL = 16_384  # bytes: a question of 2,000 characters, percent-encoded, in an address
MAX_HEAD = 65_536  # bytes of a request's line and headers; of all that comes between two parts of a body, too
MAX_HEADERS = 128
HEALTH = b"/healthz"  # asked for by who would restart a server that does not answer
PIPELINED = 32  # requests of one connection that wait for the one before them
HEAD_SECONDS = 10.0  # for a whole head: many round trips of the slowest link
UNREAD_SECONDS = 35.0  # for the last part of a reply; longer than `limits` waits for the parts before it
LINGER_SECONDS = 2.0  # for a refused client, which may still write, to read why: closing at once would reset


class _Deadline:
    timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float, act: Callable[[], None]) -> None:
        self.stop()
        self.timer = asyncio.get_running_loop().call_later(seconds, act)

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class HttpProtocol(HttpToolsProtocol):
    """Bounds heads, replies and time of uvicorn's protocol."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.owner = ""
        self._limits = limits_of_process()
        self._left = False
        self._is_spare = False  # there is no room for it, save to ask for health
        self._in_head = True  # False from a head's end to its body's
        self._unparsed = 0  # bytes that came since a head or a part of a body was whole
        self._active: RequestResponseCycle | None = None  # the request that is served; `cycle` is the newest
        self._fault: ShardqaError | None = None  # after which nothing more is parsed
        self._head_deadline, self._unread_deadline = _Deadline(), _Deadline()

    # ---- connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.owner = owner_of(self.client[0]) if self.client else ""
        self._wait_for_head()
        self._is_spare = not self._limits.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        if self._active is not None:  # uvicorn tells the newest only
            self._active.disconnected = True
            self._active.message_event.set()
        super().connection_lost(exc)

    def cut(self) -> None:
        """Closes the connection at once: another one needs its place."""
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        self._head_deadline.stop()
        self._unread_deadline.stop()
        if not self._left:
            self._left = True
            self._limits.leave(self)

    def _note_who_waits(self) -> None:
        if self._left:
            return
        active = self._active
        is_working = active is not None and not (active.response_complete or active.more_body)
        if is_working and not self.flow.write_paused:
            self._limits.serves(self)
        else:
            self._limits.waits(self)

    # ---- what comes

    def data_received(self, data: bytes) -> None:
        if self._left or self._fault is not None or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._unparsed += len(data)
        if self._in_head and self._head_deadline.timer is None:
            self._wait_for_head()
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            fault = error.__context__
            self._refuse(fault if isinstance(fault, ShardqaError) else BadHttp("what came is not HTTP/1.1"))
        else:
            if self._unparsed > MAX_HEAD:
                self._refuse(_head_too_large(f"more than {MAX_HEAD:,} bytes"))

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offered:  # to another protocol, which HTTP lets us ignore
                data = data[offered.args[0] :]

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_URL:
            raise UrlTooLong(f"the address has more than {MAX_URL:,} bytes; POST /v1/ask takes the question in a body")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: nobody asked for it, and what was judged by its headers must not change
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            raise _head_too_large(f"more than {MAX_HEADERS} headers")

    def on_headers_complete(self) -> None:
        if self._is_spare and self.url != HEALTH:
            raise TooManyConnections("this process serves as many connections as it may; try again later")
        _check_head(self.url, self.headers, self.parser.get_http_version())
        if len(self.pipeline) >= PIPELINED:
            raise BadHttp(f"more than {PIPELINED} requests wait on this connection; wait for replies in between")
        self._head_deadline.stop()
        self._in_head, self._unparsed = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)
        self._note_who_waits()

    def on_message_complete(self) -> None:
        self._in_head, self._unparsed = True, 0
        self._head_deadline.stop()
        super().on_message_complete()
        self._note_who_waits()

    # ---- what goes

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:  # type: ignore[override]
        self._active = cycle
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_who_waits()
        if self.transport.is_closing():
            self._unread_deadline.set(UNREAD_SECONDS, self.transport.abort)
        elif self._active is None or not self._active.response_complete:
            return
        elif self._fault is not None:
            self._reply_and_end()
        elif not self._in_head:
            self._wait_for_head()  # the rest of a body that nobody reads has as long

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_deadline.set(UNREAD_SECONDS, self.transport.abort)
        self._note_who_waits()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_deadline.stop()
        self._note_who_waits()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    # ---- time

    def _wait_for_head(self) -> None:
        self._head_deadline.set(HEAD_SECONDS, self._late)

    def _late(self) -> None:
        if self._in_head and self._unparsed:
            self._refuse(SlowHead(f"the request's head did not come within {HEAD_SECONDS:g} s"))
        else:
            self._close()  # nothing was asked, or it has its reply

    # ---- ends

    def _refuse(self, fault: ShardqaError) -> None:
        """Ends the connection with a problem, which comes after the replies to the requests before it."""
        self._head_deadline.stop()
        self._fault = fault
        active = self._active
        if not self._in_head and self.cycle is not active:
            self.pipeline.popleft()  # the newest: it is the one at fault
        elif not self._in_head and active is not None:
            active.disconnected = True
            active.message_event.set()
            if active.response_started:
                self._close()
                return
        if active is None or active.response_complete or active.disconnected:
            self._reply_and_end()

    def _reply_and_end(self) -> None:
        assert self._fault is not None
        body = problems.of(self._fault, str(uuid.uuid4())).model_dump_json(exclude_none=True).encode()
        self.transport.write(
            b"%scontent-type: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
            % (STATUS_LINE[self._fault.status], problems.MEDIA_TYPE.encode(), len(body), body)
        )
        self._note_who_waits()
        self._unset_keepalive_if_required()
        self.flow.resume_reading()  # to see that the client closes
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._unread_deadline.set(LINGER_SECONDS, self.transport.abort)

    def _close(self) -> None:
        """Closes the connection once the client has read what was written, or has not for long."""
        self.transport.close()
        self._unread_deadline.set(UNREAD_SECONDS, self.transport.abort)


def _check_head(url: bytes, headers: Sequence[tuple[bytes, bytes]], version: str) -> None:
    """Raises BadHttp, HeadTooLarge."""
    size = len(url) + sum(len(name) + len(value) for name, value in headers)
    if size > MAX_HEAD:
        raise _head_too_large(f"{size:,} bytes")
    if version not in ("1.0", "1.1"):
        raise BadHttp(f"the request is of HTTP/{version}; this server takes 1.1 and 1.0")
    if (not url.startswith(b"/") and url != b"*") or b"#" in url:
        raise BadHttp("the request's target must be a path that starts with '/', without a server and a fragment")
    hosts = sum(name == b"host" for name, _ in headers)
    if hosts != 1 and (hosts or version == "1.1"):
        raise BadHttp(f"the request has {hosts} headers Host, and exactly one is wanted")
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if codings and (version == "1.0" or [value.lower() for value in codings] != [b"chunked"]):
        raise BadHttp("the only Transfer-Encoding taken is chunked, once, in HTTP/1.1")


def _head_too_large(size: str) -> HeadTooLarge:
    return HeadTooLarge(f"the head has {size}, at most {MAX_HEAD:,} bytes and {MAX_HEADERS} headers are taken")
