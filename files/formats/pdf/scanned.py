"""A page that is a picture: what is recognized in it, as lines in points and tables among them."""

from typing import Any

from shardqa.files import recognition
from shardqa.files.formats.pdf.page import TextLine, Word
from shardqa.files.formats.pdf.tables import Table, found

SAME_ROW = 0.5  # of a line's height: boxes that overlap by as much stand side by side


def blocks(pixels: Any, scale: float) -> tuple[list[TextLine], list[TextLine | Table]]:
    """Returns (all lines, the same with tables in their places); `scale`: pixels a point. Raises BadDocument."""
    lines = in_rows([_placed(line, scale) for line in recognition.lines_of(pixels)])
    return lines, found(lines, list)


def in_rows(lines: list[TextLine]) -> list[TextLine]:
    """Sorts lines downwards, those side by side from left to right."""
    rows: list[list[TextLine]] = []
    for line in lines:
        if rows and rows[-1][0].bottom + SAME_ROW * line.height < line.top:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda line: line.left)]


def _placed(line: recognition.RecognizedLine, scale: float) -> TextLine:
    bottom, top = -line.bottom / scale, -line.top / scale
    return TextLine([Word(word.text, word.left / scale, word.right / scale, bottom, top) for word in line.words])
