"""Columns of running text that were drawn line by line, across all of them: read one after the other.

Between two columns is a gutter, a strip that no word stands in over many lines. Of a table's columns few lines are
full.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from shardqa.files.formats.pdf.page import TextLine, Word, overlap

GUTTER = 0.5  # of a line's height, at least
LEAST_LINES = 6  # beside one another
FULL, MOST_FULL = 0.7, 0.5  # of its column's width: a full line; of the lines of running text: those that are full
LEAST = 14.0  # characters of a line of running text, on average
FAR = 2.5  # of a line's height: what is further from the lines above is not below them in the same column
Rows = list[list[Word]]  # downwards, each from the left


def in_turn(lines: list[TextLine]) -> list[list[TextLine]]:
    """Returns the lines in parts that each stand in one column; as one where they were drawn so, or have no gutter."""
    words = [word for line in lines for word in line.words]
    rows = _rows(words)
    gutter = _gutter(rows)
    if gutter is None or any(line.is_downwards for line in lines):
        return [lines]
    across = sum((one.left < gutter[0]) != (other.left < gutter[0]) for one, other in pairwise(words))
    return _parts(rows) if across >= LEAST_LINES else [lines]


def _rows(words: Sequence[Word]) -> Rows:
    rows: Rows = []
    for word in sorted(words, key=lambda word: -(word.bottom + word.top)):
        if rows and overlap(rows[-1][0], word):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [sorted(row, key=lambda word: word.left) for row in rows]


def _parts(rows: Rows) -> list[list[TextLine]]:
    gutter = _gutter(rows)
    if gutter is None:
        return [[TextLine(row) for row in rows]] if rows else []
    at, first, last = gutter
    sides = (
        [word for row in rows[first:last] for word in row if (word.left < at) is is_left] for is_left in (True, False)
    )
    return [*_parts(rows[:first]), *(part for side in sides for part in _parts(_rows(side))), *_parts(rows[last:])]


def _gutter(rows: Rows) -> tuple[float, int, int] | None:
    """Returns (place, first row, row behind the last) of the gutter that most lines stand on both sides of."""
    if len(rows) < LEAST_LINES:
        return None
    height = median(row[0].height for row in rows)
    places = {
        round((one.right + other.left) / 2)
        for row in rows
        for one, other in pairwise(row)
        if other.left - one.right > GUTTER * height
    }
    found = [
        (lines, place, first, last) for place in sorted(places) for lines, first, last in _runs(rows, place, height)
    ]
    return max(found, default=(0, 0, 0, 0))[1:] if found else None


def _runs(rows: Rows, place: float, height: float) -> Iterator[tuple[int, int, int]]:
    """Yields (lines on both sides, first row, row behind the last) of each run of rows beside which a place is free."""
    start = 0
    for n in range(len(rows) + 1):
        is_free = n < len(rows) and not any(
            word.left < place + GUTTER * height / 2 and word.right > place - GUTTER * height / 2 for word in rows[n]
        )
        is_near = n == start or (n < len(rows) and rows[n - 1][0].bottom - rows[n][0].top < FAR * height)
        if is_free and is_near:
            continue
        both = [row for row in rows[start:n] if row[0].left < place < row[-1].left]
        sides = [
            [_piece([word for word in row if word.left < place][::-1]) for row in both],
            [_piece([word for word in row if word.left > place]) for row in both],
        ]
        if len(both) >= LEAST_LINES and all(map(_is_text, sides)):
            yield len(both), start, n
        start = n if is_free else n + 1


def _piece(words: list[Word]) -> list[Word]:
    """Returns the words up to the next gap, from the gutter on."""
    for n, (one, other) in enumerate(pairwise(words), 1):
        if max(other.left - one.right, one.left - other.right) > one.height:
            return words[:n]
    return words


def _is_text(pieces: Rows) -> bool:
    widths = sorted(max(piece[0].right, piece[-1].right) - min(piece[0].left, piece[-1].left) for piece in pieces)
    full = sum(width > FULL * widths[len(widths) * 9 // 10] for width in widths)
    characters = sum(len(word.text) + 1 for piece in pieces for word in piece)
    return full > MOST_FULL * len(pieces) and characters > LEAST * len(pieces)
