"""A page, those of a sitemap, or those behind its links, as one stream of documents: what `SourceFiles` is for files.

Belongs to the thread that iterates it; `done()` may be asked from any.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from html import unescape
from time import monotonic, sleep
from urllib.parse import urljoin

from shardqa.errors import BadDocument
from shardqa.files import formats
from shardqa.files.known import FileRead, KnownFiles, Stamp
from shardqa.files.reader_process import ReaderProcess
from shardqa.files.source_file import Item, Skipped, SourceFile
from shardqa.files.web import content, site
from shardqa.files.web.address import NotFetched, PageAddress
from shardqa.files.web.fetch import NOT_MODIFIED, Fetcher, Page

MAX_PAGES = 1_000  # of one run, those in vain too
MAX_PAGE = 20_000_000  # bytes
MAX_SECONDS = 3_600.0  # for all pages of a run
MAX_SITEMAPS = 100  # of one run
MAX_DEPTH = 3  # sitemaps within one another
LINK = re.compile(rb"""<a\s[^<>]*?\bhref\s*=\s*["']?([^"'\s<>#]+)""", re.IGNORECASE)
GONE = (404, 410)


@dataclass(frozen=True, slots=True)
class Bounds:
    allow_private: bool = False
    pages: int = MAX_PAGES
    seconds: float = MAX_SECONDS
    links: int = 0  # that are followed from a start to a page of its site


class WebPages:
    """Iterates the documents at `urls`, and what is skipped, with reasons. Raises BadDocument for what is no address.

    Ids begin with `prefix`. Each page is asked for once, one after the other.
    """

    total = 0  # bytes: nobody knows before

    def __init__(
        self, urls: Iterable[str], prefix: str = "", memory: KnownFiles | None = None, bounds: Bounds | None = None
    ) -> None:
        self.read: dict[str, FileRead] = {}  # by address, of the pages that were read
        self.passed_over = 0  # documents of pages that have not changed
        self._bounds = bounds or Bounds()
        self._starts = [PageAddress.parse(url) for url in urls]
        self._prefix = prefix
        self._known = memory
        self._addresses = set[str]()  # addresses asked for
        self._missing = set[str]()  # names of pages that are no longer there
        self._names = set[str]()  # names of pages that a sitemap lists, and of those given
        self._whole = dict[PageAddress, bool]()  # by sitemap given: all that it lists was seen
        self._pages = self._sitemaps = self._surplus = 0
        self._done = 0  # bytes fetched
        self._links = dict[PageAddress, tuple[PageAddress, int]]()  # to be followed, with start and distance from it
        self._distance = 0  # links from a start to the page that is read now
        self._process = ReaderProcess()

    def done(self) -> int:
        return self._done

    def has_gone(self, id_: str, origin: str) -> bool:
        """Returns whether a document's page is gone, no longer holds it, or is no longer in its sitemap.

        Where a sitemap was not read to its end, what it does not list stays.
        """
        try:
            page = PageAddress.parse(origin)
        except BadDocument:
            return False
        if (read := self.read.get(origin)) is not None:
            return read.is_complete and id_ not in read.ids
        if page.name in self._missing:
            return True
        is_listed = any(is_whole and _is_below(page, start) for start, is_whole in self._whole.items())
        return is_listed and page.name not in self._names

    def __iter__(self) -> Iterator[Item]:
        self._fetcher = Fetcher(self._bounds.allow_private, monotonic() + self._bounds.seconds)
        self._robots = site.Robots(lambda address, most: self._fetcher.get(address, most, lambda _: None))
        for start in self._starts:
            self._names.add(start.name)
            yield from self._read(start, start, 0)
        while self._links:
            link = next(iter(self._links))
            start, self._distance = self._links.pop(link)
            yield from self._read(link, start, 0)
        if self._surplus:
            some = f"{self._surplus:,} {'page' if self._surplus == 1 else 'pages'}"
            reason = f"{some} beyond the first {self._bounds.pages:,}; --max-pages reads more"
            yield Skipped(", ".join(map(str, self._starts)), reason)

    def _read(self, address: PageAddress, start: PageAddress, depth: int) -> Iterator[Item]:
        """Yields the documents of a page, or of the pages of a sitemap."""
        url = str(address)
        if url in self._addresses:
            return
        self._addresses.add(url)
        if self._pages >= self._bounds.pages:
            self._surplus += 1
            return
        try:
            page = self._fetch(address)
            is_map = (
                page.status == 200 and _may_be_sitemap(page) and site.is_sitemap(xml := site.unpacked(page.content))
            )
            entries = site.parse(xml) if is_map else None
        except NotFetched as fault:
            self._pages += 1
            yield Skipped(url, str(fault))
            return
        if entries is None:
            self._pages += 1
            self._note_links(page, start)
            yield from self._documents(address, page)
        else:
            yield from self._listed(entries, address, start, depth)

    def _fetch(self, address: PageAddress) -> Page:
        pause = self._robots.pause(address) if self._pages else 0
        if pause:
            sleep(min(pause, max(self._fetcher.deadline - monotonic(), 0)))
        last = self._known.last(str(address)) if self._known is not None else None
        headers = _conditions(last[0]) if last is not None and not self._bounds.links else {}
        most = site.MAX_SITEMAP if _is_xml(address.path) else MAX_PAGE
        return self._fetcher.get(address, most, self._robots.check, headers)

    def _note_links(self, page: Page, start: PageAddress) -> None:
        if self._distance >= self._bounds.links or "html" not in page.headers.get_content_type():
            return
        for href in LINK.findall(page.content):
            with suppress(BadDocument, ValueError):
                link = PageAddress.parse(urljoin(str(page.address), unescape(href.decode("utf-8", "replace"))))
                if link.site == start.site and not formats.textless(link.path):
                    self._links.setdefault(link, (start, self._distance + 1))

    def _listed(self, entries: site.Sitemap, address: PageAddress, start: PageAddress, depth: int) -> Iterator[Item]:
        self._sitemaps += 1
        is_filled = bool(entries.pages or entries.sitemaps)  # an empty one is more often a mistake
        self._whole[start] = self._whole.get(start, True) and is_filled
        if not is_filled:
            yield Skipped(str(address), "a sitemap that lists nothing; --prune removes nothing then")
        if depth >= MAX_DEPTH or self._sitemaps > MAX_SITEMAPS:
            self._whole[start] = False
            reason = f"more than {MAX_SITEMAPS} sitemaps, or {MAX_DEPTH} within one another; give the inner ones"
            yield Skipped(str(address), reason)
            return
        for url in entries.sitemaps:
            before = self._sitemaps
            yield from self._read_listed(url, address, start, depth)
            if self._sitemaps == before:
                self._whole[start] = False
        for url in entries.pages:
            yield from self._read_listed(url, address, start, depth)

    def _read_listed(self, url: str, address: PageAddress, start: PageAddress, depth: int) -> Iterator[Item]:
        try:
            entry = PageAddress.parse(url)
        except BadDocument as fault:
            yield Skipped(str(address), str(fault))
            return
        self._names.add(entry.name)
        if entry.site != start.site:
            yield Skipped(str(entry), f"on another host than {start}; give its own address")
            return
        yield from self._read(entry, start, depth + 1)

    def _documents(self, address: PageAddress, page: Page) -> Iterator[Item]:
        self._done += len(page.content)
        url = str(address)
        last = self._known.last(url) if self._known is not None else None
        if page.status == NOT_MODIFIED and last is not None:
            self.passed_over += len(last[1])
            return
        if page.status != 200:
            if page.status in GONE:
                self._missing.add(address.name)
            yield Skipped(url, f"HTTP {page.status}")
            return
        stamp = _stamp(page)
        if last is not None and last[0][-1] == stamp[-1]:
            self.passed_over += len(last[1])
            self.read[url] = FileRead(stamp, list(last[1]))
            return
        format = content.format_of(page.headers, page.address.path)
        if format is None:
            media = page.headers.get("Content-Type", "none")[:80]
            yield Skipped(url, f"of content type {media!r}; known: {formats.TOLD}")
            return
        body = content.as_utf8(page.content, page.headers)
        opens = partial(SourceFile.of_bytes, body, self._prefix + address.name, url, url, formats.read)
        items = (item for item, _ in self._process.items_and_fault(url, len(body), opens, format))
        yield from self.read.setdefault(url, FileRead(stamp)).noted(items)


def _is_below(page: PageAddress, sitemap: PageAddress) -> bool:
    """Returns whether the page is in the sitemap's folder: the protocol allows it no others."""
    return page.site == sitemap.site and page.path.startswith(sitemap.path.rpartition("/")[0] + "/")


def _is_xml(path: str) -> bool:
    return path.lower().endswith((".xml", ".xml.gz"))


def _may_be_sitemap(page: Page) -> bool:
    return _is_xml(page.address.path) or page.headers.get_content_type() in ("text/xml", "application/xml")


def _stamp(page: Page) -> Stamp:
    digest = blake2b(page.content, digest_size=16).hexdigest()
    return page.headers.get("ETag", ""), page.headers.get("Last-Modified", ""), digest


def _conditions(stamp: Stamp) -> dict[str, str]:
    """Returns the headers by which a server can say that a page has not changed."""
    if len(stamp) != 3:
        return {}
    etag, date, _ = map(str, stamp)
    return {name: value for name, value in (("If-None-Match", etag), ("If-Modified-Since", date)) if value}
