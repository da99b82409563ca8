"""Chooses which rows of a passage a reader gets: those that a question names, where it names some.

A reader mixes up rows that look alike: of "Skipper: Ann Holt" and "First mate: Ugo Brandt" it takes the first for both.
Rows are what a place has as cells, and in texts without such places lines or paragraphs of a name and its value. On the
worker's loop alone (`analysis`).
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from shardqa import analysis, places
from shardqa.gears_functions.passage_reading import Loaded
from shardqa.models import span_edges
from shardqa.models.tokenizer import PassageTokens

PAIR = re.compile(
    r"^(?P<name>[^\n:.!?]{1,60}):[ \t]+\S[^\n]{0,120}$"
    r"|(?:(?<=\n\n)|\A)(?P<above>[^\n:.!?]{1,60})\n[^\n.!?]{1,120}(?=\n\n|\n?\Z)",
    re.MULTILINE,
)
HEADING = 80  # characters of one


def read_of(passage: Loaded, pieces: PassageTokens, question: str) -> PassageTokens:
    """Returns the pieces of a passage without the rows that the question does not name, where it names another.

    A row is named by its first cell, a pair by its name: all words of it must be in the question. The heading above
    goes with the others: it heads them all alike. Of a named row go the columns that are not named, where one is.
    """
    terms = _terms(question)
    rows = list(_rows(passage.text, passage.start, passage.places))
    scores = [_score(cells[0][len(cells) > 1], terms) for _, _, cells in rows]
    best = max(scores, default=0)
    if not best:
        return pieces
    others = [(first, last) for (first, last, _), score in zip(rows, scores, strict=True) if score < best]
    if others:
        others.append((_heading(passage.text, rows[0][0]), rows[0][0]))
    for (first, _, cells), score in zip(rows, scores, strict=True):
        others += _unnamed(passage.text, max(0, first), cells, terms) if score == best else []
    is_read = np.ones(len(pieces), dtype=np.bool_)
    for first, last in others:
        is_read &= (pieces.offsets[:, 0] < first) | (pieces.offsets[:, 0] >= last)
    return PassageTokens(pieces.ids[is_read], pieces.offsets[is_read], pieces.words[is_read])


def _terms(text: str) -> set[str]:
    return set(analysis.analyse(text).content)


def _score(name: str, terms: set[str]) -> int:
    """Returns the number of words of a name that is wholly among the terms; else 0."""
    return len(own) if (own := _terms(name)) <= terms else 0


def _unnamed(text: str, row: int, cells: Sequence[tuple[str, str]], terms: set[str]) -> list[tuple[int, int]]:
    """Returns the ranges of a row's cells but those whose column the question names; empty where it names none.

    A column whose value the question tells is not asked for.
    """
    hits = [_score(name, terms) > 0 and terms.isdisjoint(_terms(value)) for name, value in cells[1:]]
    extents = list(span_edges.cells_in(text, row, cells))[1:]
    if not any(hits[: len(extents)]):
        return []
    return [(first, last) for (first, _, last), is_asked in zip(extents, hits, strict=False) if not is_asked]


def _heading(text: str, row: int) -> int:
    """Returns the first character of the heading right above a row; the row's own where there is none."""
    above = text[:row].rstrip()
    begin = above.rfind("\n\n") + 1
    return row if len(above) - begin > HEADING or above.endswith((".", "!", "?")) else begin


def _rows(text: str, start: int, marks: places.Raw) -> Iterator[tuple[int, int, Sequence[tuple[str, str]]]]:
    """Yields (first character, one past the last, cells) of each row."""
    ends = [*(at for at, _ in marks[1:]), start + len(text)]
    rows = [(at, end, place["cells"]) for (at, place), end in zip(marks, ends, strict=False) if place.get("cells")]
    if rows:
        yield from ((first - start, last - start, cells) for first, last, cells in rows)
    else:
        yield from ((*match.span(), [(match["name"] or match["above"], "")]) for match in PAIR.finditer(text))
