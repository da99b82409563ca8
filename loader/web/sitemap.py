"""Sitemaps: the addresses of a site's pages, and of further sitemaps."""

import re
import zlib
from dataclasses import dataclass, field
from xml.parsers import expat

from shardqa.loader.web.address import NotFetched

MAX_SITEMAP = 50_000_000  # bytes, unpacked; the protocol's own bound is 50 MiB
ROOT = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]")
LOOKED_AT = 4096  # bytes in which a sitemap shows that it is one
GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Sitemap:
    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def unpacked(content: bytes) -> bytes:
    """Raises NotFetched for a damaged gzip file, and for one that holds too much."""
    if not content.startswith(GZIP):
        return content
    unpacker = zlib.decompressobj(wbits=31)
    try:
        xml = unpacker.decompress(content, MAX_SITEMAP)
    except zlib.error as error:
        raise NotFetched(f"not a whole gzip file: {error}") from None
    if unpacker.unconsumed_tail:
        raise NotFetched(f"a sitemap of more than {MAX_SITEMAP:,} bytes")
    if not unpacker.eof:
        raise NotFetched("not a whole gzip file")
    return xml


def is_sitemap(content: bytes) -> bool:
    return ROOT.search(content[:LOOKED_AT]) is not None


def parse(content: bytes) -> Sitemap:
    """Raises NotFetched for what is no XML, or has a document type: entities may unfold without end."""
    addresses = Sitemap()
    stack: list[str] = []
    words: list[str] = []

    def start(name: str, _: dict[str, str]) -> None:
        stack.append(name.rpartition(":")[2])
        words.clear()

    def end(_: str) -> None:
        within, url = stack[-2:], "".join(words).strip()
        stack.pop()
        words.clear()
        if url and within == ["url", "loc"]:
            addresses.pages.append(url)
        elif url and within == ["sitemap", "loc"]:
            addresses.sitemaps.append(url)

    def refuse(*_: object) -> None:
        raise NotFetched("a sitemap with a document type; that is none")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = words.append
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise NotFetched(f"no sitemap: {error}") from None
    return addresses
