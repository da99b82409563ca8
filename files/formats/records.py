"""Records of binary workbooks (xls, xlsb) that the library of workbooks passes over: notes, text boxes, merged cells.

A number that goes beyond its record is what is there of it: damaged files raise nothing here.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from shardqa.errors import BadDocument
from shardqa.files.composer import one_line
from shardqa.files.formats import zipped

Cell = tuple[int, int]  # row and column, from 0
SHEET, AUTHOR, NOTE, NOTE_TEXT, MERGED = 156, 632, 635, 637, 176  # of an xlsb
FORM, STYLE, STYLES, LAST_STYLE = 44, 47, 617, 618
FIGURES = (2, 5, 9)  # cells that hold numbers
PASSWORD, BOUND, BEGIN, OBJECT, TEXT, MORE, OLD_NOTE = 0x2F, 0x85, 0x809, 0x5D, 0x1B6, 0x3C, 0x1C  # of an xls
OLD_FORM, OLD_STYLE, MANY, OLD_FIGURES = 0x41E, 0xE0, 0xBD, (0x06, 0xBD, 0x203, 0x27E)
MODERN = 0x600  # version of an xls whose notes are objects


def of_xlsb(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields (kind, body) of each record: kind and length are groups of seven bits, then comes the body."""
    at = 0
    while at < len(content):
        head: list[int] = []
        for most in (2, 4):
            value = shift = 0
            while at < len(content) and shift < 7 * most:
                byte = content[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if not byte & 0x80:
                    break
            head.append(value)
        yield head[0], content[at : at + head[1]]
        at += head[1]


def named_sheets(book: bytes) -> list[tuple[str, str]]:
    """Returns (name, relation) of each sheet of an xlsb."""
    return [_words(body, 8)[::-1] for kind, body in of_xlsb(book) if kind == SHEET]


def merged(sheet: bytes) -> list[tuple[Cell, Cell]]:
    bodies = [body for kind, body in of_xlsb(sheet) if kind == MERGED]
    ranges = [[_number(body, at, 4) for at in (0, 4, 8, 12)] for body in bodies]
    return [((top, first), (bottom, last)) for top, bottom, first, last in ranges]


def styles(part: bytes) -> "Forms":
    forms = Forms()
    are_of_cells = False
    for kind, body in of_xlsb(part):
        are_of_cells = kind == STYLES or (are_of_cells and kind != LAST_STYLE)
        if kind == FORM:
            forms.own[_number(body, 0, 2)] = _words(body, 2)[0]
        elif kind == STYLE and are_of_cells:
            forms.used.append(_number(body, 2, 2))
    return forms


def styled(sheet: bytes) -> Iterator[tuple[Cell, int]]:
    """Cells that hold numbers, with their styles."""
    row = 0
    for kind, body in of_xlsb(sheet):
        row = _number(body, 0, 4) if kind == 0 else row
        if kind in FIGURES:
            yield (row, _number(body, 0, 4)), _number(body, 4, 3)


def notes(part: bytes) -> dict[Cell, str]:
    authors: list[str] = []
    words: dict[Cell, str] = {}
    at = (0, 0)
    for kind, body in of_xlsb(part):
        if kind == AUTHOR:
            authors.append(_words(body, 0)[0])
        elif kind == NOTE:
            at = _number(body, 4, 4), _number(body, 12, 4)
        elif kind == NOTE_TEXT:
            words[at] = unsigned(one_line(_words(body, 1)[0]), authors)
    return words


def unsigned(words: str, authors: Collection[str]) -> str:
    """Returns a note without the author that Excel writes before it."""
    author = next((one for one in authors if one and words.startswith(f"{one}:")), "")
    return words.removeprefix(f"{author}:").strip()


def _words(body: bytes, at: int) -> tuple[str, str]:
    """Returns a string of an xlsb, and the one behind it."""
    strings: list[str] = []
    for _ in range(2):
        end = at + 4 + 2 * min(_number(body, at, 4), len(body))
        strings.append(body[at + 4 : end].decode("utf-16-le", "replace"))
        at = end
    return strings[0], strings[1]


def _number(body: bytes, at: int, size: int) -> int:
    return int.from_bytes(body[at : at + size], "little")


@dataclass(slots=True)
class Forms:
    own: dict[int, str] = field(default_factory=dict)  # forms of numbers, by theirs
    used: list[int] = field(default_factory=list)  # the number of each style's form


@dataclass(slots=True)
class Sheet:
    styles: dict[Cell, int] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)  # of objects in an xls: boxes, once notes have theirs
    notes: dict[Cell, tuple[int, str]] = field(default_factory=dict)  # numbers of objects, and authors
    old: dict[Cell, str] = field(default_factory=dict)  # notes of before Excel 97

    def placed(self) -> dict[Cell, str]:
        """Returns the notes by their cells; takes them out of the texts."""
        own = {at: unsigned(one_line(self.texts.pop(id_, "")), [who]) for at, (id_, who) in self.notes.items()}
        return {at: words for at, words in (self.old | own).items() if words}


def sheets(stream: bytes) -> tuple[dict[str, Sheet], Forms]:
    """Returns the sheets of an xls by name. Raises BadDocument for a workbook with a password."""
    sheet_of: dict[str, Sheet] = {}
    forms = Forms()
    starts: dict[int, str] = {}
    sheet, version, id_, left, at = Sheet(), MODERN, 0, 0, 0
    while at + 4 <= len(stream):
        kind, length = _number(stream, at, 2), _number(stream, at + 2, 2)
        body = stream[at + 4 : at + 4 + length]
        if kind == PASSWORD:
            raise BadDocument(zipped.PROTECTED)
        if kind == BEGIN:
            version = _number(body, 0, 2) if at == 0 else version
            sheet = sheet_of.setdefault(starts[at], Sheet()) if at in starts else sheet
        elif kind == BOUND:
            name = body[7 : 7 + body[6]].decode("cp1252", "replace") if version < MODERN else _text(body[7:])
            starts[_number(body, 0, 4)] = name
        elif kind == OBJECT:
            id_ = _number(body, 6, 2)
        elif kind == TEXT:
            left, sheet.texts[id_] = _number(body, 10, 2), ""
        elif kind == MORE and left > 0:
            words = _text(body)[:left]
            left -= len(words)
            sheet.texts[id_] += words
        elif kind == OLD_NOTE:
            cell = _number(body, 0, 2), _number(body, 2, 2)
            if version < MODERN:
                sheet.old[cell] = one_line(body[6:].decode("cp1252", "replace"))
            else:
                sheet.notes[cell] = _number(body, 6, 2), _text(body[10:])
        elif kind in OLD_FIGURES:
            row, first = _number(body, 0, 2), _number(body, 2, 2)
            for n in range((length - 4) // 6 if kind == MANY else 1):
                sheet.styles[row, first + n] = _number(body, 4 + 6 * n, 2)
        elif kind == OLD_FORM:
            form = body[3:].decode("cp1252", "replace") if version < MODERN else _text(body[4:])
            forms.own[_number(body, 0, 2)] = form
        elif kind == OLD_STYLE:
            forms.used.append(_number(body, 2, 2))
        at += 4 + length
    return sheet_of, forms


def _text(body: bytes) -> str:
    """Returns the characters behind a byte that says how wide they are."""
    return body[1:].decode("utf-16-le" if body[:1] == b"\1" else "latin-1", "replace").rstrip("\0")
