"""One file being read: its bytes as text, decompressed, bounded, with every fault told as a reason to skip.

An Opened belongs to the thread that reads it; others may only look at the number `position`.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from shardqa.answer import Document
from shardqa.config import MAX_DOCUMENT
from shardqa.errors import BadDocument, DocumentTooLarge

MAX_WHOLE = 512 * 1024 * 1024  # bytes of a file that can only be read whole (SQuAD JSON) and holds many documents
MAX_MARKUP = 50_000_000  # bytes of an HTML or Markdown file, whose text is usually a fraction of it
SNIFF = 8192  # bytes looked at for a NUL, the sign of a binary file
CHUNK = 1 << 16  # bytes read at a time


@dataclass(frozen=True, slots=True)
class Skipped:
    place: str  # file, or file and line
    reason: str


Item: TypeAlias = Document | Skipped


class Opened:
    """A file under the name it is known by: `name` is its path below the folder that was given, without suffixes."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.shown = printable(str(path))
        self.name = name
        self.position = 0  # bytes of the file on disk read so far
        self._raw: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed by close()
        self._bytes: BinaryIO = gzip.GzipFile(fileobj=self._raw) if path.suffix == ".gz" else self._raw  # type: ignore[assignment]

    def close(self) -> None:
        self._bytes.close()
        self._raw.close()

    def document(self, text: str, title: str = "", id_: str | None = None) -> Item:
        """A document of this file, or the reason why it is none."""
        id_ = self.name if id_ is None else id_
        place = self.shown if id_ == self.name else f"{self.shown} ({printable(id_)})"
        if not text.strip():
            return Skipped(place, "no text in it")
        if "\x00" in text:
            return Skipped(place, "binary: it holds NUL characters")
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            return Skipped(place, f"lone surrogate at character {error.start}; save it as UTF-8")
        if size > MAX_DOCUMENT:
            return Skipped(place, too_large(size))
        return Document(id=id_, text=text, title=title or id_.rpartition("/")[2], source=self.shown)

    def chunks(self) -> Iterator[bytes]:
        """The content as it comes. Raises BadDocument for a damaged gzip file, or a binary one."""
        first = True
        while True:
            try:
                chunk = self._bytes.read(CHUNK)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise BadDocument(f"not a whole gzip file: {error}") from error
            if first and b"\x00" in chunk[:SNIFF]:
                raise BadDocument("binary: it holds NUL bytes" + _utf16(chunk))
            first = False
            self.position = self._raw.tell()
            if not chunk:
                return
            yield chunk

    def text(self, most: int = MAX_MARKUP) -> str:
        """The whole content, newlines as \\n, without a byte order mark. Raises BadDocument, DocumentTooLarge."""
        content = bytearray()
        for chunk in self.chunks():
            content += chunk
            if len(content) > most:
                raise DocumentTooLarge(f"more than {most:,} bytes; split it")
        try:
            decoded = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadDocument(f"invalid UTF-8 at byte {error.start}; save it as UTF-8") from None
        return decoded.replace("\r\n", "\n").replace("\r", "\n")

    def lines(self) -> Iterator[str]:
        """Line by line without line ends, each at most MAX_DOCUMENT bytes. Raises BadDocument, DocumentTooLarge."""
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
        pieces: list[str] = []  # of the line that has not ended yet
        seen = length = 0
        for chunk in self.chunks():
            *whole, rest = _decode(decoder, chunk, seen).split("\n")
            seen += len(chunk)
            if whole:
                yield "".join([*pieces, whole[0]])
                yield from whole[1:]
                pieces, length = [], 0
            pieces.append(rest)
            length += len(rest)
            if length > MAX_DOCUMENT:
                raise DocumentTooLarge(f"a line of more than {MAX_DOCUMENT:,} characters; split it")
        last = "".join([*pieces, _decode(decoder, b"", seen, final=True)])
        if last:
            yield last


def _decode(decoder: io.IncrementalNewlineDecoder, chunk: bytes, seen: int, final: bool = False) -> str:
    try:
        return decoder.decode(chunk, final)
    except UnicodeDecodeError:
        raise BadDocument(f"invalid UTF-8 after byte {seen}; save it as UTF-8") from None


def printable(name: str) -> str:
    """A name of the file system, or of JSON, as text that UTF-8 can hold: neither promises that."""
    return name.encode(errors="surrogateescape" if _is_escaped(name) else "replace").decode(errors="replace")


def _is_escaped(name: str) -> bool:
    try:
        name.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _utf16(start: bytes) -> str:
    return " (UTF-16? save it as UTF-8)" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else ""


def too_large(size: int) -> str:
    return f"{size:,} bytes of text are more than {MAX_DOCUMENT:,}; split it"
