"""The documents of a paperless-ngx server, by its REST API: text, tags, dates and correspondents, as it has them.

Texts are those that it read or recognized itself; files are not fetched. Belongs to the thread that iterates it.
"""

from collections.abc import Iterator
from hashlib import blake2b
from time import monotonic
from typing import Any

import orjson

from shardqa.errors import BadDocument
from shardqa.files.known import FileRead, KnownFiles
from shardqa.files.source_file import Item, Skipped, Textless
from shardqa.files.web.address import NotFetched, PageAddress
from shardqa.files.web.fetch import Fetcher
from shardqa.files.web.pages import MAX_PAGE, Bounds
from shardqa.schema import Document

SCHEME = "paperless+"  # before https://
TOKEN = "SHARDQA_PAPERLESS_TOKEN"  # the variable that holds it: a command line is read by others
ON_PAGE = 25  # documents of a reply, whole with their texts
KINDS = {"tags": "tags", "correspondent": "correspondents", "document_type": "document_types"}  # field -> list
AS_THEY_ARE = ("created", "added", "archive_serial_number", "original_file_name")


def is_paperless(word: str) -> bool:
    return word.lower().startswith(SCHEME)


class Paperless:
    """Iterates the documents, and what is skipped, with reasons. Raises BadDocument for what is no address."""

    total = 0  # bytes: nobody knows before

    def __init__(
        self, url: str, token: str, prefix: str = "", memory: KnownFiles | None = None, bounds: Bounds | None = None
    ) -> None:
        self.read: dict[str, FileRead] = {}  # by address of the document on the server
        self.passed_over = 0
        self._root = PageAddress.parse(url[len(SCHEME) :].rstrip("/"))
        self._headers = {"Authorization": f"Token {token}", "Accept": "application/json"}
        self._prefix = prefix
        self._known = memory
        self._bounds = bounds or Bounds()
        self._addresses = set[str]()  # of all documents that the server listed
        self._is_whole = False  # it listed all
        self._done = self._pages = 0

    def done(self) -> int:
        return self._done

    def has_gone(self, _id: str, origin: str) -> bool:
        """Returns whether the server's whole list lacks this document; an empty list removes nothing."""
        is_its = origin.startswith(self._base + "/documents/")
        return is_its and self._is_whole and origin not in self._addresses

    def __iter__(self) -> Iterator[Item]:
        self._fetcher = Fetcher(self._bounds.allow_private, monotonic() + self._bounds.seconds)
        try:
            names = {
                field: {int(one["id"]): str(one["name"]) for one in self._every(kind)} for field, kind in KINDS.items()
            }
            for record in self._every("documents"):
                yield from self._document(record, names)
            self._is_whole = 0 < len(self._addresses) == self._count
            if len(self._addresses) != self._count:  # some moved between two replies
                told = f"it told of {self._count:,} documents and listed {len(self._addresses):,}"
                yield Skipped(self._base, f"{told}; --prune removes nothing then; run it again")
        except NotFetched as fault:
            yield Skipped(self._base, str(fault))
        except (KeyError, TypeError, ValueError) as fault:
            yield Skipped(self._base, f"it does not answer as paperless-ngx does: {fault!r}"[:200])

    @property
    def _base(self) -> str:
        return str(self._root).rstrip("/")

    def _every(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yields the records of a list, reply by reply. Raises NotFetched."""
        number, is_last = 0, False
        while not is_last:
            number += 1
            if self._pages >= self._bounds.pages:
                raise NotFetched(f"it has more than {self._pages:,} pages; --max-pages reads more")
            self._pages += 1
            reply = self._reply(f"{self._base}/api/{kind}/?page={number}&page_size={ON_PAGE}&ordering=id")
            self._count, is_last = int(reply["count"]), reply["next"] is None
            yield from reply["results"]

    def _reply(self, url: str) -> dict[str, Any]:
        page = self._fetcher.get(PageAddress.parse(url), MAX_PAGE, self._check, self._headers)
        self._done += len(page.content)
        if page.status in (401, 403):
            raise NotFetched(f"HTTP {page.status}; {TOKEN} wants the token of a user who may see the documents")
        if page.status != 200:
            raise NotFetched(f"HTTP {page.status} for {url}")
        reply: dict[str, Any] = orjson.loads(page.content)
        return reply

    def _check(self, address: PageAddress) -> None:
        """Raises NotFetched where the token would go elsewhere, or in the clear."""
        if address.origin != self._root.origin:
            raise NotFetched(f"it leads to {address.origin}; give that address, since the token goes along")

    def _document(self, record: dict[str, Any], names: dict[str, dict[int, str]]) -> Iterator[Item]:
        url = f"{self._base}/documents/{int(record['id'])}/details"
        self._addresses.add(url)
        metadata = {name: value for name in AS_THEY_ARE if (value := record.get(name)) not in (None, "")}
        for field in ("correspondent", "document_type"):
            if name := names[field].get(record.get(field) or 0):  # a user may not see each
                metadata[field] = name
        if tags := [name for one in record["tags"] if (name := names["tags"].get(one))]:
            metadata["tags"] = tags
        content = orjson.dumps([record["title"], metadata])
        stamp = (str(record["modified"]), blake2b(content, digest_size=12).hexdigest())
        if self._known is not None and self._known.unchanged(url, stamp) is not None:
            self.passed_over += 1
            return
        text = record["content"].strip()
        if not text:
            yield Textless(url, "documents of paperless without text")
            return
        document = Document(
            id=self._prefix + PageAddress.parse(url).name,
            text=text,
            title=record["title"],
            source=url,
            metadata=metadata,
            origin=url,
        )
        yield from self.read.setdefault(url, FileRead(stamp)).noted([document])


def source(
    words: list[str], token: str, prefix: str, memory: KnownFiles | None, bounds: Bounds | None = None
) -> Paperless | None:
    """Returns the server where it is a command's only source, None where it names none. Raises BadDocument."""
    if not any(map(is_paperless, words)):
        return None
    if len(words) > 1:
        raise BadDocument(f"{words[0]} and {words[1]} in one command; give a paperless server alone")
    if not token:
        raise BadDocument(f"{TOKEN} is not set; 'My profile' of paperless shows a token")
    return Paperless(words[0], token, prefix, memory, bounds)
