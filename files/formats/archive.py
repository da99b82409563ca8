"""Archives: zip, tar, tar.gz and the like: each file in them as if it lay in a folder of the archive's name.

Nothing is written to disk. Bounded: files, bytes, ratio, archives within archives (source_file.MAX_DEPTH).
"""

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from shardqa.errors import BadDocument, DocumentTooLarge
from shardqa.files.formats import chats, zipped
from shardqa.files.source_file import MAX_BINARY, Item, Skipped, SourceFile, printable

MAX_PACKED = 256 * 1024 * 1024  # bytes of an archive: it is held in memory


def read_zip(source: SourceFile) -> Iterator[Item]:
    archive = zipped.check(source.read_all(MAX_PACKED))
    names = list(zipped.files(archive))
    if chats.is_export(names):
        yield from chats.read_export(source, archive, names)
        return
    for n, name in enumerate(names):
        source.advance(n / len(names))
        if (inner := _name(name)) is None:
            continue
        try:
            content = zipped.content(archive, name)
        except BadDocument as error:
            yield Skipped(f"{source.label}/{printable(inner)}", str(error))
            continue
        yield from source.inside(inner, content)


def read_tar(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_PACKED)
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
            yield from _members(source, archive, len(content))
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError) as error:
        raise BadDocument(f"not a whole tar file: {error}") from error


def _members(source: SourceFile, archive: tarfile.TarFile, size: int) -> Iterator[Item]:
    total = 0
    for count, member in enumerate(archive):
        total += member.size
        if count >= zipped.MAX_ENTRIES:
            raise BadDocument(f"more than {zipped.MAX_ENTRIES:,} files in it; the rest was left out; split it")
        if total > min(zipped.MAX_UNPACKED, max(zipped.FREE, zipped.MAX_RATIO * size)):
            raise DocumentTooLarge(f"it unpacks to more than {total:,} bytes from {size:,}; split it")
        inner = _name(member.name)
        if inner is None or member.isdir():
            continue
        if not member.isfile():
            yield Skipped(f"{source.label}/{printable(inner)}", "a link or a device, not a file")
        elif member.size > MAX_BINARY:
            yield Skipped(f"{source.label}/{printable(inner)}", f"more than {MAX_BINARY:,} bytes; split it")
        else:
            file = archive.extractfile(member)
            assert file is not None, "a regular file has content"
            yield from source.inside(inner, file.read())


def _name(name: str) -> str | None:
    """Returns a member's name as part of an id; None for hidden files and those that Macs add."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
    if not parts or any(part.startswith(".") for part in parts) or parts[0] == "__MACOSX":
        return None
    return "/".join(parts)
