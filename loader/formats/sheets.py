"""Workbooks (xlsx, xlsm, xlsb, xls, ods): each row of each sheet as a sentence, with sheet and row.

python-calamine reads them all: it gives values as the cells hold them, dates as dates.
"""

import datetime
import io
from collections.abc import Iterator
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, ZipError

from shardqa.errors import BadDocument
from shardqa.loader.composer import Composer, one_line, sentence
from shardqa.loader.formats import extent, zipped
from shardqa.loader.source_file import MAX_BINARY, Item, Lost, SourceFile

MAX_HEADER_ROW = 20  # rows looked at for the one that names the columns: titles and blanks stand above it
FAULTS = (CalamineError, ZipError, ValueError, OSError)


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY)
    if content[:2] == b"PK":
        extent.check(zipped.check(content))
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = list(book.sheet_names)
    except FAULTS as error:
        raise BadDocument(f"not a workbook that can be read: {type(error).__name__} {error}") from error
    composer = Composer()
    lost: list[Lost] = []
    for name in names:
        try:
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        except FAULTS as error:
            lost.append(Lost(f"{source.shown}, sheet {name}", f"it can't be read: {type(error).__name__} {error}"))
            continue
        _add(composer, name, [[cell_text(cell) for cell in row] for row in rows])
    yield source.composed(composer)
    yield from lost


def _add(composer: Composer, sheet: str, rows: list[list[str]]) -> None:
    names = _header(rows)
    header = rows[names] if names is not None else []
    is_first = True
    for n, row in enumerate(rows):
        if n == names or not any(row):
            continue
        composer.at(sheet=sheet, row=n + 1)
        in_table = names is not None and n > names
        words = sentence(header, row) if in_table else sentence([], row)
        composer.block(words, close=in_table and not is_first)
        is_first = not in_table


def _header(rows: list[list[str]]) -> int | None:
    """The first row that names at least two columns, and has a row of as many cells or fewer below it."""
    for n, row in enumerate(rows[:MAX_HEADER_ROW]):
        filled = [cell for cell in row if cell]
        if len(filled) >= 2:
            has_rows = any(any(below) for below in rows[n + 1 :])
            return n if has_rows and not any(_is_number(cell) for cell in filled) else None
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def cell_text(value: Any) -> str:
    """A cell as a person reads it: 31 rather than 31.0, a date without midnight."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.12g}"
        case datetime.datetime() if value.time() == datetime.time():
            return value.date().isoformat()
        case datetime.datetime():
            return value.isoformat(sep=" ", timespec="minutes" if not value.second else "seconds")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return one_line(str(value))
