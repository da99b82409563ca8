"""Against DNS rebinding and writes from other sites: Host and Origin.

A page on the web can make a browser send requests to addresses behind a firewall, and by rebinding its own name to
127.0.0.1 it can read the replies too. Its name then stands in Host. So the API answers under names it knows only:
localhost, addresses (which nobody can rebind), and those of SHARDQA_HTTP_HOSTS.
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from shardqa.api import problems
from shardqa.api.faults import WrongHost, WrongOrigin

READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Hosts:
    def __init__(self, names: Iterable[str]) -> None:
        """`names`: host names besides localhost and addresses, without ports; `*` for any."""
        self._names = frozenset(name.lower() for name in names)

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
                f"a page of {problems.shown(origin)!r} may not write here; name its host in SHARDQA_HTTP_HOSTS"
            )

    def _is_known(self, host: str) -> bool:
        name = _name(host)
        return (
            name == "localhost"
            or name.endswith(".localhost")
            or _is_address(name)
            or name in self._names
            or "*" in self._names
        )

    def _is_ours(self, origin: str, hosts: list[str]) -> bool:
        """Whether the page is of this very server or of a named host: another port of localhost is another program."""
        try:
            place = urlsplit(origin).netloc.lower()
        except ValueError:
            return False
        return place in [host.lower() for host in hosts] or _name(place) in self._names or "*" in self._names


def _name(host: str) -> str:
    """Without port and brackets."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or not port.isdigit():
        name = host.lower()
    return name.removeprefix("[").removesuffix("]").removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
