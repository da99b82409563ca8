"""Sitemaps: the addresses of a site's pages, and of further sitemaps."""

import gzip
import io
import re
from dataclasses import dataclass, field

from lxml import etree

from shardqa.files.source_file import GZIP_FAULTS, gzip_fault
from shardqa.files.web.address import NotFetched

MAX_SITEMAP = 50_000_000  # bytes, unpacked; the protocol's own bound is 50 MiB
ROOT = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]")
LOOKED_AT = 4096  # bytes in which a sitemap shows that it is one
GZIP = b"\x1f\x8b"


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
