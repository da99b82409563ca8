"""Rules of a host's robots.txt (RFC 9309), read once for each origin."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from shardqa.files.web.address import NotFetched, PageAddress
from shardqa.files.web.fetch import AGENT, Page

if TYPE_CHECKING:
    from protego import Protego

MAX_ROBOTS = 512 * 1024  # bytes; the standard asks for at least 500 KiB
MAX_PAUSE = 30.0  # seconds between two requests; who asks for more is read that fast


class Robots:
    def __init__(self, fetch: Callable[[PageAddress, int], Page]) -> None:
        self._fetch = fetch
        self._by_origin: dict[str, Protego] = {}

    def check(self, address: PageAddress) -> None:
        """Raises NotFetched where the host asks not to be read, or can't say."""
        if not self._of(address).can_fetch(str(address), AGENT):
            raise NotFetched(f"{address.origin}/robots.txt asks not to read it")

    def pause(self, address: PageAddress) -> float:
        """Returns the seconds that the host asks for between two requests."""
        return min(float(self._of(address).crawl_delay(AGENT) or 0), MAX_PAUSE)

    def _of(self, address: PageAddress) -> "Protego":
        if address.origin not in self._by_origin:
            self._by_origin[address.origin] = self._read(address)
        return self._by_origin[address.origin]

    def _read(self, address: PageAddress) -> "Protego":
        """Reads the rules. A host without a robots.txt allows all; one whose server fails allows nothing."""
        page = self._fetch(PageAddress.parse(f"{address.origin}/robots.txt"), MAX_ROBOTS)
        if page.status in (401, 403):
            raise NotFetched(f"{address.origin}/robots.txt is refused with HTTP {page.status}, which forbids the rest")
        if page.status >= 500 or page.status == 429:
            raise NotFetched(f"{address.origin}/robots.txt fails with HTTP {page.status}; try again later")
        from protego import Protego

        return Protego.parse(page.content.decode("utf-8", "replace") if page.status == 200 else "")
