"""Pages of PDFs as pictures, with words marked where they stand."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from shardqa.errors import BadDocument
from shardqa.files.formats.pdf import marked

LINES = ["The rent is due on the third day of the month.", "It is 940 crowns. The third day of each month counts."]


@pytest.fixture
def file() -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, A4)
    canvas.showPage()
    for n, line in enumerate(LINES):
        canvas.drawString(100, 700 - 100 * n, line)
    canvas.save()
    return file.getvalue()


def rows(content: bytes, number: int, before: str, words: str) -> list[int]:
    """Distances from the page's foot, in points by hundreds, of what is marked."""
    picture: NDArray[np.uint8] = np.asarray(Image.open(io.BytesIO(marked.png(content, number, before, words))))
    assert picture.shape[1] == pytest.approx(marked.WIDTH, abs=1)
    at = np.flatnonzero((picture == marked.MARK).all(axis=2).any(axis=1))
    return sorted({round((A4[1] - row * A4[0] / marked.WIDTH) / 100) * 100 for row in at})


def test_words_are_marked_where_they_stand_for_the_first_time_after_what_is_before(file: bytes) -> None:
    assert rows(file, 2, "The rent is due on ", "the third day") == [700]
    assert rows(file, 2, LINES[0] + " It is 940 crowns. ", "The third day") == [600]


def test_words_across_lines_are_marked_in_both(file: bytes) -> None:
    assert rows(file, 2, "", "of the month. It is 940 crowns") == [600, 700]


def test_words_that_the_page_does_not_have_are_not_marked(file: bytes) -> None:
    assert rows(file, 2, "", "a mill") == rows(file, 1, "", "rent") == []


def test_what_is_no_page_is_said(file: bytes) -> None:
    for content, number in ((file, 3), (b"%PDF-1.4 torn", 1), (b"The mill.", 1)):
        with pytest.raises(BadDocument, match=f"page {number} can't be shown"):
            marked.png(content, number, "", "mill")
