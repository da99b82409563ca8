"""Workbooks (xlsx, xlsm, xlsb, xls, ods): each row of each sheet as a sentence, with sheet and row.

python-calamine reads them all: it gives values as the cells hold them, dates as dates.
"""

import datetime
import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, ZipError

from shardqa.loader.composer import Composer, one_line, sentence
from shardqa.loader.formats import extent, header, zipped
from shardqa.loader.formats.faults import readable
from shardqa.loader.source_file import MAX_BINARY, Item, Lost, SourceFile

FAULTS = (CalamineError, ZipError, ValueError, OSError, OverflowError)
NUMBER = re.compile(
    rb"""<c\b(?P<head>[^>]*)>(?P<formula>(?:<f\b[^>]*(?:/>|>[^<]*</f>))?)<v>(?P<value>[^<]{1,400})</v>"""
)
TYPE = re.compile(rb"""\st\s*=\s*["']([^"']*)["']""")
STYLE = re.compile(rb"""\ss\s*=\s*["'][^"']*["']""")
LAST_DAY = 2_958_465  # 31 December 9999


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY)
    if content[:2] == b"PK":
        extent.check(zipped.check(content))
    with readable("a workbook", *FAULTS):
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = list(book.sheet_names)
    composer = Composer()
    lost: list[Lost] = []
    for name in names:
        try:
            rows = _rows(book, name, content)
        except FAULTS as error:
            lost.append(Lost(f"{source.label}, sheet {name}", f"it can't be read: {type(error).__name__} {error}"))
            continue
        _add(composer, name, [[cell_text(cell) for cell in row] for row in rows])
    yield source.composed(composer)
    yield from lost


def _rows(book: CalamineWorkbook, name: str, content: bytes) -> list[list[Any]]:
    """Raises FAULTS."""
    try:
        return book.get_sheet_by_name(name).to_python(skip_empty_area=False)
    except FAULTS:
        if content[:2] != b"PK":
            raise
    whole = CalamineWorkbook.from_filelike(io.BytesIO(_mended(content)))
    return whole.get_sheet_by_name(name).to_python(skip_empty_area=False)


def _mended(content: bytes) -> bytes:
    """An xlsx whose cells are what they say: the library gives up a sheet for one number that is none."""
    packed = io.BytesIO()
    with zipped.check(content) as archive, zipfile.ZipFile(packed, "w") as mended:
        for name in zipped.files(archive):
            part = zipped.content(archive, name)
            mended.writestr(name, NUMBER.sub(_as_it_says, part) if name.startswith("xl/worksheets/") else part)
    return packed.getvalue()


def _as_it_says(cell: re.Match[bytes]) -> bytes:
    """The text of a number that is none; a number without its form where that is a date that never comes."""
    kind = TYPE.search(cell["head"])
    if kind is not None and kind[1] != b"n":
        return cell[0]
    try:
        is_odd = not abs(float(cell["value"])) <= LAST_DAY
    except ValueError:
        return b'<c%b t="str">%b<v>%b</v>' % (TYPE.sub(b"", cell["head"]), cell["formula"], cell["value"])
    head = STYLE.sub(b"", cell["head"]) if is_odd else cell["head"]
    return b"<c%b>%b<v>%b</v>" % (head, cell["formula"], cell["value"].strip())


def _add(composer: Composer, sheet: str, rows: list[list[str]]) -> None:
    names = _header(rows)
    columns = rows[names] if names is not None else []
    is_first = True
    for n, row in enumerate(rows):
        if n == names or not any(row):
            continue
        composer.at(sheet=sheet, row=n + 1)
        in_table = names is not None and n > names
        words = sentence(columns, row) if in_table else sentence([], row)
        composer.block(words, close=in_table and not is_first)
        is_first = not in_table


def _header(rows: list[list[str]]) -> int | None:
    """The row that names the columns; None where it holds numbers, or no row is below it."""
    n = header.row_of(rows)
    if n is None or any(_is_number(cell) for cell in rows[n] if cell):
        return None
    return n if any(any(below) for below in rows[n + 1 :]) else None


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
