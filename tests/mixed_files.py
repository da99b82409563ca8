"""Makes a folder of 200 files of all formats: in each of 192 one fact that no other has, at a known place; 8 are unfit.

    python -m tests.mixed_files FOLDER

The files are written by other libraries than those that read them where there are some (reportlab, XlsxWriter), by
the same ones otherwise. The same call makes the same facts.
"""

import csv
import gzip
import io
import json
import random
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import docx
import odfdo
import pptx
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate
from xlsxwriter import Workbook

OF_EACH = 8
SEEDS = Path(__file__).parents[1] / "seeds" / "documents"


@dataclass(frozen=True, slots=True)
class Fact:
    ferry: str
    passengers: int

    @property
    def sentence(self) -> str:
        return f"The ferry {self.ferry} carries {self.passengers} passengers."

    @property
    def question(self) -> str:
        return f"How many passengers does the ferry {self.ferry} carry?"


@dataclass(frozen=True, slots=True)
class Expected:
    """Where the fact of a file must be found."""

    kind: str
    fact: Fact
    document: str  # id
    place: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unfit:
    name: str
    reason: str  # is part of what is said of it


Maker = Callable[[Path, Fact, list[str]], tuple[str, dict[str, Any]]]
"""Writes a file `path` (without suffix); returns (document id below the folder, place)."""


def facts() -> Iterator[Fact]:
    """Names that no two facts share a word of."""
    random_ = random.Random(17)
    starts = re.findall(r"\S+", "Bal Cor Dun Fen Gar Hol Jas Kel Lor Mar Nor Ols Per Ros Tam Vel")
    ends = re.findall(r"\S+", "adine brook cester dovan elmira fiora gunda hestia ivara jolanta kirsten landa")
    names = [start + end for start in starts for end in ends]
    random_.shuffle(names)
    for number, name in enumerate(names):
        yield Fact(name, 101 + 7 * number)


def fillers() -> list[str]:
    """Paragraphs of the seeds, as what stands around a fact."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(SEEDS.glob("*.md"))]
    return [
        " ".join(p.split()) for text in texts for p in text.split("\n\n")[1:] if p[:1] not in "#-|>" and len(p) > 200
    ]


def make(folder: Path) -> tuple[list[Expected], list[Unfit]]:
    folder.mkdir(parents=True, exist_ok=True)
    given, around = facts(), fillers()
    expected: list[Expected] = []
    for kind, maker in MAKERS.items():
        for n in range(OF_EACH):
            fact = next(given)
            path = folder / kind / f"{kind}-{n}"
            path.parent.mkdir(exist_ok=True)
            start = (len(expected) * 5) % (len(around) - 6)
            document, place = maker(path, fact, around[start : start + 6])
            expected.append(Expected(kind, fact, f"{kind}/{document}", place))
    return expected, list(_unfit(folder / "unfit"))


def _save(path: Path, suffix: str, content: str | bytes) -> str:
    path = path.with_name(path.name + suffix)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path.name


# ---- text


def txt(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    return _save(path, ".txt", "\n\n".join([*around[:3], fact.sentence, *around[3:]])), {}


def western(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    text = f"Überfahrten für Gäste: größere Häfen täglich.\n\n{fact.sentence}\n\nÄußere Brücke, schöne Küste.\n"
    return _save(path, ".txt", text.encode("cp1252")), {}


def gz(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    return _save(path, ".txt.gz", gzip.compress("\n\n".join([*around, fact.sentence]).encode())), {}


def md(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    fleet = f"## Fleet\n\n{around[1]}\n\n### Large boats\n\n**{fact.sentence}**\n"
    text = f"# Boats\n\n{around[0]}\n\n{fleet}\n## Piers\n\n{around[2]}\n"
    return _save(path, ".md", text), {"headings": ["Fleet", "Large boats"]}


def html(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    page = (
        f"<html><head><title>Boats</title></head><body><nav>Home</nav><main><h1>Boats</h1><p>{around[0]}</p><h2>Fleet</h2>"
        f"<p>{around[1]}</p><p>{fact.sentence}</p><h2>Piers</h2><p>{around[2]}</p></main></body></html>"
    )
    return _save(path, ".html", page), {"headings": ["Boats", "Fleet"]}


def html_table(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    page = (
        f"<h1>Boats</h1><p>{around[0]}</p><h2>Table of ferries</h2><table><tr><th>Ferry</th><th>Passengers</th></tr>"
        f"<tr><td>Aaltje</td><td>12</td></tr><tr><td>{fact.ferry}</td><td>{fact.passengers}</td></tr></table>"
    )
    return _save(path, ".htm", page), {"headings": ["Boats", "Table of ferries"]}


def rst(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    text = f"Boats\n=====\n\n{around[0]}\n\nFleet\n-----\n\n{fact.sentence}\n\nPiers\n-----\n\n{around[1]}\n"
    return _save(path, ".rst", text), {"headings": ["Boats", "Fleet"]}


def code(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    text = f'"""Timetables."""\n\nimport os\n\n\ndef fleet():\n    # {fact.sentence}\n    return os.environ\n'
    return _save(path, ".py", text), {"line": 7}


# ---- many documents


def jsonl(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    lines = [json.dumps({"text": text}) for text in [*around[:3], fact.sentence, around[3]]]
    name = _save(path, ".jsonl", "\n".join(lines))
    return f"{name}/4", {"line": 4}


def table(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    out = io.StringIO()
    rows: list[list[Any]] = [
        ["Ferry", "Passengers", "Home port"],
        ["Aaltje", 12, "Anster"],
        [fact.ferry, fact.passengers, "Hvítey"],
    ]
    csv.writer(out, delimiter=";").writerows(rows)
    name = _save(path, ".csv", out.getvalue())
    return f"{name}/3", {"row": 3}


def tsv(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    text = f"id\ttext\nx1\t{around[0]}\nx2\t{fact.sentence}\n"
    name = _save(path, ".tsv", text)
    return f"{name}/x2", {"row": 3}


def mbox(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    content = b""
    for n, text in enumerate([around[0], f"Dear all,\n\n{fact.sentence}\n\nFrom here on it is quiet.", around[1]]):
        content += b"From a@example.org Mon Nov 23 00:00:00 2026\n" + _mail(f"Number {n}", text).as_bytes() + b"\n\n"
    name = _save(path, ".mbox", content)
    return f"{name}/2", {}


# ---- office


def pdf(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    styles = getSampleStyleSheet()
    pages = [around[:2], around[2:4], [around[4], fact.sentence], around[5:]]
    flow: list[Any] = []
    for number, page in enumerate(pages, 1):
        flow.append(_Entry(f"Section {number}"))
        flow += [Paragraph(text, styles["BodyText"]) for text in page]
        flow.append(PageBreak())
    file = path.with_name(path.name + ".pdf")
    SimpleDocTemplate(str(file), title="Boats", onFirstPage=None).build(flow, onLaterPages=_foot, onFirstPage=_foot)
    return file.name, {"page": 3, "headings": ["Section 3"]}


class _Entry(Paragraph):  # type: ignore[misc]
    """A heading that the PDF's outline names."""

    def __init__(self, title: str) -> None:
        super().__init__(title, getSampleStyleSheet()["Heading1"])
        self.title = title

    def draw(self) -> None:
        self.canv.bookmarkPage(self.title)
        self.canv.addOutlineEntry(self.title, self.title, 0)
        super().draw()


def _foot(canvas: Any, document: Any) -> None:
    canvas.drawString(280, 30, f"Page {document.page}")


def word(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    document = docx.Document()
    document.add_heading("Boats", 0)
    document.add_paragraph(around[0])
    document.add_heading("Fleet", 1)
    document.add_heading("Large boats", 2)
    document.add_paragraph(around[1])
    document.add_paragraph(fact.sentence)
    document.add_heading("Piers", 1)
    document.add_paragraph(around[2])
    file = path.with_name(path.name + ".docx")
    document.save(str(file))
    return file.name, {"headings": ["Fleet", "Large boats"]}


def word_table(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    document = docx.Document()
    document.add_heading("Ferries", 1)
    document.add_paragraph(around[0])
    rows = [("Ferry", "Passengers"), ("Aaltje", "12"), (fact.ferry, str(fact.passengers))]
    grid = document.add_table(len(rows), 2)
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            grid.cell(r, c).text = cell
    file = path.with_name(path.name + ".docx")
    document.save(str(file))
    return file.name, {"headings": ["Ferries"]}


def slides(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    show = pptx.Presentation()
    for number, text in enumerate([around[0][:150], around[1][:150], fact.sentence, around[2][:150]], 1):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = f"Subject {number}"
        slide.placeholders[1].text = text
    file = path.with_name(path.name + ".pptx")
    show.save(str(file))
    return file.name, {"slide": 3, "headings": ["Subject 3"]}


def sheet(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    file = path.with_name(path.name + ".xlsx")
    book = Workbook(str(file))
    notes, ferries = book.add_worksheet("Notes"), book.add_worksheet("Ferries")
    notes.write(0, 0, around[0])
    ferries.write_row(0, 0, ["Ferry", "Passengers", "Built"])
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    for row, (name, count) in enumerate([("Aaltje", 12), ("Berta", 31), (fact.ferry, fact.passengers)], 1):
        ferries.write(row, 0, name)
        ferries.write(row, 1, count)
        ferries.write_datetime(row, 2, date(1990 + row, 5, 1), day)
    book.close()
    return file.name, {"sheet": "Ferries", "row": 4}


def odt(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    document = odfdo.Document("text")
    document.body.clear()
    for level, words in [(1, "Boats"), (0, around[0]), (2, "Fleet"), (0, fact.sentence), (2, "Piers"), (0, around[1])]:
        document.body.append(odfdo.Header(level, words) if level else odfdo.Paragraph(words))
    file = path.with_name(path.name + ".odt")
    document.save(str(file))
    return file.name, {"headings": ["Boats", "Fleet"]}


def epub(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    file = path.with_name(path.name + ".epub")
    chapters = [f"<h1>First</h1><p>{around[0]}</p>", f"<h1>Second</h1><p>{around[1]}</p><p>{fact.sentence}</p>"]
    manifest = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    with zipfile.ZipFile(file, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
            '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        )
        book.writestr(
            "OPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/" version="3.0">'
            f"<metadata><dc:title>A book of boats</dc:title></metadata><manifest>{manifest}</manifest>"
            f"<spine>{spine}</spine></package>",
        )
        for n, body in enumerate(chapters):
            page = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>{body}</body></html>'
            book.writestr(f"OPS/c{n}.xhtml", page)
    return file.name, {"headings": ["Second"]}


# ---- mail, subtitles, archives


def _mail(subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "Ada Holm <ada@example.org>", "all@example.org"
    message["Subject"], message["Date"] = subject, "Mon, 23 Nov 2026 09:00:00 +0000"
    message.set_content(text)
    return message


def eml(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    message = _mail("Our fleet", f"{around[0]}\n\n{fact.sentence}\n\nAda\n")
    message.add_attachment(around[1].encode(), maintype="text", subtype="plain", filename="note.txt")
    return _save(path, ".eml", message.as_bytes()), {}


def attachment(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    message = _mail("See the file", around[0])
    page = f"<h1>Boats</h1><p>{fact.sentence}</p>"
    message.add_attachment(page.encode(), maintype="text", subtype="html", filename="fleet.html")
    return f"{_save(path, '.eml', message.as_bytes())}/fleet.html", {"headings": ["Boats"]}


def srt(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    cues = ["Good evening.", "Tonight it is about boats.", fact.sentence, "That is all."]
    blocks = [f"{n + 1}\n00:0{n}:05,000 --> 00:0{n}:09,500\n<i>{cue}</i>\n" for n, cue in enumerate(cues)]
    return _save(path, ".srt", "\r\n".join("\n".join(blocks).split("\n"))), {"time": "0:02:05"}


def vtt(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    said = f"01:00:00.000 --> 01:00:04.000\n{fact.sentence}\n"
    text = f"WEBVTT\n\nNOTE made by hand\n\n00:05.000 --> 00:09.000\nGood evening.\n\n{said}"
    return _save(path, ".vtt", text), {"time": "1:00:00"}


def zip_(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    file = path.with_name(path.name + ".zip")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner/notes.txt", around[0])
        archive.writestr("inner/fleet.md", f"# Boats\n\n## Fleet\n\n{fact.sentence}\n")
    return f"{file.name}/inner/fleet.md", {"headings": ["Fleet"]}


def tar(path: Path, fact: Fact, around: list[str]) -> tuple[str, dict[str, Any]]:
    file = path.with_name(path.name + ".tar.gz")
    with tarfile.open(file, "w:gz") as archive:
        content = "\n\n".join([around[0], fact.sentence]).encode()
        info = tarfile.TarInfo("fleet.txt")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return f"{file.name}/fleet.txt", {}


MAKERS: dict[str, Maker] = {
    "txt": txt, "western": western, "gz": gz, "md": md, "html": html, "htmltable": html_table, "rst": rst, "py": code,
    "jsonl": jsonl, "csv": table, "tsv": tsv, "mbox": mbox, "pdf": pdf, "docx": word, "docxtable": word_table,
    "pptx": slides, "xlsx": sheet, "odt": odt, "epub": epub, "eml": eml, "attachment": attachment, "srt": srt,
    "vtt": vtt, "zip": zip_,
}  # fmt: skip
"""24 kinds; tar and SQuAD's JSON have tests of their own."""


# ---- unfit


def _unfit(folder: Path) -> Iterator[Unfit]:
    folder.mkdir(exist_ok=True)
    scan = Canvas(str(folder / "scan.pdf"))
    scan.rect(50, 50, 200, 200, fill=1)
    scan.save()
    yield Unfit("scan.pdf", "no text layer")
    (folder / "torn.pdf").write_bytes(b"%PDF-1.7\n1 0 obj\n<<")
    yield Unfit("torn.pdf", "not a PDF")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    yield Unfit("picture.png", "unknown suffix '.png'")
    (folder / "empty.txt").write_bytes(b"")
    yield Unfit("empty.txt", "no text in it")
    (folder / "torn.zip").write_bytes(b"PK\x03\x04")
    yield Unfit("torn.zip", "not a whole zip file")
    (folder / "fake.docx").write_text("not a zip file")
    yield Unfit("fake.docx", "not a whole zip file")
    (folder / "binary.txt").write_bytes(b"\x00\x01\x02")
    yield Unfit("binary.txt", "binary")
    (folder / "away.txt").symlink_to("/etc/hostname")
    yield Unfit("away.txt", "a link")


if __name__ == "__main__":
    found, unfit = make(Path(sys.argv[1]))
    print(f"{len(found) + len(unfit)} files in {sys.argv[1]}: {len(found)} with a fact, {len(unfit)} unfit")
