"""Addresses of pages: which are of the web, which of one site, and which hosts may be connected to.

A host is resolved once for a request, every answer is checked, and the connection goes to an answer that was checked:
a name that is public for the check and private a moment later leads nowhere.
"""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import quote, unquote, urldefrag, urlsplit

from shardqa.errors import BadDocument

PORTS = {"http": 80, "https": 443}
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
KEPT_IN_PATH = "/%:@!$&'()*+,;=~-._"  # what a path may hold as it is; a percent sign is taken to be an escape's

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotFetched(Exception):
    """A page is not taken, for the reason that it says."""


@dataclass(frozen=True, slots=True)
class PageAddress:
    scheme: str
    host: str  # as the DNS has it, lower case
    port: int
    target: str  # path and query, escaped

    @classmethod
    def parse(cls, url: str) -> "PageAddress":
        """Parses an address. Raises BadDocument where it is none of a page."""
        try:
            parts = urlsplit(urldefrag(url.strip()).url)
            port = parts.port
            name = (parts.hostname or "").rstrip(".")
            host = name if ":" in name else name.encode("idna").decode("ascii").lower()
        except (ValueError, UnicodeError) as error:
            raise BadDocument(f"{url[:200]!r} is no address of a page: {error}") from None
        if parts.scheme not in PORTS or not host:
            raise BadDocument(f"{url[:200]!r} is no address of a page; wanted is https://HOST/…")
        if parts.username is not None or parts.password is not None:
            raise BadDocument(f"the address of a page on {host} has a user or a password in it; leave them out")
        query = f"?{quote(parts.query, safe=KEPT_IN_PATH + '?')}" if parts.query else ""
        return cls(
            parts.scheme, host, port or PORTS[parts.scheme], (quote(parts.path, safe=KEPT_IN_PATH) or "/") + query
        )

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def name(self) -> str:
        """The name of the page's document: the address without scheme and escapes."""
        return self.authority + unquote(self.target)

    @property
    def path(self) -> str:
        return unquote(self.target.partition("?")[0])

    @property
    def site(self) -> tuple[str, int]:
        """The host and the port; http and https at their own ports are one site."""
        return self.host, 0 if self.port in PORTS.values() else self.port

    def __str__(self) -> str:
        return self.origin + self.target


def is_address(word: str) -> bool:
    return word.lower().removeprefix("paperless+").startswith(("http://", "https://"))


def resolve(address: PageAddress, allow_private: bool) -> list[str]:
    """Returns the IP addresses of the host, all of them checked. Raises NotFetched."""
    try:
        answers = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotFetched(f"the host {address.host} is not found: {error}") from None
    numbers = list(dict.fromkeys(str(entry[4][0]) for entry in answers))
    for number in numbers:
        if not allow_private and not is_public(number):
            raise NotFetched(f"{address.host} is {number}, a private address; --allow-private reads from it")
    return numbers


def is_public(number: str) -> bool:
    """Returns whether an IP address belongs to the public internet, also where IPv6 wraps it."""
    ip = _unwrapped(ipaddress.ip_address(number.partition("%")[0]))
    is_local = isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or is_local)


def _unwrapped(ip: IpAddress) -> IpAddress:
    """Returns the IPv4 address that an IPv6 address leads to."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip in NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else ip)
