"""The file of a backup: records that can be read one after another, each with a checksum, and one over all.

    "shardqa backup 1\n"
    records, each: kind (1 byte), size (u64), size as stored (u64), BLAKE2b-128 of number, head and content, content
    the last: kind END, whose content is JSON: how many records of each kind, and BLAKE2b-256 of all bytes before it

Numbers are little endian. Content is a list of byte strings (u32 n, then n times u64 length and bytes), deflated where
that makes it shorter. A record is in memory whole, one at a time. Nothing here knows of Redis.
"""

import contextlib
import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from shardqa.errors import BadBackup

NAME = b"shardqa backup "
MAGIC = NAME + b"1\n"  # the version of the form is the number
HEAD = struct.Struct("<BQQ")
COUNT = struct.Struct("<I")
LENGTH = struct.Struct("<Q")
DIGEST = 16  # bytes, of one record
MAX_RECORD = (1 << 30) + (1 << 20)  # bytes: the largest model, and what stands beside it
LEVEL = 1  # of deflate: texts shrink to a half, at the speed of a disk


class RecordKind(IntEnum):
    ABOUT = 1  # JSON: where and when it was made
    FUNCTION = 2  # id, user, description, code
    MODEL = 3  # name, backend, device, tag, batch size, minimal batch size, its timeout, blob
    DOCUMENT = 4  # corpus, id, when it expires (ms of the epoch, or empty), field, value, …
    KEY = 5  # key, when it expires, what DUMP said
    END = 255


@dataclass(frozen=True, slots=True)
class Record:
    kind: RecordKind
    items: list[bytes]


def pack(items: Sequence[bytes]) -> bytes:
    return b"".join([COUNT.pack(len(items)), *(part for item in items for part in (LENGTH.pack(len(item)), item))])


def unpack(content: bytes) -> list[bytes]:
    """What `pack` was given. Raises ValueError."""
    if len(content) < COUNT.size:
        raise ValueError("it is cut off")
    (count,) = COUNT.unpack_from(content)
    items, at = list[bytes](), COUNT.size
    for _ in range(count):
        if len(content) - at < LENGTH.size:
            raise ValueError("it is cut off")
        (size,) = LENGTH.unpack_from(content, at)
        at += LENGTH.size
        if size > len(content) - at:
            raise ValueError("it is cut off")
        items.append(content[at : at + size])
        at += size
    if at != len(content):
        raise ValueError("more follows than it says")
    return items


def _digest(number: int, head: bytes, stored: bytes) -> bytes:
    digest = blake2b(number.to_bytes(8, "little") + head, digest_size=DIGEST)
    digest.update(stored)
    return digest.digest()


class Writer:
    """Writes a file that is there whole or not at all: under another name, which `path` gets at the end.

    A context manager: what raises inside it, or ends it before `close`, leaves nothing behind.
    """

    def __init__(self, path: Path, replace: bool = False) -> None:
        """Raises BadBackup where `path` can't be written, or is there and may not be replaced."""
        if path.exists() and not replace:
            raise BadBackup(f"{path} is there already; choose another name, or replace it with --force")
        self.path = path
        self.counts: dict[str, int] = {}
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._all = blake2b(digest_size=32)
        self._number = 0
        try:
            self._file: IO[bytes] = os.fdopen(os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        except OSError as error:
            raise BadBackup(f"{path} can't be written: {error.strerror}; choose another place") from error
        self._put(MAGIC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            self._file.close()
        self._part.unlink(missing_ok=True)  # not there any more after `close`

    def add(self, kind: RecordKind, items: Sequence[bytes]) -> None:
        """Raises BadBackup where the disk takes no more, or one record is too large."""
        content = pack(items)
        if len(content) > MAX_RECORD:
            raise BadBackup(f"{items[0][:80]!r} has {len(content):,} bytes, at most {MAX_RECORD:,} go into a backup")
        packed = zlib.compress(content, LEVEL)
        stored = packed if len(packed) < len(content) else content
        head = HEAD.pack(kind, len(content), len(stored))
        self._put(head, _digest(self._number, head, stored), stored)
        self._number += 1
        if kind is not RecordKind.END:
            self.counts[kind.name] = self.counts.get(kind.name, 0) + 1

    def close(self) -> int:
        """Ends the file and gives it its name; returns its bytes."""
        end = {"records": self.counts, "digest": self._all.hexdigest()}
        self.add(RecordKind.END, [json.dumps(end).encode()])
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            size = self._file.tell()
            self._file.close()
            self._part.rename(self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise self._full(error) from error
        return size

    def _put(self, *parts: bytes) -> None:
        try:
            for part in parts:
                self._all.update(part)
                self._file.write(part)
        except OSError as error:
            raise self._full(error) from error

    def _full(self, error: OSError) -> BadBackup:
        with contextlib.suppress(OSError):
            self._file.close()  # what it still holds does not fit either
        return BadBackup(f"{self.path} can't be written: {error.strerror}; make room, or choose another place")


def _sync_folder(folder: Path) -> None:
    """So that the name outlasts a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class BackupReader:
    """One pass over a backup; each raises BadBackup at the first byte that is not as it was written."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise BadBackup(f"{path} can't be read: {error.strerror}") from error
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def check(self) -> dict[str, int]:
        """Reads all of it; how many records there are of each kind."""
        counts: dict[str, int] = {}
        for record in self.records():
            counts[record.kind.name] = counts.get(record.kind.name, 0) + 1
        return counts

    def about(self) -> dict[str, object]:
        """What the first record says."""
        record = next(self.records(), None)
        if record is None or record.kind is not RecordKind.ABOUT:
            raise self._bad("it does not say where it is from")
        found = json.loads(record.items[0])
        return found if isinstance(found, dict) else {}

    def records(self) -> Iterator[Record]:
        """All but the last, which says whether these were all."""
        self._file.seek(0)
        size = os.fstat(self._file.fileno()).st_size
        digest, counts, number = blake2b(digest_size=32), dict[str, int](), 0
        self._magic(digest)
        while True:
            so_far = digest.hexdigest()
            record = self._record(digest, number, size)
            if record.kind is RecordKind.END:
                break
            yield record
            counts[record.kind.name] = counts.get(record.kind.name, 0) + 1
            number += 1
        if json.loads(record.items[0]) != {"records": counts, "digest": so_far}:
            raise self._bad("its parts are not those that were written")
        if self._file.tell() != size:
            raise self._bad(f"{size - self._file.tell():,} bytes follow its end")

    def _magic(self, digest: "blake2b") -> None:
        magic = self._file.read(len(MAGIC))
        digest.update(magic)
        if magic == MAGIC:
            return
        if magic.startswith(NAME):
            raise self._bad(f"its form is {magic!r} and this version of shardqa reads {MAGIC!r}; use the newer one")
        raise BadBackup(f"{self.path} is no backup: it does not begin with {MAGIC!r}")

    def _record(self, digest: "blake2b", number: int, size: int) -> Record:
        head, wanted = self._file.read(HEAD.size), self._file.read(DIGEST)
        if len(wanted) < DIGEST:
            raise self._bad("it is cut off")
        kind, length, stored_length = HEAD.unpack(head)
        left = size - self._file.tell()
        if stored_length > left or stored_length > length or length > MAX_RECORD:
            raise self._bad(f"record {number} is damaged or cut off")
        stored = self._file.read(stored_length)
        if _digest(number, head, stored) != wanted:
            raise self._bad(f"record {number} is damaged")
        for part in (head, wanted, stored):
            digest.update(part)
        try:
            return Record(RecordKind(kind), unpack(stored if stored_length == length else _inflated(stored, length)))
        except (ValueError, zlib.error) as error:
            raise self._bad(f"record {number} can't be read ({error})") from error

    def _bad(self, why: str) -> BadBackup:
        return BadBackup(f"{self.path} is not as it was written: {why}; take another copy of it, or another backup")


def _inflated(stored: bytes, length: int) -> bytes:
    """Raises ValueError, zlib.error."""
    inflater = zlib.decompressobj()
    content = inflater.decompress(stored, length)
    if len(content) != length or not inflater.eof or inflater.unused_data:
        raise ValueError("its length is another")
    return content
