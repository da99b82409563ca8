"""Reads what a workbook has beside its cells' values: notes, comments, text boxes, and which cells are merged.

The library of workbooks gives values alone, and merged cells of two formats of four.
"""

import io
import re
import zipfile
from dataclasses import dataclass, field
from typing import Any

import olefile
from lxml import etree

from shardqa.errors import BadDocument
from shardqa.files.composer import figures, one_line
from shardqa.files.formats import cell_counts, cell_formats, records, zipped
from shardqa.files.formats.ooxml import A, Package

Cell = tuple[int, int]  # row and column, from 0
KINDS = ("comments", "threadedComment", "drawing")  # of parts that belong to a sheet
MAX_REPEAT = 1_000  # of one cell, whose words are told
SAYS = re.compile(r"[^\d.,\s+-]")  # what is no figure of a number
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"


@dataclass(slots=True)
class Overlay:
    notes: dict[Cell, str] = field(default_factory=dict)
    boxes: list[str] = field(default_factory=list)
    merged: list[tuple[Cell, Cell]] = field(default_factory=list)  # first and last cell
    formats: dict[Cell, str] = field(default_factory=dict)  # of numbers, where these say more than the number does
    texts: dict[Cell, str] = field(default_factory=dict)  # what a cell says that is more than its value

    def part(self, start: int, stop: int) -> "Overlay":
        """Returns what stands in some columns, counted from the first of them."""
        notes = {(row, column - start): note for (row, column), note in self.notes.items() if start <= column < stop}
        merged = [((top, first - start), (bottom, last - start)) for (top, first), (bottom, last) in self.merged]
        return Overlay(notes, merged=[area for area in merged if 0 <= area[0][1] < stop - start])


def of_sheets(archive: zipfile.ZipFile) -> dict[str, Overlay]:
    """Returns what each sheet has beside its values, by the sheet's name."""
    if "content.xml" in archive.namelist():
        return _of_ods(zipped.content(archive, "content.xml"))
    package = Package(archive)
    return {name: _of_sheet(package, part) for name, part in cell_counts.named_sheets(archive)}


def _of_sheet(package: Package, part: str) -> Overlay:
    overlay = Overlay()
    threads: dict[Cell, list[str]] = {}
    if part.endswith(".bin"):
        overlay.merged += records.merged(package.bytes(part) or b"")
    for relation in package.relations(part).values():
        if relation.target.endswith(".bin") and relation.kind == "comments":
            overlay.notes |= records.notes(package.bytes(relation.target) or b"")
            continue
        root: Any = package.xml(relation.target) if relation.kind in KINDS else None
        for comment in root.iter("{*}comment") if root is not None else ():
            authors = root.xpath("*[local-name()='authors']/*/text()")
            words = one_line("".join(comment.itertext("{*}t")))
            overlay.notes[_at(comment.get("ref", ""))] = records.unsigned(words, authors)
        for comment in root.iter("{*}threadedComment") if root is not None else ():
            threads.setdefault(_at(comment.get("ref", "")), []).append(one_line("".join(comment.itertext("{*}text"))))
        for box in root.iter("{*}txBody") if root is not None else ():
            lines = ("".join(line.itertext(f"{A}t")) for line in box.iterfind(f"{A}p"))
            overlay.boxes.append("\n".join(line for line in lines if line.strip()))
    overlay.notes |= {at: " ".join(words) for at, words in threads.items()}  # whose old form tells of Excel's version
    return overlay


def _at(reference: str) -> Cell:
    letters = reference.rstrip("0123456789")
    return int(reference[len(letters) :][:9] or 1) - 1, cell_counts.column(letters.encode()) - 1


def _of_ods(content: bytes) -> dict[str, Overlay]:
    root = etree.fromstring(content, cell_counts.SAFE)
    tables = root.iter(f"{TABLE}table") if root is not None else ()
    return {table.get(f"{TABLE}name", ""): _of_table(table) for table in tables}


def _of_table(table: Any) -> Overlay:
    overlay = Overlay()
    row = 0
    for line in table.iter(f"{TABLE}table-row"):
        column = 0
        for cell in line.iterchildren(f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
            for note in cell.iterchildren("{*}annotation"):
                overlay.notes[row, column] = one_line(" ".join("".join(p.itertext()) for p in note.iter("{*}p")))
            words = one_line(" ".join("".join(p.itertext()) for p in cell.iterchildren("{*}p")))
            repeat = _count(cell, "number-columns-repeated")
            if cell.get(f"{OFFICE}value-type", "string") not in ("string", "boolean") and SAYS.search(words):
                overlay.texts |= {(row, column + n): words for n in range(min(repeat, MAX_REPEAT))}
            down, across = (_count(cell, f"number-{name}-spanned") for name in ("rows", "columns"))
            if down * across > 1:
                overlay.merged.append(((row, column), (row + down - 1, column + across - 1)))
            column += repeat
        row += _count(line, "number-rows-repeated")
    return overlay


def _count(element: Any, name: str) -> int:
    return figures(element.get(f"{TABLE}{name}"), 1)


def of_xls(content: bytes) -> dict[str, Overlay]:
    """Returns the same for an xls. Raises BadDocument for one with a password, and where no workbook is in it."""
    zipped.refuse_protected(content)
    with olefile.OleFileIO(io.BytesIO(content)) as file:
        stream = next((name for name in ("Workbook", "Book") if file.exists(name)), "")
        if not stream:  # the library would look for one in whatever is there, and take its words for lengths
            raise BadDocument("not a workbook that can be read: it has no stream of one")
        sheets, forms = records.sheets(file.openstream(stream).read())
    codes = cell_formats.telling(forms)
    return {
        name: Overlay(sheet.placed(), list(sheet.texts.values()), formats=cell_formats.of_cells(sheet.styles, codes))
        for name, sheet in sheets.items()
    }
