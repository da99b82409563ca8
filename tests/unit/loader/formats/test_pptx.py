"""Slides that tests make."""

import io

import pptx
from pptx.util import Inches

from shardqa.loader import formats
from shardqa.loader.source_file import SourceFile
from shardqa.schema import Document


def test_superscripts_and_subscripts_of_slides_are_marked() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    paragraph = slide.shapes.add_textbox(0, 0, Inches(5), Inches(2)).text_frame.paragraphs[0]
    for words, baseline in (("10", "0"), ("6", "30000"), (" kg of H", "0"), ("2", "-25%"), ("O", "0")):
        run = paragraph.add_run()
        run.text = words
        run.font._element.set("baseline", baseline)
    paragraph.add_line_break()
    paragraph.add_run().text = "in the mill"
    file = io.BytesIO()
    presentation.save(file)
    (document,) = formats.read(SourceFile.of_bytes(file.getvalue(), "a.pptx", "a.pptx"))
    assert isinstance(document, Document)
    assert document.text == "10^6 kg of H₂O\nin the mill"
