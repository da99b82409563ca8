"""One page by HTTP: a request to a checked IP address, bounded in bytes, time and redirects."""

import http.client
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urljoin

import shardqa
from shardqa.errors import BadDocument
from shardqa.files.web.address import NotFetched, PageAddress, resolve

AGENT = "shardqa"  # by which a robots.txt may name us
PAGE_SECONDS = 60.0  # for one request, whatever the server drips
CONNECT_SECONDS = 10.0
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
NOT_MODIFIED = 304
CHUNK = 1 << 16

Allowed = Callable[[PageAddress], None]  # raises NotFetched for an address that is not to be asked for


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    headers: http.client.HTTPMessage
    content: bytes
    address: PageAddress  # where the last redirect led


@dataclass(slots=True)
class Fetcher:
    """Fetches pages one after the other, in one thread."""

    allow_private: bool = False
    deadline: float = field(default_factory=lambda: monotonic() + PAGE_SECONDS)  # by monotonic(), for all pages

    def get(self, address: PageAddress, most: int, may_get: Allowed, headers: dict[str, str] | None = None) -> Page:
        """Follows redirects within the site; `may_get` is asked about each address. Raises NotFetched."""
        site = address.site
        for _ in range(MAX_REDIRECTS + 1):
            may_get(address)
            page = self._get_one(address, most, headers or {})
            if page.status not in REDIRECTS:
                return page
            address = _next(page)
            if address.site != site:
                raise NotFetched(f"it leads to {address}, on another host; give that address if you want it")
        raise NotFetched(f"more than {MAX_REDIRECTS} redirects")

    def _get_one(self, address: PageAddress, most: int, headers: dict[str, str]) -> Page:
        left = self.deadline - monotonic()
        if left <= 0:
            raise NotFetched("the time for all pages is over; run the ingest again")
        numbers = resolve(address, self.allow_private)
        with _Connection(address, numbers, min(left, PAGE_SECONDS)) as connection:
            return connection.get(most, headers)


def _next(page: Page) -> PageAddress:
    location = page.headers.get("Location")
    if not location:
        raise NotFetched(f"HTTP {page.status} without a Location")
    try:
        return PageAddress.parse(urljoin(str(page.address), location))
    except (BadDocument, ValueError) as error:
        raise NotFetched(f"it redirects to no valid address: {error}") from None


class _Connection:
    """A connection for one request, which ends at its deadline whatever the other side does."""

    def __init__(self, address: PageAddress, numbers: list[str], seconds: float) -> None:
        self._address = address
        self._numbers = numbers
        self._is_late = threading.Event()
        self._guard: socket.socket | None = None  # the same socket, for the timer alone
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._seconds = seconds
        self._http: http.client.HTTPConnection | None = None

    def __enter__(self) -> "_Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        for one in (self._http, self._guard):
            if one is not None:
                one.close()

    def get(self, most: int, headers: dict[str, str]) -> Page:
        try:
            return self._get(most, headers)
        except (http.client.HTTPException, OSError, ValueError) as error:
            if self._is_late.is_set():
                raise NotFetched(f"not there within {self._seconds:.0f} s") from None
            raise NotFetched(f"can't be fetched: {str(error) or type(error).__name__}") from None

    def _get(self, most: int, headers: dict[str, str]) -> Page:
        address = self._address
        self._http = connection = http.client.HTTPConnection(address.host, address.port)
        connection.sock = self._connected()
        fields = {
            "User-Agent": f"{AGENT}/{shardqa.__version__}",
            "Host": address.authority,
            "Connection": "close",
            **headers,
        }
        connection.request("GET", address.target, headers=fields)
        with connection.getresponse() as response:
            if response.status in REDIRECTS:
                return Page(response.status, response.headers, b"", address)
            encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
            if encoding not in ("", "identity"):
                raise NotFetched(f"it comes encoded as {encoding[:40]!r}, though it was asked for as it is")
            return Page(response.status, response.headers, self._content(response, most), address)

    def _content(self, response: http.client.HTTPResponse, most: int) -> bytes:
        content = bytearray()
        while chunk := response.read(CHUNK):
            content += chunk
            if len(content) > most:
                raise NotFetched(f"more than {most:,} bytes")
        if self._is_late.is_set() or response.length:
            raise http.client.IncompleteRead(bytes(content), response.length)
        return bytes(content)

    def _connected(self) -> socket.socket:
        """Connects to the first checked address that answers. The certificate is checked for the host's name."""
        plain = self._plain()
        self._guard = plain.dup()
        self._timer.start()
        if self._address.scheme == "http":
            return plain
        try:
            return ssl.create_default_context().wrap_socket(plain, server_hostname=self._address.host)
        except OSError:
            plain.close()
            raise

    def _plain(self) -> socket.socket:
        fault: OSError | None = None
        for number in self._numbers:
            try:
                plain = socket.create_connection((number, self._address.port), min(CONNECT_SECONDS, self._seconds))
                plain.settimeout(self._seconds + CONNECT_SECONDS)  # the timer comes first
                return plain
            except OSError as error:
                fault = error
        raise fault or OSError("the host has no address")

    def _end(self) -> None:
        self._is_late.set()
        if self._guard is not None:
            try:
                self._guard.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended already
