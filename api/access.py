"""The outermost ASGI middleware: request id, access log line, request metrics, security headers, unexpected exceptions.

One line per request: `POST /v1/ask 200 12.3 ms <id>`. The query is left out: it holds people's questions.
"""

import logging
import time
import uuid
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shardqa import request
from shardqa.api import problems
from shardqa.api.faults import ClientLeft, ClientStalled, InternalError
from shardqa.api.metrics import Metrics
from shardqa.engine import tracing

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
        request.current.set(request_id)
        scope.setdefault("state", {})["request_id"] = request_id
        status = problems.CLIENT_LEFT  # unless a reply starts
        start = time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [(b"x-request-id", request_id.encode()), *RAW_HEADERS, *_rate_limit(scope)]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        self.metrics.in_flight.inc()
        try:
            with tracing.served(f"{method} request", Headers(scope=scope)) as span:
                await self._catch(scope, receive, noted, lambda: status != problems.CLIENT_LEFT)
                if span is not None:
                    _describe(span, method, scope, status, request_id)
        finally:
            self.metrics.in_flight.dec()
            self._note(method, scope, status, time.perf_counter() - start)

    async def _catch(self, scope: Scope, receive: Receive, send: Send, has_started: Callable[[], bool]) -> None:
        try:
            await self.app(scope, receive, send)
        except (ClientLeft, ClientStalled):
            return
        except Exception:
            log.exception("request %s failed: %s %s", problems.request_id(scope), scope["method"], _path(scope))
            if has_started():
                raise  # the server cuts the connection: the client must not take half a reply for a whole one
            fault = InternalError("the server met an unexpected fault; its log has the cause under this instance")
            await problems.reply(fault, scope)(scope, receive, send)

    def _note(self, method: str, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "unmatched"
        self.metrics.requests.labels(method, route, str(status)).inc()
        path, ms, request_id = _path(scope), seconds * 1000, problems.request_id(scope)
        extra = {"method": method, "path": path, "status": status, "ms": round(ms, 1), "request": request_id}
        lines.info("%s %s %d %.1f ms %s", method, path, status, ms, request_id, extra=extra)


def _describe(span: Any, method: str, scope: Scope, status: int, request_id: str) -> None:
    """Gives the span OpenTelemetry's attributes of a request; without the path's own words and the query."""
    route = getattr(scope.get("route"), "path", None) or "unmatched"
    span.update_name(f"{method} {route}")
    attributes = {"http.request.method": method, "http.route": route, "http.response.status_code": status}
    span.set_attributes({**attributes, "shardqa.request": request_id})


def _rate_limit(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Returns the RateLimit headers of a key with a limit (draft-ietf-httpapi-ratelimit-headers)."""
    if (rate := scope["state"].get("rate_limit")) is None:
        return []
    per_minute, left = rate
    policy, state = f'"key";q={per_minute};w=60', f'"key";r={left}'
    return [(b"ratelimit-policy", policy.encode()), (b"ratelimit", state.encode())]


def _path(scope: Scope) -> str:
    """Returns the path as the client sent it (percent-encoded, so one line), cut to a bound."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode("ascii", "backslashreplace")
    path = raw.decode("ascii", "backslashreplace")
    return path if len(path) <= MAX_PATH else path[:MAX_PATH] + "…"
