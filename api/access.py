"""The outermost ASGI middleware: request id, access log line, request metrics, security headers, unexpected exceptions.

One line per request: `POST /v1/ask 200 12.3 ms <id>`. The query is left out: it holds people's questions.
"""

import logging
import time
import uuid
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shardqa.api import problems
from shardqa.api.faults import ClientLeft, ClientStalled, InternalError
from shardqa.api.metrics import Metrics

MAX_PATH = 200  # characters of a path in the log
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})  # label values; the rest is OTHER

# Documents are hostile: the page runs its own scripts only, loads nothing from elsewhere, and nobody frames it.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

lines = logging.getLogger("shardqa.api.access")
log = logging.getLogger("shardqa.api")


class Access:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        if method == "HEAD":
            scope = {**scope, "method": "GET"}  # of our copy only: the server, which sees HEAD, drops the body
        request_id = str(uuid.uuid4())
        scope.setdefault("state", {})["request_id"] = request_id
        status = problems.CLIENT_LEFT  # unless a reply starts
        started = time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    *RAW_HEADERS,
                ]
            await send(message)

        self.metrics.in_flight.inc()
        try:
            await self._catch(scope, receive, noted, lambda: status != problems.CLIENT_LEFT)
        finally:
            self.metrics.in_flight.dec()
            self._note(method, scope, status, time.perf_counter() - started)

    async def _catch(self, scope: Scope, receive: Receive, send: Send, started: Callable[[], bool]) -> None:
        try:
            await self.app(scope, receive, send)
        except (ClientLeft, ClientStalled):
            return
        except Exception:
            log.exception("request %s failed: %s %s", problems.request_id(scope), scope["method"], _path(scope))
            if started():
                raise  # the server cuts the connection: the client must not take half a reply for a whole one
            fault = InternalError("the server met an unexpected fault; its log has the cause under this instance")
            await problems.reply(fault, scope)(scope, receive, send)

    def _note(self, method: str, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "unmatched"
        self.metrics.requests.labels(method, route, str(status)).inc()
        lines.info("%s %s %d %.1f ms %s", method, _path(scope), status, seconds * 1000, problems.request_id(scope))


def _path(scope: Scope) -> str:
    """The path as it was sent (percent-encoded, so one line), cut to a bound."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode("ascii", "backslashreplace")
    path = raw.decode("ascii", "backslashreplace")
    return path if len(path) <= MAX_PATH else path[:MAX_PATH] + "…"
