"""One file being read: its bytes as text, decompressed, bounded, with every fault as a reason to skip it.

It may lie on disk, inside an archive or a message, or in a request's body. A SourceFile belongs to the thread that
reads it; others may only look at the number `position`.
"""

import codecs
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from shardqa import checks
from shardqa.errors import BadDocument, DocumentTooLarge
from shardqa.loader.composer import Composer
from shardqa.places import Mark
from shardqa.schema import Document

MAX_WHOLE = 512 * 1024 * 1024  # bytes of a file that can only be read whole (SQuAD JSON) and holds many documents
MAX_BINARY = 256 * 1024 * 1024  # bytes of a PDF, a word processor's file or an archive, which are read whole
MAX_MARKUP = 50_000_000  # bytes of an HTML or Markdown file, whose text is usually a fraction of it
MAX_RATIO = 1_000  # of a gzip file's content to its own size, past the first MAX_MARKUP bytes: deflate's own is 1,032
SNIFF = 8192  # bytes looked at for a NUL, the sign of a binary file
GUESS = 1 << 20  # bytes in which a text shows whether it is UTF-8
GUESS_BY = 1 << 16  # bytes that another encoding is told from
FEW = 4  # characters outside of ASCII from which no other encoding can be told apart
CHUNK = 1 << 16  # bytes read at a time
MAX_DEPTH = 3  # archives within archives, messages within messages

ENCODINGS = re.findall(  # those that people's files are in; among all that Python knows, short texts find exotic ones
    r"\S+",
    "cp1252 cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 iso8859_2 iso8859_15 koi8_r koi8_u mac_roman cp437 "
    "cp850 shift_jis euc_jp iso2022_jp gb18030 big5 euc_kr tis_620",
)
WESTERN = (  # French, German and Nordic, Spanish and Portuguese and Italian
    "àâæçéèêëîïôœùûüÿ",
    "äöüßåæøéðþáíóúý",
    "áàâãçéèêíìîñóòôõúùûü",
)
CENTRAL = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ")
BOMS = (  # the longer first: UTF-32's begins as UTF-16's does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a part of one, of which nothing was taken."""

    place: str  # file, or file and line
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Text that is missing from documents that were taken all the same."""

    place: str
    reason: str


Item: TypeAlias = Document | Skipped | Lost
Inner: TypeAlias = Callable[["SourceFile"], Iterator[Item]]


class NotAFile(Exception):
    """Something in the file system that is no regular file."""


class SourceFile:
    """A file under the name it is known by: `name` is its path below the folder that was given, its documents' id."""

    def __init__(
        self, raw: BinaryIO, name: str, shown: str, origin: str = "", inner: Inner | None = None, depth: int = 0
    ) -> None:
        self.name = name
        self.shown = printable(shown)  # as people know it: in messages, and as the documents' source
        self.origin = origin  # by which a document is known to come from the same place again; empty: from nowhere
        self.position = 0  # bytes of the file on disk handed on so far, without what was only read ahead
        self.depth = depth
        self._inner = inner
        self._raw = raw
        is_gzip = name.lower().endswith(".gz")
        self._bytes: BinaryIO = gzip.GzipFile(fileobj=raw) if is_gzip else raw  # type: ignore[assignment]

    @classmethod
    def open(cls, path: Path, name: str, inner: Inner | None = None) -> "SourceFile":
        """A file on disk. Raises NotAFile, OSError."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would wait for its writer
        raw = open(descriptor, "rb")  # noqa: SIM115 - closed by close()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raw.close()
            raise NotAFile("a pipe, socket or device, not a file")
        return cls(raw, name, str(path), printable(os.path.abspath(path)), inner)

    @classmethod
    def of_bytes(
        cls, content: bytes, name: str, shown: str, origin: str = "", inner: Inner | None = None
    ) -> "SourceFile":
        return cls(io.BytesIO(content), name, shown, origin, inner)

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
    ) -> Item:
        """A document of this file, or the reason why it is none."""
        id_ = self.name if id_ is None else id_
        place = self.shown if id_ == self.name else f"{self.shown} ({printable(id_)})"
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
            source=self.shown,
            origin=self.origin,
            places=list(marks),
            metadata=metadata or {},
        )

    def composed(
        self, composer: Composer, title: str = "", id_: str | None = None, metadata: dict[str, Any] | None = None
    ) -> Item:
        return self.document(composer.text, title, id_, composer.marks, metadata)

    def inside(self, name: str, content: bytes) -> Iterator[Item]:
        """The documents of a file that this one holds, by its own suffix."""
        if self._inner is None or self.depth >= MAX_DEPTH:
            yield Skipped(f"{self.shown}/{printable(name)}", f"more than {MAX_DEPTH} files in one another; unpack it")
            return
        raw = io.BytesIO(content)
        yield from self._inner(
            SourceFile(raw, f"{self.name}/{name}", f"{self.shown}/{name}", self.origin, self._inner, self.depth + 1)
        )

    def advance(self, share: float) -> None:
        """Progress of a file that was read whole and gives many documents: what part of it has been given."""
        self.position = max(self.position, int(share * self._raw.tell()))

    # ---- its content

    def chunks(self, text: bool = True) -> Iterator[bytes]:
        """The content as it comes. Raises BadDocument for a damaged gzip file, or (`text`) a binary one."""
        first, size = True, 0
        while True:
            self.position = self._raw.tell()
            try:
                chunk = self._bytes.read(CHUNK)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise BadDocument(f"not a whole gzip file: {error}") from error
            if first and text and b"\x00" in chunk[:SNIFF] and _bom(chunk) is None:
                raise BadDocument("binary: it holds NUL bytes")
            first = False
            size += len(chunk)
            if size > MAX_MARKUP and size > MAX_RATIO * self._raw.tell():
                raise BadDocument(f"it unpacks to more than {MAX_RATIO:,} times its size; that is no text")
            if not chunk:
                return
            yield chunk

    def read_all(self, most: int, text: bool = False) -> bytes:
        """All bytes, which count as read once the file is done, or `advance` says so.

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
        """The whole content, newlines as \\n, without a byte order mark. Raises BadDocument, DocumentTooLarge."""
        return decoded(self.read_all(most, text=True))

    def lines(self) -> Iterator[str]:
        """Line by line without line ends, each at most MAX_DOCUMENT bytes. Raises BadDocument, DocumentTooLarge."""
        chunks = self.chunks()
        start = bytearray()
        for chunk in chunks:
            start += chunk
            if len(start) >= GUESS:
                break
        encoding = encoding_of(bytes(start), is_complete=len(start) < GUESS)
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
        pieces: list[str] = []  # of the line that has not ended yet
        seen = length = 0
        for chunk in _chain(bytes(start), chunks):
            *whole, rest = _decode(decoder, chunk, seen, encoding).split("\n")
            seen += len(chunk)
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
        last = "".join([*pieces, _decode(decoder, b"", seen, encoding, final=True)])
        if last:
            yield last


def _chain(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    for first in range(0, len(start), CHUNK):
        yield start[first : first + CHUNK]
    yield from chunks


# ---- encodings


def decoded(content: bytes) -> str:
    """Bytes as text, newlines as \\n, without a byte order mark. Raises BadDocument."""
    encoding = encoding_of(content[:GUESS], is_complete=len(content) <= GUESS)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadDocument(f"invalid {_encoding_name(encoding)} at byte {error.start}; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def encoding_of(start: bytes, is_complete: bool) -> str:
    """The encoding of a text by its first bytes: UTF-8 wherever it can be. Raises BadDocument."""
    if (marked := _bom(start)) is not None:
        return marked
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, final=is_complete)
        return "utf-8-sig"
    except UnicodeDecodeError as error:
        encoding = _guess(start) if error.reason != "unexpected end of data" else None  # that one was cut
        if encoding is None:
            raise BadDocument(f"invalid UTF-8 at byte {error.start}; save it as UTF-8") from None
        return encoding


def _guess(start: bytes) -> str | None:
    """The encoding of what is not all UTF-8; None where it is UTF-8 with damage, or nothing fits."""
    text = start.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    if sum(character > "\x7f" for character in text) - damaged >= damaged:
        return None
    if damaged < FEW:  # too few for statistics: what browsers take, if it can be that
        try:
            start.decode("cp1252")
            return _western_or_central(start) or "cp1252"
        except UnicodeDecodeError:
            pass
    from charset_normalizer import from_bytes

    found = from_bytes(start[:GUESS_BY], cp_isolation=ENCODINGS).best()
    told = str(found.encoding) if found is not None else None
    return _western_or_central(start) or told if told in ("cp1250", "cp1252") else told


def _western_or_central(start: bytes) -> str | None:
    """cp1252 or cp1250, which differ in few letters and are each other's likeliest mistake; None for either.

    By the one in which no sign stands in a word, else the one whose letters are all of one alphabet.
    """
    western, central = (start.decode(encoding, "replace") for encoding in ("cp1252", "cp1250"))
    signs = _signs_in_words(western) - _signs_in_words(central)
    if signs:
        return "cp1250" if signs > 0 else "cp1252"
    fits = _is_of_one(western, WESTERN), _is_of_one(central, CENTRAL)
    return {(True, False): "cp1252", (False, True): "cp1250"}.get(fits)


def _is_of_one(text: str, alphabets: tuple[str, ...]) -> bool:
    letters = {letter for letter in text.lower() if letter > "\x7f" and letter.isalpha()}
    return any(letters <= set(alphabet) for alphabet in alphabets)


def _signs_in_words(text: str) -> int:
    """Characters between letters that are none: of a text in another encoding, like m³yn for młyn."""
    return sum(
        not own.isalpha() and own > "\x7f" and before.isalpha() and after.isalpha()
        for before, own, after in zip(text, text[1:], text[2:], strict=False)
    )


def _bom(start: bytes) -> str | None:
    return next((encoding for mark, encoding in BOMS if start.startswith(mark)), None)


def _encoding_name(encoding: str) -> str:
    return "UTF-8" if encoding == "utf-8-sig" else encoding


def _decode(decoder: io.IncrementalNewlineDecoder, chunk: bytes, seen: int, encoding: str, final: bool = False) -> str:
    try:
        return decoder.decode(chunk, final)
    except UnicodeDecodeError:
        raise BadDocument(f"invalid {_encoding_name(encoding)} after byte {seen}; save it as UTF-8") from None


def printable(name: str) -> str:
    """A name of the file system, or of JSON, as text that UTF-8 can hold: neither promises that."""
    return name.encode(errors="surrogateescape" if _is_escaped(name) else "replace").decode(errors="replace")


def _is_escaped(name: str) -> bool:
    try:
        name.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _stem(name: str) -> str:
    """`leave` of `handbook/leave.md.gz`; a name of which nothing would be left stays."""
    last = name.rpartition("/")[2]
    bare = last[:-3] if last.lower().endswith(".gz") else last
    stem, dot, suffix = bare.rpartition(".")
    return stem if dot and stem and suffix.isalnum() and len(suffix) <= 8 and not suffix.isdigit() else bare
