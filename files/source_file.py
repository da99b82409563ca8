"""One file being read: its bytes as text, decompressed, bounded, with every fault as a reason to skip it.

It may lie on disk, inside an archive or a message, or in a request's body. A SourceFile belongs to the thread that
reads it; others may only look at the number `position`.
"""

import codecs
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeAlias

from shardqa import checks
from shardqa.errors import BadDocument, DocumentTooLarge
from shardqa.files.composer import Composer
from shardqa.files.encodings import GUESS, bom, decoded, encoding_name, encoding_of, guessed
from shardqa.places import Mark
from shardqa.schema import Document

MAX_WHOLE = 512 * 1024 * 1024  # bytes of a file that can only be read whole (SQuAD JSON) and holds many documents
MAX_BINARY = 256 * 1024 * 1024  # bytes of a PDF, a word processor's file or an archive, which are read whole
MAX_MARKUP = 50_000_000  # bytes of an HTML or Markdown file, whose text is usually a fraction of it
MAX_RATIO = 1_000  # of a gzip file's content to its own size, past the first MAX_MARKUP bytes: deflate's own is 1,032
SNIFF = 8192  # bytes looked at for a NUL, the sign of a binary file
STRUCK_TOLD, STRUCK_SHOWN = 10, 80  # pieces that are told as struck out; characters of each
CHUNK = 1 << 16  # bytes read at a time
TEXT_FIELD = "text"  # of an object of JSON
MAX_DEPTH = 3  # archives within archives, messages within messages
BY_OCR = "'shardqa ingest --ocr' reads such pages, and an upload with ocr=true"
GZIP_FAULTS = (gzip.BadGzipFile, EOFError, zlib.error)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a part of one, that gives no document."""

    place: str  # file, or file and line
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A text that a document lacks; the document is taken without it."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Textless:
    """A file without text of its own: a picture, a font, a program's output."""

    place: str
    kind: str  # in the plural, as it is counted: "pictures"

    @property
    def reason(self) -> str:
        return f"{self.kind} hold no text that is read{f'; {BY_OCR}' * (self.kind == 'pictures')}"


@dataclass(frozen=True, slots=True)
class Recognized:
    """How far the reading is of a file whose pages' text is recognized."""

    page: int
    pages: int


Item: TypeAlias = Document | Skipped | Lost | Textless | Recognized
Inner: TypeAlias = Callable[["SourceFile"], Iterator[Item]]


class SourceFile:
    """A file being read; `name` is its path below the given folder, and its documents' id."""

    def __init__(
        self, raw: BinaryIO, name: str, label: str, origin: str = "", inner: Inner | None = None, depth: int = 0
    ) -> None:
        self.ocr, self.text_field = False, TEXT_FIELD  # whether text in pictures is recognized; of JSON
        self.name = name
        self.label = printable(label)  # as people know it: in messages, and as the documents' source
        self.origin = origin  # by which a document is known to come from the same place again; empty: from nowhere
        self.position = 0  # bytes of the file on disk handed on so far, without what was only read ahead
        self.depth = depth
        self.guess = ""  # says what its encoding was taken for, where that was a guess
        self._inner = inner
        self._raw = raw
        is_gzip = name.lower().endswith(".gz")
        self._bytes: BinaryIO = gzip.GzipFile(fileobj=raw) if is_gzip else raw  # type: ignore[assignment]

    @classmethod
    def open(cls, path: Path, name: str, inner: Inner | None = None, ocr: bool = False, text: str = TEXT_FIELD) -> Self:
        """Opens a file on disk. Raises BadDocument."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would wait for its writer
        except OSError as error:
            raise BadDocument(f"can't be read: {error.strerror}") from error
        raw = open(descriptor, "rb")  # noqa: SIM115 - closed by close()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raw.close()
            raise BadDocument("a pipe, socket or device, not a file")
        source = cls(raw, name, str(path), printable(os.path.abspath(path)), inner)
        source.ocr, source.text_field = ocr, text
        return source

    @classmethod
    def of_bytes(
        cls, content: bytes, name: str, label: str, origin: str = "", inner: Inner | None = None, ocr: bool = False
    ) -> "SourceFile":
        source = cls(io.BytesIO(content), name, label, origin, inner)
        source.ocr = ocr
        return source

    def close(self) -> None:
        self._bytes.close()
        self._raw.close()

    # ---- what becomes of it

    def document(
        self,
        text: str,
        title: str = "",
        id_: str | None = None,
        marks: Sequence[Mark] = (),
        metadata: dict[str, Any] | None = None,
    ) -> Document | Skipped:
        """Returns a document of this file, or a Skipped with the reason."""
        id_ = self.name if id_ is None else printable(id_)
        place = self.label if id_ == self.name else f"{self.label} ({id_})"
        if "\x00" in text:
            return Skipped(place, "binary: it holds NUL characters")
        try:
            checks.document("", text)
        except (BadDocument, DocumentTooLarge) as fault:
            return Skipped(place, str(fault))
        return Document(
            id=id_,
            text=text,
            title=printable(title) or _stem(id_),
            source=self.label,
            origin=self.origin,
            places=list(marks),
            metadata=metadata or {},
        )

    def composed(
        self, composer: Composer, title: str = "", id_: str | None = None, metadata: dict[str, Any] | None = None
    ) -> Iterator[Item]:
        """Yields the document, and what of it is lost, each once."""
        yield self.document(composer.text, title, id_, composer.marks, metadata)
        if struck := [*dict.fromkeys(" ".join(words.split()) for words in composer.struck if words.strip())]:
            shown = ", ".join(repr(words[:STRUCK_SHOWN]) for words in struck[:STRUCK_TOLD])
            composer.lost.append(f"struck out, and left out: {shown}{', …' * (len(struck) > STRUCK_TOLD)}")
        yield from (Lost(self.label, reason) for reason in dict.fromkeys(composer.lost))

    def inside(self, name: str, content: bytes) -> Iterator[Item]:
        """Yields the documents of a file within this one; its suffix tells the format."""
        if self._inner is None or self.depth >= MAX_DEPTH:
            yield Skipped(f"{self.label}/{printable(name)}", f"more than {MAX_DEPTH} files in one another; unpack it")
            return
        raw = io.BytesIO(content)
        one = SourceFile(raw, f"{self.name}/{name}", f"{self.label}/{name}", self.origin, self._inner, self.depth + 1)
        one.ocr, one.text_field = self.ocr, self.text_field
        yield from self._inner(one)

    def advance(self, share: float) -> None:
        """Sets the progress of a file that was read whole and gives many documents: the `share` that it has given."""
        self.position = max(self.position, int(share * self._raw.tell()))

    # ---- its content

    def chunks(self, text: bool = True) -> Iterator[bytes]:
        """Yields the content in parts. Raises BadDocument for a damaged gzip file, or (`text`) a binary one."""
        first, size = True, 0
        while True:
            self.position = self._raw.tell()
            chunk = self._unpacked(CHUNK)
            if first and text and b"\x00" in chunk[:SNIFF] and bom(chunk) is None:
                raise BadDocument("binary: it holds NUL bytes")
            first = False
            size += len(chunk)
            if size > MAX_MARKUP and size > MAX_RATIO * self._raw.tell():
                raise BadDocument(f"it unpacks to more than {MAX_RATIO:,} times its size; that is no text")
            if not chunk:
                return
            yield chunk

    def peek(self, size: int) -> bytes:
        """Returns the first bytes without passing them. Raises BadDocument."""
        try:
            return self._unpacked(size)
        finally:
            self.rewind()

    def _unpacked(self, size: int) -> bytes:
        try:
            return self._bytes.read(size)
        except GZIP_FAULTS as error:
            raise BadDocument(gzip_fault(error)) from error

    def rewind(self) -> None:
        """Goes back to the beginning."""
        self._bytes.seek(0)
        self.position = 0

    def read_all(self, most: int, text: bool = False) -> bytes:
        """Returns all bytes; they count as read at the file's end, or by `advance`.

        Raises BadDocument, DocumentTooLarge.
        """
        content = bytearray()
        for chunk in self.chunks(text):
            content += chunk
            if len(content) > most:
                raise DocumentTooLarge(f"more than {most:,} bytes; split it")
        self.position = 0
        return bytes(content)

    def text(self, most: int = MAX_MARKUP) -> str:
        """Returns the whole text, newlines as \\n, without a byte order mark. Raises BadDocument, DocumentTooLarge."""
        content = self.read_all(most, text=True)
        encoding = encoding_of(content[:GUESS], is_complete=len(content) <= GUESS)
        self.guess = guessed(encoding)
        return decoded(content, encoding)

    def lines(self) -> Iterator[str]:
        """Yields lines without their ends, each at most MAX_DOCUMENT bytes. Raises BadDocument, DocumentTooLarge."""
        chunks = self.chunks()
        start = bytearray()
        for chunk in chunks:
            start += chunk
            if len(start) >= GUESS:
                break
        encoding = encoding_of(bytes(start), is_complete=len(start) < GUESS)
        self.guess = guessed(encoding)
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
        pieces: list[str] = []  # of the line that has not ended yet
        offset = length = 0
        for chunk in _chain(bytes(start), chunks):
            *whole, rest = _decode(decoder, chunk, offset, encoding).split("\n")
            offset += len(chunk)
            if whole:
                whole[0] = "".join([*pieces, whole[0]])
                before, ahead = self.position, self._raw.tell()
                for n, line in enumerate(whole):
                    self.position = before + (ahead - before) * n // len(whole)
                    yield line
                pieces, length = [], 0
            pieces.append(rest)
            length += len(rest)
            checks.length(length, "one line")
        last = "".join([*pieces, _decode(decoder, b"", offset, encoding, final=True)])
        if last:
            yield last


def _chain(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    for first in range(0, len(start), CHUNK):
        yield start[first : first + CHUNK]
    yield from chunks


def _decode(decoder: io.IncrementalNewlineDecoder, chunk: bytes, at: int, encoding: str, final: bool = False) -> str:
    try:
        return decoder.decode(chunk, final)
    except UnicodeDecodeError:
        raise BadDocument(f"invalid {encoding_name(encoding)} after byte {at}; save it as UTF-8") from None


def gzip_fault(error: Exception) -> str:
    """Returns the sentence for one of GZIP_FAULTS, without the bytes that were met: they say nothing."""
    return f"not a whole gzip file: {str(error).partition(' (')[0]}"


def printable(name: str) -> str:
    """Returns a name of the file system or of JSON as text that UTF-8 can hold: neither promises that."""
    try:
        return name.encode(errors="surrogateescape").decode(errors="replace")
    except UnicodeEncodeError:
        return name.encode(errors="replace").decode()


def _stem(name: str) -> str:
    """Returns `leave` for `handbook/leave.md.gz`; the whole name where nothing would be left of it."""
    last = name.rpartition("/")[2]
    bare = last[:-3] if last.lower().endswith(".gz") else last
    stem, dot, suffix = bare.rpartition(".")
    return stem if dot and stem and suffix.isalnum() and len(suffix) <= 8 and not suffix.isdigit() else bare
