"""PowerPoint's pptx: the words of each slide from top to bottom, tables as sentences, then the speaker's notes.

python-pptx reads it; it brings Pillow, so that it comes with the extra `formats` only.
"""

import io
from collections.abc import Iterable, Iterator
from typing import Any

import pptx
from lxml import etree
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.exc import PythonPptxError
from pptx.oxml.ns import qn

from shardqa.loader.composer import Composer, one_line
from shardqa.loader.formats import zipped
from shardqa.loader.formats.faults import readable
from shardqa.loader.raised import lowered, raised
from shardqa.loader.source_file import MAX_BINARY, Item, SourceFile

BREAK = qn("a:br")
PIECES = (qn("a:r"), BREAK, qn("a:fld"))
MAX_GROUPS = 20  # groups in groups


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY)
    zipped.check(content)
    composer = Composer()
    with readable("a pptx", PythonPptxError, etree.LxmlError):
        presentation = pptx.Presentation(io.BytesIO(content))
        for number, slide in enumerate(presentation.slides, 1):
            composer.top()
            composer.at(slide=number)
            _slide(composer, slide)
        title = one_line(presentation.core_properties.title or "")
    yield source.composed(composer, "" if title == "PowerPoint Presentation" else title)


def _slide(composer: Composer, slide: Any) -> None:
    title = slide.shapes.title
    if title is not None:
        composer.heading(title.text_frame.text, 1)
    for shape in _shapes(slide.shapes, 0):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            composer.table([[cell.text for cell in row.cells] for row in shape.table.rows])
        elif shape.has_text_frame:
            composer.block(_words(shape.text_frame))
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        composer.block(_words(slide.notes_slide.notes_text_frame))


def _words(frame: Any) -> str:
    """Returns the lines of a text frame; what stands above or below the line has its mark."""
    lines = [_line(paragraph._p) for paragraph in frame.paragraphs]
    return "\n".join(line for line in lines if line.strip())


def _line(paragraph: Any) -> str:
    text = ""
    for piece in paragraph.iterchildren(*PIECES):
        words = "\n" if piece.tag == BREAK else piece.findtext(qn("a:t")) or ""
        properties = piece.find(qn("a:rPr"))
        baseline = properties.get("baseline", "0") if properties is not None else "0"
        if baseline.strip("0%"):
            words = (lowered if baseline.startswith("-") else raised)(text[-1:], words)
        text += words
    return text


def _shapes(shapes: Iterable[Any], depth: int) -> Iterator[Any]:
    """As one reads them: from top to bottom, then from left to right; groups taken apart."""
    for shape in sorted(shapes, key=lambda s: (s.top or 0, s.left or 0)):
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            if depth < MAX_GROUPS:
                yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape
