"""The file of a backup: gzipped JSON lines, one record each. gzip's own sums tell a damaged file and one that is cut,
the digest in the last line one that was edited.

    zcat monday.shardqa | head -3

The first record has kind "about" and the form's number. A value is text, or {"base64": …} where it is not UTF-8. A
record is in memory whole, one at a time. Nothing here knows of Redis.
"""

import base64
import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from shardqa.errors import BadBackup
from shardqa.files.source_file import GZIP_FAULTS, gzip_fault

FORM = 3
READ = ("1", "2", "3")  # forms; in the second no digest stood at the end, the first had another
ENDED = "ended"  # in place of its form, once the digest has been met
LEVEL = 1  # of deflate: texts shrink to a half, at the speed of a disk
MAX_RECORD = (3 << 30) // 2  # bytes of a line: the largest model in base64, and what stands beside it

Value: TypeAlias = "bytes | list[Value]"


class RecordKind(StrEnum):
    ABOUT = "about"  # form; data: JSON, where and when it was made
    FUNCTION = "function"  # id, user, description, code
    MODEL = "model"  # name, backend, device, tag, batchsize, minbatchsize, minbatchtimeout, blob
    API_KEY = "api-key"  # id, key (as it is stored, with the digest of its secret)
    SETTING = "setting"  # corpus, off ("dense" or "bridges")
    SCORING = "scoring"  # corpus, scores: JSON; older versions wrote it
    WORDS = "words"  # corpus, words (synonyms and pins): JSON
    DOCUMENT = "document"  # corpus, id, expires (ms of the epoch, or empty), fields: pairs
    KEY = "key"  # key, expires, dump: what DUMP said


@dataclass(frozen=True, slots=True)
class Record:
    kind: RecordKind
    fields: dict[str, Any]  # bytes, or lists of them


@dataclass(slots=True)
class Report:
    records: Counter[str] = field(default_factory=Counter)  # written or restored, by kind
    left_out: list[str] = field(default_factory=list)  # what was not, and why


class Writer:
    def __init__(self, stream: gzip.GzipFile) -> None:
        self.report = Report()
        self._packed = stream
        self.digest = hashlib.sha256()  # of all lines so far

    def add(self, kind: RecordKind, **fields: Value) -> None:
        """Adds a record. Raises BadBackup where it is too large, OSError where the disk takes no more."""
        record = {"kind": kind.value, **{name: _shown(value) for name, value in fields.items()}}
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        if len(line) > MAX_RECORD:
            raise BadBackup(f"{kind} {str(record)[:80]} takes {len(line):,} bytes, at most {MAX_RECORD:,} can be kept")
        self._packed.write(line)
        self.digest.update(line)
        self.report.records[kind.value] += 1


@contextmanager
def writing(path: Path, replace: bool = False) -> Iterator[Writer]:
    """Yields the writer of a file that gets its name once it is whole; a fault in the block leaves no file.

    Raises BadBackup where `path` can't be written, or is there and may not be replaced.
    """
    if path.exists() and not replace:
        raise BadBackup(f"{path} is there already; choose another name, or replace it with --force")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            part.chmod(0o600)
            with gzip.GzipFile("", "wb", LEVEL, file) as stream:
                yield (writer := Writer(stream))
                stream.write(_end(writer.digest.hexdigest()))
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise BadBackup(f"{path} can't be written: {error.strerror}; make room, or choose another place") from error
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Writes the folder through to the disk, so that the name outlasts a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def records(path: Path) -> Iterator[Record]:
    """Yields the records of a file. Raises BadBackup where it is no backup, cut off or damaged."""
    number, form, digest = -1, "", hashlib.sha256()
    try:
        with gzip.open(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_RECORD), b"")):
                if not line.endswith(b"\n"):
                    raise _bad(path, f"record {number} takes more than {MAX_RECORD:,} bytes, or is cut off")
                if form == str(FORM) and line == _end(digest.hexdigest()):
                    form = ENDED
                    continue
                if form == ENDED:
                    raise _bad(path, "something was added behind its end")
                record = _record(path, number, line)
                digest.update(line)
                form = record.fields["form"].decode() if record is not None and number == 0 else form
                if record is not None:
                    yield record
    except GZIP_FAULTS as error:
        raise _bad(path, gzip_fault(error)) from error
    except OSError as error:
        raise BadBackup(f"{path} can't be read: {error.strerror}; name a file that 'shardqa backup' wrote") from error
    if number < 0:
        raise _bad(path, "it is empty")
    if form == str(FORM):
        raise _bad(path, "its digest is of another text, so it was edited")


def count(path: Path) -> Counter[str]:
    """Reads the whole file; returns how many records of each kind it has. Raises BadBackup as `records` does."""
    return Counter(record.kind.value for record in records(path))


def _end(digest: str) -> bytes:
    return b'{"kind":"end","sha256":"%s"}\n' % digest.encode()


def _record(path: Path, number: int, line: bytes) -> Record | None:
    """Reads a record; None for a last line."""
    try:
        values = json.loads(line)
        if (name := values.pop("kind")) == "end":
            return None
        record = Record(RecordKind(name), {name: _raw(value) for name, value in values.items()})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _bad(path, f"record {number} can't be read ({error})") from error
    if number == 0:
        form = record.fields.get("form", b"none").decode()
        if record.kind is not RecordKind.ABOUT or form not in READ:
            raise _bad(path, f"its form is {form}, and {' or '.join(READ)} is read here; use the newer shardqa")
    return record


def _bad(path: Path, why: str) -> BadBackup:
    return BadBackup(f"{path} is not as it was written: {why}; take another copy of it, or another backup")


def _shown(value: Value) -> Any:
    if isinstance(value, list):
        return [_shown(one) for one in value]
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _raw(value: Any) -> Value:
    """Returns the value that `_shown` wrote. Raises ValueError, TypeError."""
    if isinstance(value, list):
        return [_raw(one) for one in value]
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)
