"""Chooses which rows of a passage a reader gets: those that a question names, where it names some.

A reader mixes up rows that look alike: of "Skipper: Ann Holt" and "First mate: Ugo Brandt" it takes the first for both.
Rows are what a place has as cells, and in texts without such places lines or paragraphs of a name and its value. On the
worker's loop alone (`analysis`).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from shardqa import analysis, places
from shardqa.analysis import content
from shardqa.gears_functions.passage_reading import Loaded
from shardqa.models import span_edges
from shardqa.models.tokenizer import PassageTokens

PAIR = re.compile(
    r"^(?P<name>[^\n:.!?]{1,60}):[ \t]+\S[^\n]{0,120}$"
    r"|(?:(?<=\n\n)|\A)(?P<above>[^\n:.!?]{1,60})\n[^\n.!?]{1,120}(?=\n\n|\n?\Z)",
    re.MULTILINE,
)
HEADING = 80  # characters of one
KINDS = {  # names of columns by what asks for them
    "who": "person name who teacher tutor owner keeper captain skipper contact guest member employee manager author "
    "driver responsible holder tenant payee customer winner artist speaker doctor trainer leader editor warden agent",
    "when": "when date day time hours year month deadline start begins opens",
    "where": "where place room location address town city venue site hall berth",
}
Cells: TypeAlias = Sequence[tuple[str, str]]


def read_of(passage: Loaded, pieces: PassageTokens, question: str) -> PassageTokens:
    """Returns the pieces of a passage without the rows that the question does not name, where it names another.

    A row is named by its first cell, a pair by its name: all words of it must be in the question. The heading above
    goes with the others unless it is what is asked for: it heads them all alike. Of a named row go the columns that are
    not named, where one is. Where no row is named, those are that say all of the question, with a column of what it
    asks for.
    """
    query = analysis.query(question)
    terms = set(query.content)
    rows = list(_rows(passage.text, passage.start, passage.places))
    scores = [0 if _is_told(cells, terms) else _score(cells[0][len(cells) > 1], terms) for _, _, cells in rows]
    names = next((names for word, names in KINDS.items() if re.search(rf"\b{word}", question.lower())), "")
    unasked, kind = (_unnamed, terms) if any(scores) else (_of_other_kinds, content(names))
    if unasked is _of_other_kinds and terms:
        scores = [int(len(cells) > 1 and terms <= content(" ".join(chain(*cells)))) for _, _, cells in rows]
    best = max(scores, default=0)
    if not best:
        return pieces
    others = [(first, last) for (first, last, _), score in zip(rows, scores, strict=True) if score < best]
    above = _heading(passage.text, rows[0][0])
    heading = content(passage.text[max(0, above) : max(0, rows[0][0])])
    if others and not (heading <= terms and query.content[0] in heading):
        others.append((above, rows[0][0]))
    for (first, _, cells), score in zip(rows, scores, strict=True):
        others += unasked(passage.text, max(0, first), cells, terms, kind) if score == best else []
    is_read = np.ones(len(pieces), dtype=np.bool_)
    for first, last in others:
        is_read &= (pieces.offsets[:, 0] < first) | (pieces.offsets[:, 0] >= last)
    return PassageTokens(pieces.ids[is_read], pieces.offsets[is_read], pieces.words[is_read])


def _score(name: str, terms: set[str]) -> int:
    """Returns the number of words of a name that is wholly among the terms; else 0."""
    return len(own) if (own := content(name)) <= terms else 0


def _is_told(cells: Cells, terms: set[str]) -> bool:
    """Returns whether the question tells the value of a pair, which it does not ask for then."""
    return len(cells) == 1 and bool(value := content(cells[0][1])) and value <= terms


def _of_other_kinds(text: str, row: int, cells: Cells, terms: set[str], kind: set[str]) -> list[tuple[int, int]]:
    """Returns the ranges of a row's cells but those that the question tells, without their columns' names, and the
    first of its kind; empty where there is none.
    """
    extents = list(span_edges.cells_in(text, row, cells))
    told = [terms <= content(value) for _, value in cells]
    told = told if any(told) else [not terms.isdisjoint(content(value)) for _, value in cells]
    asked = next((n for n, (name, _) in enumerate(cells) if not told[n] and not kind.isdisjoint(content(name))), None)
    if asked is None or len(extents) < len(cells):
        return []
    ends = [*(first for first, _, _ in extents[1:]), extents[-1][2]]
    ranges = [(first, begin if said else end) for said, (first, begin, _), end in zip(told, extents, ends, strict=True)]
    return ranges[:asked] + ranges[asked + 1 :]


def _unnamed(text: str, row: int, cells: Cells, terms: set[str], kind: set[str]) -> list[tuple[int, int]]:
    """Returns the ranges of a row's cells but those whose column the question names; empty where it names none.

    A column whose value the question tells is not asked for.
    """
    hits = [_score(name, kind) > 0 and terms.isdisjoint(content(value)) for name, value in cells[1:]]
    extents = list(span_edges.cells_in(text, row, cells))[1:]
    if not any(hits[: len(extents)]):
        return []
    return [(first, last) for (first, _, last), is_asked in zip(extents, hits, strict=False) if not is_asked]


def _heading(text: str, row: int) -> int:
    """Returns the first character of the heading right above a row; the row's own where there is none."""
    above = text[:row].rstrip()
    begin = above.rfind("\n\n") + 1
    return row if len(above) - begin > HEADING or above.endswith((".", "!", "?")) else begin


def _rows(text: str, start: int, marks: places.Raw) -> Iterator[tuple[int, int, Cells]]:
    """Yields (first character, one past the last, cells) of each row."""
    ends = [*(at for at, _ in marks[1:]), start + len(text)]
    rows = [(at, end, place["cells"]) for (at, place), end in zip(marks, ends, strict=False) if place.get("cells")]
    if rows:
        yield from ((first - start, last - start, cells) for first, last, cells in rows)
    else:
        yield from ((*match.span(), [(match["name"] or match["above"], "")]) for match in PAIR.finditer(text))
