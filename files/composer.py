"""A document's text, put together block by block, with the place that each block has in its file.

Every format that is more than plain text goes through here, so that headings, tables and pages read alike whatever they
came from. A Composer belongs to the thread that fills it.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from shardqa import checks
from shardqa.files.pairs import are_pairs, groups, totals, unfolded
from shardqa.files.plain_tables import parts
from shardqa.places import MAX_HEADINGS, Mark, Place

MAX_HEADING = 200  # characters of a heading in a path; a longer one is text that someone made large
SHORT_LINE = 100  # characters of what explains a term on the term's own line
ENTRY = 100  # level of a list's terms, below that of every heading
ENDS = ".!?:;؟।۔。！？"
NUMBERS = ("no.", "№", "#", "number")  # names of a pair that say nothing of what is numbered


class Composer:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0  # characters so far
        self._place: dict[str, Any] = {}  # in force for what comes next
        self._headings: list[tuple[int, str]] = []  # (level, words), outermost first
        self._term = ""  # of a list, which what comes next explains
        self.marks: list[Mark] = []
        self.lost: list[str] = []  # what of the file is not in the text, and why
        self.struck: list[str] = []  # words that the file strikes out, which are no text of it any more

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def __len__(self) -> int:
        return self._length

    def at(self, **place: Any) -> None:
        """Sets the place of what follows: `at(page=3)`. None takes a name away again."""
        self._place = {name: value for name, value in {**self._place, **place}.items() if value is not None}

    def top(self) -> None:
        """Ends all headings: a new chapter begins, or a new file."""
        self._headings = []

    def heading(self, words: str, level: int) -> None:
        """Adds a heading, which stands in the text, too: it often holds the word that a question is about."""
        words = one_line(words)
        if words:
            self.under(words, level)
            self.block(words)

    def under(self, words: str, level: int) -> None:
        """Puts what follows under this heading, which is not part of the text (or is, already)."""
        self._headings = [(at, above) for at, above in self._headings if at < level][: MAX_HEADINGS - 1]
        self._headings.append((level, words[:MAX_HEADING]))

    def entry(self, words: str, depth: int = 1) -> None:
        """Puts what follows under a term that it explains, below all headings; `depth` counts lists within lists."""
        words = one_line(words)
        self._term = ""  # of two terms side by side neither explains the other
        if len(words) > MAX_HEADING:  # a text that someone made a term
            self.block(words)
            return
        self.under(words, ENTRY + depth)
        self.block(words)
        self._term = words

    def after_entries(self, depth: int = 1) -> None:
        """Ends the list of terms of this depth."""
        self._headings = [(at, above) for at, above in self._headings if at < ENTRY + depth]

    def block(self, text: str, close: bool = False) -> None:
        """Adds a paragraph, or (`close`) a line that follows the one before without a blank line.

        Raises DocumentTooLarge past MAX_DOCUMENT.
        """
        text = text.replace("\u00ad", "").strip("\n")  # where a word may be hyphenated, not a part of it
        if not text.strip():
            return
        term, self._term = self._term, ""
        if (
            term
            and term[-1] not in ".?!"
            and not close
            and len(text) <= SHORT_LINE
            and "\n" not in text
            and not text.startswith("- ")
        ):
            self._explain(term, text)
            return
        if self._length:
            self._add("\n" if close else "\n\n")
        self._mark()
        self._add(text)

    def lines(self, text: str, close: bool = False) -> None:
        """Adds a paragraph as `block` does, but for tables among its lines."""
        for part in parts(text.strip("\n")):
            if isinstance(part, str):
                self.block(part, close)
            else:
                self.table(part)

    def _explain(self, term: str, text: str) -> None:
        """Puts a short text on the line of its term, as a pair."""
        at, place = self.marks[-1] if self.marks else (0, Place())
        if at == self._length - len(term):
            self.marks[-1] = (at, place.model_copy(update={"cells": [(term, text)]}))
        self._add(f"{' ' if term[-1] == ':' else ': '}{text}")

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Adds a table whose first row names its columns where all of its cells are filled; empty rows are left out."""
        lines = unfolded([row for row in rows if any(cell.strip() for cell in row)])
        heads = _heads(lines)
        has_header = len(lines) > heads and all(cell.strip() for cell in lines[heads - 1]) and not are_pairs(lines)
        self.rows(lines[heads:] if has_header else lines, joined(lines[:heads]) if has_header else None)

    def rows(self, rows: Iterable[Sequence[str]], header: Sequence[str] | None) -> None:
        """Adds a table as sentences, a line a row; without a header, pairs, or cells with bars between them."""
        rows = list(rows)
        sums = totals(rows) if header is not None else set[int]()
        if header is not None:
            self.block(bars(without_values(header, rows)))
        for n, row in enumerate(rows):
            if header is None or n in sums:
                self.outside(row, close=n > 0)
            else:
                self.row(header, row, close=n > 0)

    def outside(self, row: Sequence[str], close: bool) -> None:
        """Adds a row that no header names: its pairs, each on a line, or its cells with bars between them."""
        above = ""  # a single cell before a pair: of QUOTATION | No. | 7 it says which number
        for n, group in enumerate(groups(row) or [[bars(row)]]):
            if len(group) > 1:
                is_number = one_line(group[0]).rstrip(": ").casefold() in NUMBERS
                self.pair(f"{above} number".strip().capitalize() if is_number else group[0], group[1], close or n > 0)
            else:
                self.block(group[0], close or n > 0)
            above = group[0] if len(group) == 1 else ""

    def row(self, header: Sequence[str], row: Sequence[str], close: bool) -> None:
        """Adds a row of a table as a sentence; its cells become its place."""
        self.at(cells=(cells := cells_of(header, row)))
        self.block(sentence(cells), close)
        self.at(cells=None)

    def pair(self, name: str, value: str, close: bool) -> None:
        """Adds a row of a name and its value: `Phone: 0555 2311.`"""
        name, value = one_line(name).rstrip(": "), one_line(value)
        self.at(cells=[(name, value)])
        self.block(f"{name}: {value}" if value[-1:] in ENDS else f"{name}: {value}.", close)
        self.at(cells=None)

    def _mark(self) -> None:
        place = Place(**self._place, headings=[words for _, words in self._headings])
        if place != (self.marks[-1][1] if self.marks else Place()):
            self.marks.append((self._length, place))

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
        checks.length(self._length)


def sentence(cells: Sequence[tuple[str, str]]) -> str:
    """Returns a row as a sentence of its filled cells: `Ferry Berta has Length: 44 m; Built: 2004.`

    A column without a name is its value alone. The first cell names what the row is about: so the reader mixes rows up
    least (docs/decisions.md).
    """
    first, *rest = cells or [("", "")]
    about = " ".join(part for part in first if part)
    words = "; ".join(f"{name}: {value}" if name and name != value else value for name, value in rest)
    line = f"{about} has {words}" if words and about else about or words
    return line if not line or line[-1] in ENDS else f"{line}."


def cells_of(header: Sequence[str], row: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the filled cells of a row, each with its column's name."""
    names = [*header, *[""] * (len(row) - len(header))]
    cells = [(one_line(name).rstrip(":"), one_line(value)) for name, value in zip(names, row, strict=False)]
    return [(name, value) for name, value in cells if value]


def _heads(rows: Sequence[Sequence[str]]) -> int:
    """Returns how many rows a table's head has: two where the second names columns below merged cells."""
    if len(rows) < 3 or not all(len(row) == len(rows[0]) for row in rows[:2]):
        return 1
    first, second = ([one_line(cell) for cell in row] for row in rows[:2])
    is_wide = any(one and one == other for one, other in pairwise(first))
    return 2 if is_wide and first[0] in ("", second[0]) and all(second) else 1


def joined(heads: Sequence[Sequence[str]]) -> list[str]:
    """Returns the columns' names from all rows of a head: `2025 Adults`."""
    columns = zip_longest(*heads, fillvalue="")
    return [" ".join(dict.fromkeys(filter(None, map(one_line, column)))) for column in columns]


def without_values(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the names of columns that no row fills: no sentence says them."""
    columns = {n for row in rows for n, cell in enumerate(row) if cell.strip()}
    return [name for n, name in enumerate(header) if n not in columns]


def bars(row: Sequence[str]) -> str:
    return " | ".join(one_line(cell) for cell in row if cell.strip())


def figures(text: str | None, otherwise: int = 0, most: int = 999_999_999) -> int:
    """Returns the number that a file's text writes, `most` at most; `otherwise` where it writes none."""
    return min(int(text[:9]), most) if text and text.isascii() and text.isdigit() else otherwise


def one_line(text: str) -> str:
    return " ".join(text.split())
