"""What a site says of its pages: the rules of its robots.txt (RFC 9309), and sitemaps."""

import gzip
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lxml import etree

from shardqa.files.source_file import GZIP_FAULTS, gzip_fault
from shardqa.files.web.address import NotFetched, PageAddress
from shardqa.files.web.fetch import AGENT, Page

if TYPE_CHECKING:
    from protego import Protego

MAX_ROBOTS = 512 * 1024  # bytes; the standard asks for at least 500 KiB
MAX_PAUSE = 30.0  # seconds between two requests; who asks for more is read that fast
MAX_SITEMAP = 50_000_000  # bytes, unpacked; the protocol's own bound is 50 MiB
ROOT = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]")
LOOKED_AT = 4096  # bytes in which a sitemap shows that it is one
GZIP = b"\x1f\x8b"


class Robots:
    """The rules of hosts, read once for each origin."""

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


@dataclass(slots=True)
class Sitemap:
    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def unpacked(content: bytes) -> bytes:
    """Returns a sitemap's bytes. Raises NotFetched for a damaged gzip file, and for one that holds too much."""
    if not content.startswith(GZIP):
        return content
    try:
        xml = gzip.GzipFile(fileobj=io.BytesIO(content)).read(MAX_SITEMAP + 1)
    except GZIP_FAULTS as error:
        raise NotFetched(gzip_fault(error)) from None
    if len(xml) > MAX_SITEMAP:
        raise NotFetched(f"a sitemap of more than {MAX_SITEMAP:,} bytes")
    return xml


def is_sitemap(content: bytes) -> bool:
    return ROOT.search(content[:LOOKED_AT]) is not None


def parse(content: bytes) -> Sitemap:
    """Parses a sitemap. Raises NotFetched where it is no XML, or has a document type: entities may grow endlessly."""
    if b"<!DOCTYPE" in content:
        raise NotFetched("a sitemap with a document type; that is none")
    addresses = Sitemap()
    within = {"url": addresses.pages, "sitemap": addresses.sitemaps}
    try:
        for _, entry in etree.iterparse(io.BytesIO(content), tag="{*}loc", resolve_entities=False, no_network=True):
            above, url = entry.getparent(), (entry.text or "").strip()
            if url and above is not None and (kind := etree.QName(above).localname) in within:
                within[kind].append(url)
            entry.clear()
    except etree.LxmlError as error:
        raise NotFetched(f"no sitemap: {error}") from None
    return addresses
