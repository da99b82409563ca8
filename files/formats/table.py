"""CSV and TSV: the first row that fills the columns names them, each further row is a document, and what stands above.

A row reads as a sentence (`Ferry Berta has Length: 44 m.`), which is what a reader of questions can use. With a column
`text` that column alone is the text, and the others are metadata, as in a line of JSON.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain, count, islice

from shardqa.checks import MAX_DOCUMENT
from shardqa.errors import BadDocument
from shardqa.files.composer import Composer, cells_of, one_line, sentence
from shardqa.files.formats import header
from shardqa.files.pairs import are_pairs
from shardqa.files.source_file import Item, Skipped, SourceFile
from shardqa.places import Place

DELIMITERS = ",;\t|"
SAMPLE = 50  # lines that the delimiter is told from
TITLES = ("title", "name", "subject")
MAX_VALUE = 500  # characters of a cell that is kept as metadata beside the sentence that has it anyway
csv.field_size_limit(MAX_DOCUMENT)


def read(source: SourceFile) -> Iterator[Item]:
    lines = source.lines()
    sample = list(islice(lines, SAMPLE))
    rows = csv.reader((f"{line}\n" for line in chain(sample, lines)), delimiter=_delimiter(sample), strict=False)
    numbered_rows = _numbered(source, rows)
    start = list(islice(numbered_rows, header.LOOKED_AT))
    first = [(number, row) for number, row in (one for one in start if not isinstance(one, Skipped))]
    if not first:
        raise BadDocument("no text in it")
    if len(start) < header.LOOKED_AT and are_pairs([row for _, row in first]):
        yield from _form(source, first)
        return
    at = header.row_of([row for _, row in first]) or 0
    above, names = first[:at], [one_line(cell) for cell in first[at][1]]
    if above:
        yield from _form(source, above, source.name.rpartition("/")[2], f"{source.name}/{above[0][0]}")
    counts: Counter[str] = Counter()
    for one in chain(start, numbered_rows):
        if isinstance(one, Skipped):
            yield one
        elif one[0] > first[at][0]:
            yield _document(source, *one, names, counts)
    if not counts:
        raise BadDocument("one row only: the first names the columns, each further one is a document")


def _form(
    source: SourceFile, rows: list[tuple[int, list[str]]], title: str = "", id_: str | None = None
) -> Iterator[Item]:
    """Yields a table of names and values as one document."""
    composer = Composer()
    for n, (number, row) in enumerate(rows):
        composer.at(row=number)
        composer.outside(row, close=n > 0)
    yield from source.composed(composer, title, id_)


def _numbered(source: SourceFile, rows: Iterator[list[str]]) -> Iterator[tuple[int, list[str]] | Skipped]:
    """Yields (number from 1, row) of rows that are not blank."""
    for number in count(1):
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield Skipped(f"{source.label} row {number}", f"not a row of CSV: {error}")
            continue
        if row is None:
            return
        if any(cell.strip() for cell in row):
            yield number, row


def _delimiter(sample: list[str]) -> str:
    """Returns the character that cuts most lines into the same number of cells, more than one."""
    best, most = ",", 0
    for delimiter in DELIMITERS:
        counts = Counter(len(row) for row in csv.reader((f"{line}\n" for line in sample), delimiter=delimiter) if row)
        columns, lines = counts.most_common(1)[0] if counts else (1, 0)
        if columns > 1 and lines * columns > most:
            best, most = delimiter, lines * columns
    return best


def _document(source: SourceFile, number: int, row: list[str], names: list[str], counts: Counter[str]) -> Item:
    columns = {name.casefold(): value.strip() for name, value in zip(names, row, strict=False)}
    cells = None if columns.get("text") else cells_of(names, row)
    place = Place(row=number, cells=cells)
    text = columns.get("text") or sentence(cells or ())
    own = one_line(columns.get("id", "")) or str(number)
    counts[own] += 1
    id_ = f"{source.name}/{own}" + (f" ({counts[own]})" if counts[own] > 1 else "")
    title = next((one_line(columns[name]) for name in TITLES if columns.get(name)), "")
    stem = source.name.rpartition("/")[2]
    metadata = {
        name: value.strip()
        for name, value in zip(names, row, strict=False)
        if name and name.casefold() != "text" and ("text" in columns or len(value) <= MAX_VALUE)
    }
    item = source.document(text, title or f"{stem}, row {number}", id_, [(0, place)], metadata)
    return Skipped(f"{source.label} row {number}", item.reason) if isinstance(item, Skipped) else item
