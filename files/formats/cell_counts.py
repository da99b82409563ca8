"""Counts the cells that a workbook's sheets span, ahead of the library that reserves memory for them all.

A sheet of two cells, one of them in the last row and column, spans 17 thousand million; reserving those ends the
process. What is not understood here is left to that library, which refuses it.
"""

import posixpath
import re
import zipfile

from lxml import etree

from shardqa.errors import DocumentTooLarge
from shardqa.files.formats import records, zipped
from shardqa.files.formats.ooxml import Package

MAX_CELLS = 5_000_000  # of one sheet, from its first row and column to its last: five columns of all rows there can be
TAG = re.compile(rb"<(?:\w+:)?(c|row)\b([^>]*)>")
AT = re.compile(rb"""\sr\s*=\s*["']\s*([A-Za-z]*)(\d+)""")
BLANK = re.compile(rb"<c\b[^>]*(?<!/)>\s*<is>\s*(?:<r>\s*)?<t\b[^>]*>\s*</t>\s*(?:</r>\s*)?</is>\s*</c>")
SHARED = re.compile(rb"<c\b[^>]*(?<!/)>\s*<v>(\d{1,9})</v>\s*</c>")
TEXT = re.compile(rb"""\st\s*=\s*["']s["']""")
STRING = re.compile(rb"<si>(.*?)</si>|<si/>", re.DOTALL)
MARKUP = re.compile(rb"<[^>]*>")
WORKBOOK = re.compile(r"workbook\d*\.(?:xml|bin)")
ODS = re.compile(rb"<table:(table-row|(?:covered-)?table-cell|table)\b([^>]*)>")
REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated\s*=\s*["'](\d+)""")
DIGITS = 9  # of a row's number; more are more than there can be
SAFE = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)


def checked(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """Checks the size of all sheets; returns, by part, sheets to read in place of the file's: without far blank cells.

    Raises DocumentTooLarge, BadDocument.
    """
    others: dict[str, bytes] = {}
    for name in sheets(archive):
        content = zipped.content(archive, name)
        measure = _binary if name.endswith(".bin") else _opendocument if name.endswith("content.xml") else _xml
        rows, columns = measure(content)
        if rows * columns > MAX_CELLS and measure is _xml:
            content = others[name] = _without_blanks(archive, content)
            rows, columns = _xml(content)
        if rows * columns > MAX_CELLS:
            raise DocumentTooLarge(
                f"{name[:80]!r} spans {rows:,} rows and {columns:,} columns, at most {MAX_CELLS:,} cells are read; "
                "delete what is far from the rest, or split it"
            )
    return others


def sheets(archive: zipfile.ZipFile) -> list[str]:
    return [part for _, part in named_sheets(archive)]


def named_sheets(archive: zipfile.ZipFile) -> list[tuple[str, str]]:
    """Returns (name, part) of each sheet that the workbook names: printer settings and macros look alike."""
    names = {name.lower(): name for name in zipped.files(archive)}
    if "content.xml" in names:
        return [("", names["content.xml"])]
    package = Package(archive, recover=True)
    sheets: list[tuple[str, str]] = []
    for book in names:
        if WORKBOOK.fullmatch(posixpath.basename(book)):
            relations, root = package.relations(book), None if book.endswith(".bin") else package.xml(book)
            entries = root.iter("{*}sheet") if root is not None else ()
            used = [(entry.get("name", ""), value) for entry in entries for value in entry.values()]
            used = used or records.named_sheets(package.bytes(book) or b"")
            sheets += [(name, relations[one].target.lower()) for name, one in used if one in relations]
    return [(name, names[part]) for name, part in sheets if part in names]


def _without_blanks(archive: zipfile.ZipFile, content: bytes) -> bytes:
    """Returns the sheet without cells of nothing but blanks."""
    part = "xl/sharedStrings.xml"
    strings = STRING.findall(zipped.content(archive, part)) if part in zipped.files(archive) else []
    blank = {n for n, string in enumerate(strings) if not MARKUP.sub(b"", string).strip()}

    def kept(cell: re.Match[bytes]) -> bytes:
        is_blank = TEXT.search(cell[0]) is not None and int(cell[1]) in blank
        return b"" if is_blank else cell[0]

    return SHARED.sub(kept, BLANK.sub(b"", content))


def _xml(content: bytes) -> tuple[int, int]:
    """Measures a sheet of xlsx: (rows, columns) up to the last cell that is not empty."""
    rows = columns = 1
    row = at_column = 0
    for kind, attributes in TAG.findall(content):
        at = AT.search(attributes)
        if kind == b"row":
            row, at_column = int(at[2][:DIGITS]) if at else row + 1, 0
            continue
        at_column = column(at[1]) if at else at_column + 1
        row = int(at[2][:DIGITS]) if at else row
        if not attributes.endswith(b"/"):
            rows, columns = max(rows, row), max(columns, at_column)
    return rows, columns


def column(letters: bytes) -> int:
    number = 0
    for letter in letters[:8].upper():
        number = number * 26 + letter - 64
    return number


def _opendocument(content: bytes) -> tuple[int, int]:
    """Measures a sheet of ods: rows and cells may be repeated; empty ones at an end do not count."""
    most = (1, 1)
    row = column = rows = columns = repeat = 0

    def larger() -> tuple[int, int]:
        return max(most, (rows, columns), key=lambda size: size[0] * size[1])

    for kind, attributes in ODS.findall(content):
        if kind == b"table":
            most, row, rows, columns, column, repeat = larger(), 0, 0, 0, 0, 0
            continue
        times = _times(attributes)
        if kind == b"table-row":
            row += repeat
            column, repeat = 0, times
        else:
            column += times
            if not attributes.rstrip().endswith(b"/") or b"value" in attributes:
                rows, columns = row + repeat, max(columns, column)
    return larger()


def _times(attributes: bytes) -> int:
    match = REPEATED.search(attributes)
    return int(match[1][:DIGITS]) if match else 1


def _binary(content: bytes) -> tuple[int, int]:
    """Measures a sheet of xlsb by its records (type, length, content): rows have type 0, cells 1 to 11."""
    most = [1, 1]
    for kind, body in records.of_xlsb(content):
        if kind <= 11:
            most[kind > 0] = max(most[kind > 0], int.from_bytes(body[:4], "little") + 1)
    return most[0], most[1]
