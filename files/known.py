"""A record of the files and pages that were ingested before: those that have not changed are skipped.

Kept beside the user's other caches, a file a cluster and corpus. It is trusted only for documents that the corpus still
lists with the same origin, so losing it, or the corpus, costs time and nothing else.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from errno import ENOENT
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from shardqa.files.source_file import Item, Lost, Skipped
from shardqa.schema import Document

MAX_IDS = 10_000  # documents of one file; one with more is read anew each time, and the shards say what is unchanged
VERSION = 2

Stamp = tuple[int | str, ...]
"""(time of change in ns, bytes) of a file; (ETag, time of change, digest) of a page, as its server told"""


@dataclass(slots=True)
class FileRead:
    """A file that was read, and its documents."""

    stamp: Stamp
    ids: list[str] = field(default_factory=list)
    is_complete: bool = True  # nothing of it was skipped or lost
    page: str = ""  # digest of the last document (`page_digest`)

    def noted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Passes a file's documents on and notes their ids; the file is complete at their end, if nothing was lost."""
        self.is_complete = False
        is_whole = True
        for item in items:
            if isinstance(item, Document):
                self.ids.append(item.id)
                self.page = page_digest(item)
            elif isinstance(item, Skipped | Lost):
                is_whole = False
            yield item
        self.is_complete = is_whole


def page_digest(document: Document) -> str:
    """Returns a digest that is equal for documents which differ by their file alone."""
    page = orjson.dumps([document.text, document.metadata])
    return blake2b(page, digest_size=12).hexdigest()


def cache_of(cluster: str, corpus: str, prefix: str) -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = blake2b("\0".join((cluster, corpus, prefix)).encode(), digest_size=16).hexdigest()
    return Path(root) / "shardqa" / "ingested" / f"{name}.json"


class KnownFiles:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, Any] = _load(path)
        self._listed: Mapping[str, str] = {}

    def __len__(self) -> int:
        return len(self._files)

    def trust(self, origins: Mapping[str, str]) -> None:
        """Takes the documents that the corpus has now, id -> origin; records of others count no more."""
        self._listed = origins

    def last(self, origin: str) -> tuple[Stamp, list[str]] | None:
        """Returns (stamp, ids) of the last reading; None where one of its documents is no longer in the corpus."""
        record = self._files.get(origin)
        if record is None or any(self._listed.get(id_) != origin for id_ in record["ids"]):
            return None
        return tuple(record["stamp"]), record["ids"]

    def unchanged(self, origin: str, stamp: Stamp) -> list[str] | None:
        """Returns the ids of a file whose stamp is the same and whose documents are all there; else None."""
        last = self.last(origin)
        return last[1] if last is not None and last[0] == stamp else None

    def page(self, origin: str) -> str:
        """Returns the digest of a file's only document; empty where it has several."""
        record = self._files[origin]
        return str(record["page"]) if len(record["ids"]) == 1 else ""

    def learn(self, read: Mapping[str, FileRead], refusals: set[str]) -> None:
        """Remembers the files whose documents were all taken, and forgets the others that were read."""
        for origin, one in read.items():
            if one.is_complete and len(one.ids) <= MAX_IDS and not refusals.intersection(one.ids):
                self._files[origin] = {"stamp": one.stamp, "ids": one.ids, "page": one.page}
            else:
                self._files.pop(origin, None)

    def save(self) -> str:
        """Writes the record beside the old one and renames it: a run that is killed leaves the old one.

        Returns why it could not, empty where it could.
        """
        beside = self._path.with_suffix(f".{os.getpid()}")
        try:
            if not self._path.is_absolute():
                raise FileNotFoundError(ENOENT, "no home folder is known")
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(orjson.dumps({"version": VERSION, "files": self._files}))
            beside.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            return f"sizes and times of files are not remembered, so the next run reads all again: {error.strerror}"
        return ""


def _load(path: Path) -> dict[str, Any]:
    try:
        record = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}  # a cache: what can't be read is read anew from the files
    return dict(record["files"]) if isinstance(record, dict) and record.get("version") == VERSION else {}
