"""Against DNS rebinding and writes from other sites: Host and Origin.

A page on the web can make a browser send requests to addresses behind a firewall, and by rebinding its own name to
127.0.0.1 it can read the replies too. Its name then stands in Host. So the API answers under names it knows only:
localhost, addresses (which nobody can rebind), and those of SHARDQA_HTTP_HOSTS.
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from shardqa.api import problems
from shardqa.api.faults import WrongHost, WrongOrigin

TAKEN = ("Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "If-Match")  # headers of pages
READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Hosts:
    def __init__(self, names: Iterable[str], origins: Iterable[str]) -> None:
        """Takes host `names` beside localhost and addresses, without ports (`*`: any), and `origins` of pages."""
        self._names = frozenset(name.lower() for name in names)
        self._origins = frozenset(origins)

    def check(self, scope: Scope) -> None:
        """Raises WrongHost, WrongOrigin."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) > 1 or not all(self._is_known(host) for host in hosts):
            raise WrongHost(
                f"this server does not answer under the name {problems.shown(', '.join(hosts))!r}; name it in "
                "SHARDQA_HTTP_HOSTS, or use its address"
            )
        if scope["method"] in READING:
            return
        if not all(self._is_ours(origin, hosts) for origin in headers.getlist("origin")):
            origin = ", ".join(headers.getlist("origin"))
            raise WrongOrigin(
                f"a page of {problems.shown(origin)!r} may not write here; name it in SHARDQA_HTTP_ORIGINS, or its "
                "host in SHARDQA_HTTP_HOSTS"
            )

    def _is_known(self, host: str) -> bool:
        name = _name(host)
        return f".{name}".endswith(".localhost") or _is_address(name) or not self._names.isdisjoint((name, "*"))

    def _is_ours(self, origin: str, hosts: list[str]) -> bool:
        """Returns whether the page is this server's or a named host's; another port of localhost is another program."""
        try:
            place = urlsplit(origin).netloc.lower()
        except ValueError:
            return False
        is_named = origin.lower() in self._origins or _name(place) in self._names or "*" in self._names
        return is_named or place in [host.lower() for host in hosts]


class CrossOrigin(CORSMiddleware):
    """CORS for named origins: their pages may read replies and send requests. A key travels in a header alone."""

    def __init__(self, app: ASGIApp, origins: list[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=TAKEN,
            expose_headers=("X-Request-Id", "Retry-After", "Location", "ETag", "RateLimit", "RateLimit-Policy"),
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        origin, method = (request_headers[name] for name in ("origin", "access-control-request-method"))
        return _Refusal(
            WrongOrigin(
                f"a page of {problems.shown(origin)!r} may not send {problems.shown(method)} with its headers; name it "
                f"in SHARDQA_HTTP_ORIGINS, and send {', '.join(TAKEN)} alone"
            )
        )


class _Refusal(Response):
    """A problem as a reply, written when Starlette sends it: only then the request is known."""

    def __init__(self, fault: WrongOrigin) -> None:
        super().__init__(status_code=fault.status)
        self._fault = fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await problems.reply(self._fault, scope)(scope, receive, send)


def _name(host: str) -> str:
    """Returns the host's name without port and brackets."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or not port.isdigit():
        name = host.lower()
    return name.removeprefix("[").removesuffix("]").removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        return "%" not in name and bool(ipaddress.ip_address(name))  # a zone may be any name
    except ValueError:
        return False
