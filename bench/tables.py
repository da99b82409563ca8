"""Tables in six formats, each cell asked for: how often the answer is that cell.

    python bench/tables.py [--wrong] [--only stock-docx]

Each table is written as xlsx, html, docx, pdf, md and csv, each of these is a corpus of its own on a cluster of one
shard, and is asked with what `ask` asks by default. A wide table has 36 cells beside the first column.
"""

import asyncio
import csv
import io
import tempfile
import zipfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Annotated

import typer
from common import settings_of, temporary_cluster
from reportlab.lib import colors, pagesizes, styles
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.files.folders import SourceFiles
from shardqa.schema import Document

FORMATS = ("xlsx", "html", "docx", "pdf", "md", "csv")
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _package(main: str, kind: str) -> dict[str, str]:
    """The parts of a file of Office that name its main part."""
    of = f"application/vnd.openxmlformats-officedocument.{kind}.main+xml"
    return {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Override PartName="/{main}" '
        f'ContentType="{of}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r1" Target="{main}" Type="{RELATION}/officeDocument"/></Relationships>',
    }


DOCX = _package("word/document.xml", "wordprocessingml.document")
XLSX = {
    **_package("xl/workbook.xml", "spreadsheetml.sheet"),
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATION}"><sheets>'
    '<sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="r1" Target="worksheets/sheet1.xml" Type="{RELATION}/worksheet"/></Relationships>',
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A table, and a question for each column but the first."""

    title: str
    rows: list[list[str]]
    questions: list[str]


def _table(title: str, rows: str, questions: str) -> Asked:
    return Asked(title, [line.split(", ") for line in rows.strip().splitlines()], questions.strip().splitlines())


TABLES = {
    "stock": _table(
        "Stock",
        """
Article, Maker, Cost, Number left, Finish, Bought on, Height (cm)
Elm stool, Harding Joinery, 129.5, 17, matt, 2022-04-11, 45
Copper kettle, Vane Foundry, 58, 9, bright, 2022-09-03, 27.5
Linen curtain, Osprey Mills, 74.25, 22, plain, 2021-12-19, 240
Slate clock, Harding Joinery, 96, 3, rough, 2023-01-08, 31
Willow basket, Tarn Crafts, 19.9, 41, woven, 2022-06-27, 38.5
Pewter jug, Vane Foundry, 44, 12, dull, 2021-10-30, 22
""",
        """
Who is the maker of the {}?
What is the cost of the {}?
How many of the {} are left?
What is the finish of the {}?
When was the {} bought?
What is the height of the {}?
""",
    ),
    "staff": _table(
        "Staff of the office",
        """
Name, Department, Extension, Room, City, Joined on, Days of leave
Rhea Colm, Accounts, 4417, 2.09, Dunmore, 2017-05-02, 28
Piet Sorensen, Harbour, 4420, 1.14, Lisk, 2019-11-18, 25
Ada Nwosu, Legal, 4431, 3.01, Dunmore, 2021-02-15, 30
Tomas Brill, Repairs, 4402, 0.07, Carrow, 2015-08-24, 31
Ingrid Vale, Tickets, 4456, 1.22, Lisk, 2022-10-10, 24
Marek Oduya, Kitchen, 4463, 0.19, Carrow, 2020-03-30, 26
""",
        """
In which department is {}?
What is the extension of {}?
In which room is {}?
In which city does {} work?
When did {} join?
How many days of leave has {}?
""",
    ),
    "boats": _table(
        "Boats for hire",
        """
Boat, Owner, Rent per day, Berths, Hull, Length (m), Harbour
Heron, Moss and Sons, 140 crowns, 4, steel, 9.8, Ottery
Kittiwake, Lena Dahl, 95 crowns, 2, oak, 6.4, Quell
Petrel, Ottery Sailing Club, 210 crowns, 8, aluminium, 13.2, Ottery
Shearwater, Jon Birk, 175 crowns, 6, steel, 11.7, Sund
Turnstone, Moss and Sons, 88 crowns, 3, larch, 5.9, Quell
Whimbrel, Asa Lindt, 160 crowns, 5, plastic, 10.1, Sund
""",
        """
Who owns the {}?
What is the rent of the {} per day?
How many berths has the {}?
Of what is the hull of the {}?
How long is the {}?
In which harbour is the {}?
""",
    ),
    "small": _table(
        "Opening hours",
        """
Office, Opens, Closes
Archive, 8:30, 16:00
Registry, 9:15, 17:30
Cash desk, 10:00, 15:45
Library, 11:30, 20:00
Canteen, 7:00, 14:30
""",
        """
When does the {} open?
When does the {} close?
""",
    ),
}


def written(table: Asked, format: str) -> bytes:
    """The table as a file of this format, below its title where the format has titles."""
    buffer = io.BytesIO()
    if format == "xlsx":
        cells = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in table.rows)
        sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{cells}</sheetData></worksheet>'
        _zip(buffer, {**XLSX, "xl/worksheets/sheet1.xml": sheet})
    elif format == "docx":
        rows = "".join(f"<w:tr>{''.join(f'<w:tc>{_line(cell)}</w:tc>' for cell in row)}</w:tr>" for row in table.rows)
        heading = _line(table.title, '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>')
        body = f"<w:body>{heading}<w:tbl>{rows}</w:tbl></w:body>"
        _zip(buffer, {**DOCX, "word/document.xml": f'<w:document xmlns:w="{WORD}">{body}</w:document>'})
    elif format == "pdf":
        grid_lines = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
        title = Paragraph(table.title, styles.getSampleStyleSheet()["Heading1"])
        page = SimpleDocTemplate(buffer, pagesize=pagesizes.landscape(pagesizes.A4))
        page.build([title, Table(table.rows, style=grid_lines)])
    elif format == "csv":
        csv.writer(lines := io.StringIO()).writerows(table.rows)
        return lines.getvalue().encode()
    elif format == "md":
        ruled = [table.rows[0], ["---"] * len(table.rows[0]), *table.rows[1:]]
        return "\n".join([f"# {table.title}", "", *(f"|{'|'.join(row)}|" for row in ruled)]).encode()
    else:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
        return f"<html><body><h1>{table.title}</h1><table>{rows}</table></body></html>".encode()
    return buffer.getvalue()


def _zip(buffer: io.BytesIO, parts: dict[str, str]) -> None:
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)


def _line(text: str, style: str = "") -> str:
    return f"<w:p>{style}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def _cell(text: str) -> str:
    is_number = text.replace(".", "", 1).isdigit()
    return f"<c><v>{text}</v></c>" if is_number else f'<c t="inlineStr"><is><t>{escape(text)}</t></is></c>'


async def measured(engine: Engine, name: str, format: str, folder: Path) -> tuple[int, int, int, list[str]]:
    """(cells, right ones, passages, what is wrong) of a table in a format."""
    table, corpus = TABLES[name], f"{name}-{format}"
    path = folder / f"{name}.{format}"
    path.write_bytes(written(table, format))
    documents = [item for item in SourceFiles([path]) if isinstance(item, Document)]
    passages = 0
    for document in documents:
        passages += (await engine.documents.put(document.model_copy(update={"corpus": corpus}))).passages
    wrong: list[str] = []
    asked = 0
    for row in table.rows[1:]:
        for question, value in zip(table.questions, row[1:], strict=True):
            about = row[0] if table.title.startswith("Staff") else row[0].lower()
            answer = await engine.ask(question.format(about), corpus=corpus)
            asked += 1
            if answer.answer is None or answer.answer.strip(".") != value:
                best = answer.n_best[0].answer if answer.n_best else ""
                wrong.append(f"{question.format(about)} {value!r}: {answer.answer!r} {best!r} {answer.score:.2f}")
    return asked, asked - len(wrong), passages, wrong


async def _main(redis: str, only: str, wrong: bool) -> None:
    async with await Engine.connect(Settings(redis=redis, timeout=60)) as engine:
        with tempfile.TemporaryDirectory() as folder:
            for name in TABLES:
                for format in FORMATS:
                    if only and only not in f"{name}-{format}":
                        continue
                    asked, right, passages, faults = await measured(engine, name, format, Path(folder))
                    print(f"{name:8} {format:5} {right} of {asked} right, {passages} passages", flush=True)
                    for fault in faults if wrong else []:
                        print(f"    {fault}", flush=True)


def main(
    wrong: Annotated[bool, typer.Option(help="print what is wrong")] = False,
    only: Annotated[str, typer.Option(help="part of `table-format`")] = "",
) -> None:
    with temporary_cluster(1) as cluster:
        asyncio.run(_main(settings_of(cluster).redis, only, wrong))


if __name__ == "__main__":
    typer.run(main)
