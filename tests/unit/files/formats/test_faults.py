"""Whatever a library raises of one part of a file, that part is told as lost, and the others are read."""

import importlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shardqa.files import formats
from shardqa.files.source_file import Item, Lost, Skipped, SourceFile
from shardqa.schema import Document
from tests.golden_files import FOLDER

WHY = "MishapError of a library"


class MishapError(Exception):
    """A fault that no reader can know of."""


def read(name: str) -> list[Item]:
    with closing(SourceFile.open(FOLDER / name, name, formats.read)) as source:
        return list(formats.read(source))


def break_(patch: pytest.MonkeyPatch, target: str, call: int) -> None:
    """Makes one call of `module:object.method` raise."""
    module, _, path = target.partition(":")
    holder: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for one in outer:
        holder = getattr(holder, one)
    real, count = getattr(holder, name), 0

    def broken(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == call:
            raise MishapError("of a library")
        return real(*arguments, **options)

    patch.setattr(holder, name, broken)


READERS = "shardqa.files.formats"
PARTS = [  # file, what raises, at which call, what is lost, what is read all the same
    ("styled.html", f"{READERS}.styles:_sheets", 1, "what its style sheets hide", "Sheetmira"),
    ("table.htm", f"{READERS}.html:_span", 1, "a part of it (<table>)", ""),
    ("book.epub", f"{READERS}.epub:decoded", 1, "chapter OPS/c0.xhtml", "Ilse Marquardt"),
    ("pages.pdf", "pypdfium2:PdfDocument.__getitem__", 1, "page 1", "The referee stands on a barrel"),
    ("pages.pdf", "pypdfium2:PdfDocument.get_toc", 1, "a part of its outline", "The referee stands on a barrel"),
    ("heads.docx", f"{READERS}.ooxml:Package.relations", 4, "the head of its pages", "Headmira"),
    ("headings.docx", f"{READERS}.docx:_outer_boxes", 1, "a paragraph", "The ferry"),
    ("slides.pptx", f"{READERS}.pptx:_corner", 1, "slide 1", "The ferry Corjolanta carries 941 passengers."),
    ("sheets.xlsx", f"{READERS}.sheets:_spread", 1, "sheet Notes", "Ferry Garbrook has Passengers: 997"),
    ("slides.odp", "odfdo:Element.get_elements", 2, "slide 1", "- She was built in 1988."),
    ("notebook.ipynb", f"{READERS}.notebook:_output", 1, "a cell", 'The "north" pier was built in 1907.'),
    ("attachment.eml", "email.message:EmailMessage.get_content_charset", 1, "a part of its text", "Subject: See"),
    ("three.mbox", "email:message_from_bytes", 1, "the message", "The ferry Keldovan carries 717 passengers."),
]


@pytest.mark.parametrize(("name", "target", "call", "lost", "words"), PARTS, ids=lambda value: str(value)[-24:])
def test_one_part_is_lost(
    name: str, target: str, call: int, lost: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_(monkeypatch, target, call)
    items = read(name)
    assert [item.reason for item in items if isinstance(item, Lost)] == [f"{lost} can't be read: {WHY}"]
    assert words in "\n".join(item.text for item in items if isinstance(item, Document))


@pytest.mark.parametrize("format", [*formats.FORMATS, formats.PICTURES], ids=lambda format: format.title)
def test_a_reader_that_fails_is_told_with_its_file(
    format: formats.Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(source: SourceFile) -> Iterator[Item]:
        yield source.document("The mill stands.")
        raise MishapError("of a library")

    monkeypatch.setattr(formats.Format, "reader", lambda self: failing)
    path = tmp_path / f"a{format.suffixes[0]}"
    path.write_bytes(format.begins[0] if format.begins else b"words")
    with closing(SourceFile.open(path, path.name, formats.read, ocr=True)) as source:
        first, second = formats.read(source)
    assert isinstance(first, Document)
    assert second == Skipped(str(path), f"it can't be read: {WHY}")
