"""Bounds connections: their number, and their number per address.

uvicorn bounds none of this. What waits for its client (new connections, kept ones, handshakes, heads and bodies that
have not all come, replies that are not read) holds a place only until somebody else needs it: the one that has waited
longest goes, first of the same address, then of all. So a new connection always gets in, and with it /healthz, whoever
holds thousands open; what the app works on is never cut. One ConnectionLimits a process, on the event loop's only
thread.
"""

import ipaddress
import logging
import resource
from functools import cache
from typing import Protocol

CONNECTIONS = 2_048  # of one process: some 20 KB each, and as many descriptors
PER_ADDRESS = 512  # of those; a proxy, whose users are all of one address, keeps far fewer open
OTHER_FILES = 128  # descriptors left for Redis, files and the log
SPARE = 32  # connections above a bound while nothing waits: they are told so

log = logging.getLogger("shardqa.api")


class Bounded(Protocol):
    """A connection: `owner` is the name its address counts under; `cut` closes it at once and gives its place back."""

    owner: str

    def cut(self) -> None: ...


class ConnectionLimits:
    def __init__(self, connections: int, per_address: int) -> None:
        self._connections = connections
        self._per_address = per_address
        self._addresses: dict[str, int] = {}  # connections by owner
        self._count = 0
        # Those that wait for their client, longest first; of all and by owner. A dict is an ordered set.
        self._waiting: dict[Bounded, None] = {}
        self._waiting_of: dict[str, dict[Bounded, None]] = {}

    def enter(self, connection: Bounded) -> bool:
        """Takes a place for a new connection; False where there is none, even after a waiting one was cut."""
        owner = connection.owner
        self._count += 1
        self._addresses[owner] = self._addresses.get(owner, 0) + 1
        self.waits(connection)
        if self._addresses[owner] > self._per_address:
            self._cut_oldest(self._waiting_of[owner])
        if self._count > self._connections:
            self._cut_oldest(self._waiting)
        return self._count <= self._connections + SPARE and self._addresses[owner] <= self._per_address + SPARE

    def leave(self, connection: Bounded) -> None:
        owner = connection.owner
        self._count -= 1
        self._addresses[owner] -= 1
        self.serves(connection)
        if not self._addresses[owner]:
            del self._addresses[owner]
            self._waiting_of.pop(owner, None)

    def waits(self, connection: Bounded) -> None:
        """Notes that the connection waits for its client from now on."""
        self.serves(connection)
        self._waiting[connection] = None
        self._waiting_of.setdefault(connection.owner, {})[connection] = None

    def serves(self, connection: Bounded) -> None:
        """Notes that the connection no longer waits: the app works for it, or it is closed."""
        self._waiting.pop(connection, None)
        self._waiting_of.get(connection.owner, {}).pop(connection, None)

    def _cut_oldest(self, waiting: dict[Bounded, None]) -> None:
        """Cuts the connection that has waited longest; never the newest, which is the last."""
        if len(waiting) > 1:
            next(iter(waiting)).cut()


@cache
def limits_of_process() -> ConnectionLimits:
    """The limits of this process: fewer connections where descriptors are few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = CONNECTIONS + SPARE + OTHER_FILES
    if soft < least:
        soft = least if hard == resource.RLIM_INFINITY else min(least, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = min(CONNECTIONS, max(soft - SPARE - OTHER_FILES, SPARE))
    if room < CONNECTIONS:
        log.warning("%d connections at once rather than %d: this process may open %d files", room, CONNECTIONS, soft)
    return ConnectionLimits(room, PER_ADDRESS)


def owner_of(address: str) -> str:
    """Returns the name that a client counts under: its IPv4 address, or the /64 network of its IPv6 address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address  # of a unix socket, or what a proxy names
    if ip.version == 4:
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))
