"""The file of a backup: gzipped JSON lines, one record each, and a last one that counts and digests all before it.

    zcat monday.shardqa | head -3

The first record has kind "about" and the form's number; the last, "end", how many records there are of each kind and
BLAKE2b-256 of all lines before it. A value is text, or {"base64": …} where it is not UTF-8. A record is in memory
whole, one at a time. Nothing here knows of Redis.
"""

import base64
import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeAlias

from shardqa.errors import BadBackup

FORM = 1
GZIP = 31  # zlib's number of that form
LEVEL = 1  # of deflate: texts shrink to a half, at the speed of a disk
CHUNK = 1 << 20  # bytes read and unpacked at once
MAX_RECORD = (3 << 30) // 2  # characters of a line: the largest model in base64, and what stands beside it

Value: TypeAlias = "bytes | list[Value]"


class RecordKind(StrEnum):
    ABOUT = "about"  # form; data: JSON, where and when it was made
    FUNCTION = "function"  # id, user, description, code
    MODEL = "model"  # name, backend, device, tag, batchsize, minbatchsize, minbatchtimeout, blob
    API_KEY = "api-key"  # id, key (as it is stored, with the digest of its secret)
    SETTING = "setting"  # corpus, off ("dense" or "bridges")
    SCORING = "scoring"  # corpus, scores: JSON
    WORDS = "words"  # corpus, words (synonyms and pins): JSON
    DOCUMENT = "document"  # corpus, id, expires (ms of the epoch, or empty), fields: pairs
    KEY = "key"  # key, expires, dump: what DUMP said
    END = "end"


@dataclass(frozen=True, slots=True)
class Record:
    kind: RecordKind
    fields: dict[str, Any]  # bytes, or lists of them


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
        self._packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        try:
            self._file: IO[bytes] = os.fdopen(os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        except OSError as error:
            raise BadBackup(f"{path} can't be written: {error.strerror}; choose another place") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            self._file.close()
        self._part.unlink(missing_ok=True)  # not there any more after `close`

    def add(self, kind: RecordKind, **fields: Value) -> None:
        """Raises BadBackup where the disk takes no more, or one record is too large."""
        record = {"kind": kind.value, **{name: _shown(value) for name, value in fields.items()}}
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        if len(line) > MAX_RECORD:
            raise BadBackup(f"{kind} {str(record)[:80]} takes {len(line):,} bytes, at most {MAX_RECORD:,} can be kept")
        self._all.update(line)
        self._put(self._packer.compress(line))
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def close(self) -> int:
        """Ends the file and gives it its name; returns its bytes."""
        end = {"kind": RecordKind.END.value, "records": self.counts, "digest": self._all.hexdigest()}
        self._put(self._packer.compress(json.dumps(end).encode() + b"\n") + self._packer.flush())
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

    def _put(self, packed: bytes) -> None:
        try:
            self._file.write(packed)
        except OSError as error:
            raise self._full(error) from error

    def _full(self, error: OSError) -> BadBackup:
        with contextlib.suppress(OSError):
            self._file.close()  # what it still holds does not fit either
        return BadBackup(f"{self.path} can't be written: {error.strerror}; make room, or choose another place")


def _sync_folder(folder: Path) -> None:
    """Makes the name outlast a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class BackupReader:
    """One pass over a backup; each raises BadBackup where what it holds is not what was written."""

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
            counts[record.kind] = counts.get(record.kind, 0) + 1
        return counts

    def about(self) -> dict[str, object]:
        """Returns the first record's content."""
        found: dict[str, object] = json.loads(next(self.records()).fields["data"])
        return found

    def records(self) -> Iterator[Record]:
        """All but the last, which says whether these were all."""
        digest, counts, ended = blake2b(digest_size=32), dict[str, int](), False
        for number, line in enumerate(self._lines()):
            record = self._record(number, line)
            if number == 0:
                self._check_form(record)
            if ended:
                raise self._bad("records follow its end")
            if record.kind is RecordKind.END:
                ended = True
                if record.fields != {"records": counts, "digest": digest.hexdigest()}:
                    raise self._bad("its records are not those that were written")
                continue
            digest.update(line)
            counts[record.kind] = counts.get(record.kind, 0) + 1
            yield record
        if not ended:
            raise self._bad("it is cut off")

    def _record(self, number: int, line: bytes) -> Record:
        try:
            found = json.loads(line)
            kind = RecordKind(found.pop("kind"))
            fields = found if kind is RecordKind.END else {name: _raw(value) for name, value in found.items()}
            return Record(kind, fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._bad(f"record {number} can't be read ({error})") from error

    def _check_form(self, record: Record) -> None:
        if record.kind is not RecordKind.ABOUT:
            raise self._bad("it does not say where it is from")
        if record.fields.get("form") != str(FORM).encode():
            raise self._bad(
                f"its form is {_shown(record.fields.get('form', b'unnamed'))}, and {FORM} is read here; "
                "use the newer shardqa"
            )

    def _lines(self) -> Iterator[bytes]:
        self._file.seek(0)
        inflater, rest = zlib.decompressobj(GZIP), bytearray()
        while not inflater.eof:
            packed = inflater.unconsumed_tail or self._file.read(CHUNK)
            if not packed:
                raise self._bad("it is cut off")
            try:
                part = inflater.decompress(packed, CHUNK)
            except zlib.error as error:
                if self._file.tell() <= CHUNK and not packed.startswith(b"\x1f\x8b"):
                    raise BadBackup(f"{self.path} is no backup: it is not a gzip file") from error
                raise self._bad(f"it is damaged ({error})") from error
            at = len(rest)
            rest += part
            while (end := rest.find(b"\n", at)) >= 0:
                yield bytes(rest[: end + 1])
                del rest[: end + 1]
                at = 0
            if len(rest) > MAX_RECORD:
                raise self._bad(f"a record takes more than {MAX_RECORD:,} bytes")
        if rest:
            raise self._bad("it is cut off")
        if follows := len(inflater.unused_data) + len(self._file.read(CHUNK)):
            raise self._bad(f"{follows:,} bytes or more follow its end")

    def _bad(self, why: str) -> BadBackup:
        return BadBackup(f"{self.path} is not as it was written: {why}; take another copy of it, or another backup")


def _shown(value: Value) -> Any:
    if isinstance(value, list):
        return [_shown(one) for one in value]
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _raw(value: Any) -> Value:
    """Reads what `_shown` was passed. Raises ValueError, TypeError."""
    if isinstance(value, list):
        return [_raw(one) for one in value]
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)
