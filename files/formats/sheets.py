"""Workbooks (xlsx, xlsm, xlsb, xls, ods): each row of each sheet as a sentence, with sheet and row.

python-calamine reads them all: it gives values as the cells hold them, dates as dates.
"""

import datetime
import io
import re
import zipfile
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any, TypeAlias

from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, ZipError

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer, bars, joined, one_line, without_values
from shardqa.files.formats import cell_counts, cell_formats, header, zipped
from shardqa.files.formats.faults import apart, readable
from shardqa.files.formats.overlays import Cell, Overlay, of_sheets, of_xls
from shardqa.files.pairs import are_pairs, totals, unfolded
from shardqa.files.source_file import MAX_BINARY, Item, SourceFile

FAULTS = (CalamineError, ZipError, ValueError, OSError, OverflowError)
NUMBER = re.compile(
    rb"""<c\b(?P<head>[^>]*)>(?P<formula>(?:<f\b[^>]*(?:/>|>[^<]*</f>))?)<v>(?P<value>[^<]{1,400})</v>"""
)
TYPE = re.compile(rb"""\st\s*=\s*["']([^"']*)["']""")
STYLE = re.compile(rb"""\ss\s*=\s*["'][^"']*["']""")
UNNAMED = re.compile(r"(?:sheet|tabelle|feuil|hoja|foglio|blad|ark|arkusz|planilha|лист) ?\d*", re.IGNORECASE)
YEAR = re.compile(r"(?:19|20)\d\d")
LAST_DAY = 2_958_465  # 31 December 9999
Range: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY)
    formats: dict[str, dict[Cell, str]] = {}  # of cells, by sheet
    overlays: dict[str, Overlay] = {}
    composer = Composer()
    measured: set[str] | None = None
    with readable("a workbook"):
        is_zip = content[:2] == b"PK" or zipfile.is_zipfile(io.BytesIO(content))  # the library reads on from its end
        if is_zip and not content.startswith(zipped.OLE):
            with zipped.check(content) as archive:
                content = _packed(archive, others) if (others := cell_counts.checked(archive)) else content
                named = cell_counts.named_sheets(archive)
                measured = {one_line(name) for name, _ in named} if named[:1] != [("", "content.xml")] else None
                with apart(composer.lost, "the formats of numbers"):
                    formats = cell_formats.of_sheets(archive)
                with apart(composer.lost, "notes of cells and text boxes"):
                    overlays = of_sheets(archive)
        elif content.startswith(zipped.OLE):
            overlays = of_xls(content)
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        kinds = {sheet.name: sheet.typ for sheet in book.sheets_metadata}
        names = list(kinds)
    for name in names:
        losses: list[str] = []
        with apart(losses, f"sheet {name}"):
            if measured is not None and len(measured) < len(names) and one_line(name) not in measured:
                raise BadDocument("the list of sheets is damaged")
            rows, areas = _rows(book, name, content)
            overlay = overlays.get(name, Overlay())
            overlay.merged += areas
            texts = list(_texts(rows, overlay.formats | formats.get(name, {}), overlay.texts))
            _spread(texts, overlay.merged)
            for start, stop in _beside(texts):
                _Sheet(composer, name, [row[start:stop] for row in texts], overlay.part(start, stop)).add()
            for words in overlay.boxes:
                composer.block(words)
        if kinds[name] is not SheetTypeEnum.ChartSheet:  # one of an xlsb has no cells, and the library wants some
            composer.lost += losses
    has_title = len(names) == 1 and UNNAMED.fullmatch(names[0]) is None
    yield from source.composed(composer, names[0] if has_title else "")


def _texts(rows: list[list[Any]], formats: dict[Cell, str], texts: dict[Cell, str]) -> Iterator[list[str]]:
    """Yields the cells of each row as texts; empty ones fast, since a large sheet has mostly those."""
    for n, row in enumerate(rows):
        yield [
            "" if cell == "" else texts.get((n, column)) or _text(cell, formats.get((n, column)))
            for column, cell in enumerate(row)
        ]


def _text(cell: Any, code: str | None) -> str:
    return (code and cell_formats.text(cell, code)) or cell_text(cell)


def _rows(book: CalamineWorkbook, name: str, content: bytes) -> tuple[list[list[Any]], list[Range]]:
    """Returns (cells, ranges of merged ones). Raises what the library does."""
    try:
        return _cells(book, name)
    except FAULTS:
        if content[:2] != b"PK":
            raise
    return _cells(CalamineWorkbook.from_filelike(io.BytesIO(_mended(content))), name)


def _cells(book: CalamineWorkbook, name: str) -> tuple[list[list[Any]], list[Range]]:
    sheet = book.get_sheet_by_name(name)
    return sheet.to_python(skip_empty_area=False), list(sheet.merged_cell_ranges or ())


def _spread(rows: list[list[str]], areas: list[Range]) -> None:
    """Copies a merged cell's words to each place that it takes; a title over an otherwise empty row stays once."""
    left = cell_counts.MAX_CELLS  # ranges of a hostile file may lie on one another
    for (top, first), (bottom, last) in areas:
        words = rows[top][first] if top < len(rows) and first < len(rows[top]) else ""
        for row in rows[top : bottom + 1] if words and left > 0 else ():
            if any(row[:first]) or any(row[last + 1 :]):
                row[first : last + 1] = [words] * len(row[first : last + 1])
            left -= len(row)


def _mended(content: bytes) -> bytes:
    """Returns the xlsx with invalid numbers as texts: for one such cell the library gives up the whole sheet."""
    with zipped.check(content) as archive:
        every = {name: zipped.content(archive, name) for name in cell_counts.sheets(archive)}
        return _packed(archive, {name: NUMBER.sub(_as_it_says, part) for name, part in every.items()})


def _packed(archive: zipfile.ZipFile, others: dict[str, bytes]) -> bytes:
    """Returns the archive with the content of `others` in place of its own."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as anew:
        for name in zipped.files(archive):
            anew.writestr(name, others[name] if name in others else zipped.content(archive, name))
    return stream.getvalue()


def _as_it_says(cell: re.Match[bytes]) -> bytes:
    """Returns a cell with an invalid number as text, or without its format where that makes an impossible date."""
    kind = TYPE.search(cell["head"])
    if kind is not None and kind[1] != b"n":
        return cell[0]
    try:
        is_odd = not abs(float(cell["value"])) <= LAST_DAY
    except ValueError:
        return b'<c%b t="str">%b<v>%b</v>' % (TYPE.sub(b"", cell["head"]), cell["formula"], cell["value"])
    head = STYLE.sub(b"", cell["head"]) if is_odd else cell["head"]
    return b"<c%b>%b<v>%b</v>" % (head, cell["formula"], cell["value"].strip())


class _Sheet:
    """The rows of a sheet with their merged cells, read from the head downwards."""

    def __init__(self, composer: Composer, name: str, rows: list[list[str]], overlay: Overlay) -> None:
        self._composer = composer
        self._name = name
        self._rows = rows
        self._overlay = overlay
        self._notes = {n: sorted(notes) for n, notes in groupby(sorted(overlay.notes), key=lambda cell: cell[0])}

    def add(self) -> None:
        first = min((next(n for n, cell in enumerate(row) if cell) for row in self._rows if any(row)), default=0)
        lines = [row[first:] for row in self._rows if any(row)]
        is_form = are_pairs(lines) or unfolded(lines) is not lines
        top = None if is_form else _header(self._rows)
        bottom, names = (-1, []) if top is None else self._head(top)
        sums = {bottom + 1 + n for n in totals(self._rows[bottom + 1 :])} if top is not None else set[int]()
        is_first = True
        for n in range(max(len(self._rows), *(at + 1 for at in self._notes), 0)):
            row = self._rows[n] if n < len(self._rows) else []
            self._composer.at(sheet=self._name, row=n + 1)
            in_table = top is not None and n > bottom
            if any(row) and (top is None or n < top or in_table):
                if in_table and n not in sums:
                    self._composer.row(names, row, close=not is_first)
                else:
                    self._composer.outside(row[first:], close=n in sums)
                is_first = not in_table
            if n == bottom:
                self._composer.block(bars(without_values(names, self._rows[n + 1 :])))
            self._add_notes(n, row if in_table else [], names if top is not None and n >= top else [])
        self._composer.at(row=None)

    def _head(self, top: int) -> tuple[int, list[str]]:
        """Returns (last row of the head, the columns' names); the head goes down as far as merged cells in it."""
        ranges = [
            (first, last)
            for first, last in self._overlay.merged
            if first[0] == top and any(self._rows[top][first[1] : last[1] + 1])
        ]
        is_wide = any(last[1] > first[1] for first, last in ranges)
        has_corner = bool(self._rows[top][0]) != bool(self._rows[top + 1][0])
        bottom = max([top + has_corner, *(last[0] for _, last in ranges)]) if is_wide else top
        bottom = min(bottom, len(self._rows) - 1)
        return bottom, joined(self._rows[top : bottom + 1])

    def _add_notes(self, n: int, row: list[str], names: list[str]) -> None:
        for at, column in self._notes.get(n, ()):
            about = [*row[: min(column, 1)], *names[column : column + 1]]
            name = ", ".join(filter(None, about)) or f"cell {_reference(at, column)}"
            self._composer.pair(f"Note to {name}", self._overlay.notes[at, column], close=any(row))


def _beside(rows: list[list[str]]) -> list[tuple[int, int]]:
    """Returns the columns (first, behind the last) of tables beside one another, with an empty column in between.

    A table has rows of two columns and names them; its first column holds no numbers.
    """
    width = max(map(len, rows), default=0)
    filled = [any(n < len(row) and row[n] for row in rows) for n in range(width)]
    starts = [n for n in range(width) if filled[n] and not (n and filled[n - 1])]
    found = [(0, width)]
    for start in starts[1:]:
        left, right = ([row[found[-1][0] : start] for row in rows], [row[start:] for row in rows])
        if all(map(_stands_alone, (left, right))):
            found[-1:] = [(found[-1][0], start), (start, width)]
    return found


def _stands_alone(rows: list[list[str]]) -> bool:
    full = [row for row in rows if sum(map(bool, row)) > 1 and row[0]]
    return (
        len(full) > 1 and (are_pairs(full) or _header(rows) is not None) and not any(_is_number(row[0]) for row in full)
    )


def _reference(row: int, column: int) -> str:
    letters = ""
    while column >= 0:
        letters, column = chr(65 + column % 26) + letters, column // 26 - 1
    return f"{letters}{row + 1}"


def _header(rows: list[list[str]]) -> int | None:
    """Returns the row that names the columns; None where it holds numbers other than years, or is the last."""
    n = header.row_of(rows)
    n = n + 1 if n is not None and _is_title(rows[n : n + 3]) else n
    numbers = {cell for cell in rows[n] if _is_number(cell)} if n is not None else set()
    are_years = len(numbers) > 1 and all(YEAR.fullmatch(number) for number in numbers)
    if n is None or (numbers and not are_years):
        return None
    return n if any(any(below) for below in rows[n + 1 :]) else None


def _is_title(rows: list[list[str]]) -> bool:
    """Returns whether the first row titles several columns: others are named below it, over numbers."""
    if len(rows) < 3 or not all(rows[1]) or rows[0][0] in ("", rows[1][0]) or any(map(_is_number, rows[1])):
        return False
    return any(map(_is_number, rows[2])) and any(one and one == other for one, other in pairwise(rows[0]))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def cell_text(value: Any) -> str:
    """Returns a cell as a person reads it: 31 rather than 31.0, a date without midnight."""
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
        case datetime.timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
        case _:
            return one_line(str(value).replace("\0", ""))  # the library reads some old books a byte at a time
