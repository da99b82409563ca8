"""Word's doc of 1997 to 2003: the text of its pieces, from the streams that olefile finds in it ([MS-DOC] 2.4.1)."""

import io
import re
import struct
from collections.abc import Iterator

import olefile

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer
from shardqa.files.formats.faults import readable
from shardqa.files.source_file import MAX_BINARY, Item, SourceFile

ENCRYPTED, SECOND_TABLE = 0x0100, 0x0200  # flags of the file's head
FLAGS, CLX = 0x0A, 0x01A2  # where flags and the place of the pieces stand
COMPRESSED = 1 << 30  # a piece of bytes in cp1252, at half its offset
FIELD = re.compile("([\x13\x14\x15])")  # begins, result, ends
MAX_FIELDS = 100  # within one another
PLAIN = str.maketrans({"\x0b": "\n", "\x0c": "\r", "\x1e": "-", "\x1f": "", "\xa0": " ", "\x00": ""})
DRAWN = re.compile("[\x01-\x06\x08\x0e-\x1d]")  # stands for pictures, notes and the like


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY)
    with readable("a Word file of 1997 or later", "; save it as .docx"), olefile.OleFileIO(io.BytesIO(content)) as file:
        main = file.openstream("WordDocument").read()
        flags = struct.unpack_from("<H", main, FLAGS)[0]
        if flags & ENCRYPTED:
            raise BadDocument("it is encrypted; save it without a password")
        table = file.openstream("1Table" if flags & SECOND_TABLE else "0Table").read()
        title = file.get_metadata().title
        text = _text(main, table)
    composer = Composer()
    for block, is_row in _blocks(text):
        composer.block(block, close=is_row)
    yield from source.composed(composer, title.decode("utf-8", "replace") if isinstance(title, bytes) else "")


def _text(main: bytes, table: bytes) -> str:
    """Returns the characters of the main text, then of notes and the other parts."""
    place, size = struct.unpack_from("<II", main, CLX)
    pieces = table[place : place + size]
    at = 0
    while pieces[at] == 1:  # formats that pieces share
        at += 3 + struct.unpack_from("<H", pieces, at + 1)[0]
    length = struct.unpack_from("<I", pieces, at + 1)[0]
    count = (length - 4) // 12
    ends = struct.unpack_from(f"<{count + 1}I", pieces, at + 5)
    texts: list[str] = []
    total = 0
    for n in range(count):
        offset = struct.unpack_from("<I", pieces, at + 5 + 4 * (count + 1) + 8 * n + 2)[0]
        characters = ends[n + 1] - ends[n]
        if characters <= 0:
            continue
        if offset & COMPRESSED:
            begin = (offset & ~COMPRESSED) // 2
            texts.append(main[begin : begin + characters].decode("cp1252", "replace"))
        else:
            texts.append(main[offset : offset + 2 * characters].decode("utf-16-le", "replace"))
        total += characters
        if total > len(main):
            raise ValueError("pieces that are larger than the file")
    return "".join(texts)


def _without_fields(text: str) -> str:
    """Returns the text with fields' results and without their instructions; fields may nest."""
    pieces: list[str] = []
    instructing: list[bool] = []  # of the fields that are open: whether their result has not begun
    for piece in FIELD.split(text):
        if piece == "\x13":
            instructing.append(True)
        elif piece == "\x14" and instructing:
            instructing[-1] = False
        elif piece == "\x15" and instructing:
            instructing.pop()
        elif piece and piece not in "\x14\x15" and True not in instructing[-MAX_FIELDS:]:
            pieces.append(piece)
    return "".join(pieces)


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yields (text of a paragraph or of a table's row, whether it is a row below another)."""
    was_row = False
    plain = DRAWN.sub("", _without_fields(text).translate(PLAIN))
    for paragraph in re.split("\r|(?<=\x07)\x07", plain):
        cells = [" ".join(cell.split()) for cell in paragraph.split("\x07")]
        is_row = len(cells) > 1
        words = " | ".join(cell for cell in cells if cell) if is_row else paragraph.strip()
        if words:
            yield words, is_row and was_row
        was_row = is_row
