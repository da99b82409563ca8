"""Counts the cells that a workbook's sheets span, ahead of the library that reserves memory for them all.

A sheet of two cells, one of them in the last row and column, spans 17 thousand million; reserving those ends the
process. What is not understood here is left to that library, which refuses it.
"""

import re
import zipfile
from collections.abc import Iterator

from shardqa.errors import DocumentTooLarge
from shardqa.loader.formats import zipped

MAX_CELLS = 5_000_000  # of one sheet, from its first row and column to its last: five columns of all rows there can be
CELL = re.compile(rb"""<(?:\w+:)?(c|row)\b[^>]*?\sr\s*=\s*["']\s*([A-Za-z]*)(\d+)""")
ODS = re.compile(rb"<table:(table-row|(?:covered-)?table-cell|table)\b([^>]*)>")
REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated\s*=\s*["'](\d+)""")
DIGITS = 9  # of a row's number; more are more than there can be


def check(archive: zipfile.ZipFile) -> None:
    """Raises DocumentTooLarge, BadDocument."""
    for name in zipped.files(archive):
        content = zipped.content(archive, name)
        if name.endswith(".bin"):
            rows, columns = _binary(content)
        elif name.endswith("content.xml"):
            rows, columns = _opendocument(content)
        elif content[:1] in (b"<", b"\xef", b" ", b"\n", b"\r", b"\t"):
            rows, columns = _xml(content)
        else:
            continue
        if rows * columns > MAX_CELLS:
            raise DocumentTooLarge(
                f"{name[:80]!r} spans {rows:,} rows and {columns:,} columns, at most {MAX_CELLS:,} cells are read; "
                "delete what is far from the rest, or split it"
            )


def _xml(content: bytes) -> tuple[int, int]:
    rows = columns = 1
    for kind, letters, digits in CELL.findall(content):
        rows = max(rows, int(digits[:DIGITS]))
        if kind == b"c":
            columns = max(columns, _column(letters))
    return rows, columns


def _column(letters: bytes) -> int:
    found = 0
    for letter in letters[:8].upper():
        found = found * 26 + letter - 64
    return found


def _opendocument(content: bytes) -> tuple[int, int]:
    """Rows and cells may be repeated; those without a value are not reserved at the end of a row or a sheet."""
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
    found = REPEATED.search(attributes)
    return int(found[1][:DIGITS]) if found else 1


def _binary(content: bytes) -> tuple[int, int]:
    """Measures a sheet of xlsb: records of type, length and content; rows are of type 0, cells of 1 to 11."""
    rows = columns = 1
    for kind, first in _records(content):
        if kind == 0:
            rows = max(rows, first + 1)
        elif kind <= 11:
            columns = max(columns, first + 1)
    return rows, columns


def _records(content: bytes) -> Iterator[tuple[int, int]]:
    """(type, the first number in it)."""
    at = 0
    while at < len(content):
        kind = content[at]
        at += 1
        if kind & 0x80 and at < len(content):
            kind = kind & 0x7F | (content[at] & 0x7F) << 7
            at += 1
        length = shift = 0
        while at < len(content) and shift < 28:
            byte = content[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        if kind <= 11:
            yield kind, int.from_bytes(content[at : at + 4], "little")
        at += length
