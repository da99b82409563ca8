"""CSV and TSV: the first row names the columns, each further row is a document.

A row reads as a sentence (`Ferry Berta has Length: 44 m.`), which is what a reader of questions can use. With a column
`text` that column alone is the text, and the others are metadata, as in a line of JSON.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice

from shardqa.config import MAX_DOCUMENT
from shardqa.errors import BadDocument
from shardqa.loader.composer import one_line, sentence
from shardqa.loader.source_file import Item, Skipped, SourceFile
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
    number, header = 0, list[str]()
    met: Counter[str] = Counter()
    while True:
        number += 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield Skipped(f"{source.shown} row {number}", f"not a row of CSV: {error}")
            continue
        if row is None:
            break
        if not any(cell.strip() for cell in row):
            continue
        if not header:
            header = [one_line(cell) for cell in row]
        else:
            yield _document(source, number, header, row, met)
    if not header:
        raise BadDocument("no text in it")
    if not met:
        raise BadDocument("one row only: the first names the columns, each further one is a document")


def _delimiter(sample: list[str]) -> str:
    """The one that cuts most lines into the same number of cells, more than one."""
    best, most = ",", 0
    for delimiter in DELIMITERS:
        counts = Counter(len(row) for row in csv.reader((f"{line}\n" for line in sample), delimiter=delimiter) if row)
        columns, lines = counts.most_common(1)[0] if counts else (1, 0)
        if columns > 1 and lines * columns > most:
            best, most = delimiter, lines * columns
    return best


def _document(source: SourceFile, number: int, header: list[str], row: list[str], met: Counter[str]) -> Item:
    columns = {name.casefold(): value.strip() for name, value in zip(header, row, strict=False)}
    text = columns.get("text") or sentence(header, row)
    own = one_line(columns.get("id", "")) or str(number)
    met[own] += 1
    id_ = f"{source.name}/{own}" + (f" ({met[own]})" if met[own] > 1 else "")
    title = next((one_line(columns[name]) for name in TITLES if columns.get(name)), "")
    stem = source.name.rpartition("/")[2]
    metadata = {
        name: value.strip()
        for name, value in zip(header, row, strict=False)
        if name and name.casefold() != "text" and ("text" in columns or len(value) <= MAX_VALUE)
    }
    item = source.document(text, title or f"{stem}, row {number}", id_, [(0, Place(row=number))], metadata)
    return Skipped(f"{source.shown} row {number}", item.reason) if isinstance(item, Skipped) else item
