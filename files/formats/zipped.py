"""Reads zip files within bounds, so that a zip bomb is refused."""

import io
import zipfile
from collections.abc import Iterator

from shardqa.errors import BadDocument
from shardqa.files.formats.faults import readable

MAX_UNPACKED = 1_000_000_000  # bytes of all that a zip file holds, unpacked
MAX_ENTRIES = 10_000
MAX_RATIO = 200  # of what an entry unpacks to, past FREE bytes: text is packed to a tenth, tables to a fiftieth
FREE = 20_000_000  # bytes that may be packed as tightly as they like
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")  # a stream of OLE that holds the zip file
MANIFEST = "META-INF/manifest.xml"  # of OpenDocument: says how a password hides its files
PROTECTED = "it is protected by a password; save it without one"


def check(packed: bytes) -> zipfile.ZipFile:
    """Opens the zip file in `packed`. Raises BadDocument for other bytes, and for more content than a document has."""
    refuse_protected(packed)
    with readable("a whole zip file"):
        archive = zipfile.ZipFile(io.BytesIO(packed))
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise BadDocument(f"{len(entries):,} files in it, at most {MAX_ENTRIES:,} are read; split it")
    total = sum(entry.file_size for entry in entries)
    if total > MAX_UNPACKED:
        raise BadDocument(f"it unpacks to {total:,} bytes, at most {MAX_UNPACKED:,} are read; split it")
    for entry in entries:
        if entry.file_size > FREE and entry.file_size > MAX_RATIO * max(entry.compress_size, 1):
            raise BadDocument(
                f"{entry.filename[:80]!r} unpacks to {entry.file_size:,} bytes from {entry.compress_size:,}, "
                f"more than {MAX_RATIO} times as many; that is no text"
            )
    if MANIFEST in archive.namelist() and b"encryption-data" in content(archive, MANIFEST):
        raise BadDocument(PROTECTED)
    return archive


def refuse_protected(content: bytes) -> None:
    """Raises BadDocument for the zip file of Office that a password wraps."""
    if content.startswith(OLE) and ENCRYPTED in content:
        raise BadDocument(PROTECTED)


def content(archive: zipfile.ZipFile, name: str) -> bytes:
    """Returns one file of the archive, never more than the size that `check` has seen. Raises BadDocument."""
    if name not in archive.NameToInfo:
        raise BadDocument(f"it has no file {name!r}")
    with readable(f"a zip file with a {name!r}"):
        return archive.read(name)


def files(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yields the names of the archive's files, in order, without folders."""
    yield from sorted({entry.filename for entry in archive.infolist() if not entry.is_dir()})
