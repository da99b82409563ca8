"""A document's text, put together block by block, with the place that each block has in its file.

Every format that is more than plain text goes through here, so that headings, tables and pages read alike whatever they
came from. A Composer belongs to the thread that fills it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from shardqa import checks
from shardqa.places import MAX_HEADINGS, Mark, Place

MAX_HEADING = 200  # characters of a heading in a path; a longer one is text that someone made large
ENTRY = 100  # level of a list's terms, below that of every heading
BLANKS = re.compile(r"\s+")
ENDS = ".!?:;。！？"


class Composer:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0  # characters so far
        self._place: dict[str, Any] = {}  # in force for what comes next
        self._headings: list[tuple[int, str]] = []  # (level, words), outermost first
        self.marks: list[Mark] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def __len__(self) -> int:
        return self._length

    def at(self, **place: Any) -> None:
        """From here on: `at(page=3)`. None takes a name away again."""
        self._place = {name: value for name, value in {**self._place, **place}.items() if value is not None}

    def top(self) -> None:
        """No heading is in force any more: a new chapter, a new file."""
        self._headings = []

    def heading(self, words: str, level: int) -> None:
        """A heading, which stands in the text too: it often holds the word that a question is about."""
        words = BLANKS.sub(" ", words).strip()
        if words:
            self.under(words, level)
            self.block(words)

    def under(self, words: str, level: int) -> None:
        """Puts what follows under this heading, which is not part of the text (or is, already)."""
        self._headings = [(at, above) for at, above in self._headings if at < level][: MAX_HEADINGS - 1]
        self._headings.append((level, words[:MAX_HEADING]))

    def entry(self, words: str, depth: int = 1) -> None:
        """A term of a list in which lists may stand (`depth`), which what follows explains: below all headings."""
        words = BLANKS.sub(" ", words).strip()
        if len(words) <= MAX_HEADING:
            self.under(words, ENTRY + depth)
        self.block(words)

    def after_entries(self, depth: int = 1) -> None:
        """The list of this depth has ended."""
        self._headings = [(at, above) for at, above in self._headings if at < ENTRY + depth]

    def block(self, text: str, close: bool = False) -> None:
        """A paragraph, or (`close`) a line that follows the one before without a blank line.

        Raises DocumentTooLarge past MAX_DOCUMENT.
        """
        text = text.strip("\n")
        if not text.strip():
            return
        if self._length:
            self._add("\n" if close else "\n\n")
        self._mark()
        self._add(text)

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Adds a table whose first row names its columns where all of its cells are filled; empty rows are left out."""
        filled = [row for row in rows if any(cell.strip() for cell in row)]
        has_header = len(filled) > 1 and all(cell.strip() for cell in filled[0])
        self.rows(filled[1:] if has_header else filled, filled[0] if has_header else None)

    def rows(self, rows: Iterable[Sequence[str]], header: Sequence[str] | None) -> None:
        """A table as sentences, a line a row; without a header, its cells with bars between them."""
        for n, row in enumerate(rows):
            self.block(sentence(header, row) if header is not None else bars(row), close=n > 0)

    def _mark(self) -> None:
        place = Place(**self._place, headings=[words for _, words in self._headings])
        if place != (self.marks[-1][1] if self.marks else Place()):
            self.marks.append((self._length, place))

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
        checks.length(self._length)


def sentence(header: Sequence[str], row: Sequence[str]) -> str:
    """`Ferry Berta has Length: 44 m; Built: 2004.` Empty cells are left out.

    A column without a name is its value alone. The first cell names what the row is about: so the reader mixes rows up
    least (docs/decisions.md).
    """
    names = [*header, *[""] * (len(row) - len(header))]
    cells = [(one_line(name).rstrip(":"), one_line(value)) for name, value in zip(names, row, strict=False)]
    first, *rest = [(name, value) for name, value in cells if value] or [("", "")]
    about = " ".join(part for part in first if part)
    words = "; ".join(f"{name}: {value}" if name and name != value else value for name, value in rest)
    told = f"{about} has {words}" if words and about else about or words
    return told if not told or told[-1] in ENDS else f"{told}."


def bars(row: Sequence[str]) -> str:
    return " | ".join(one_line(cell) for cell in row if cell.strip())


def one_line(text: str) -> str:
    return BLANKS.sub(" ", text).strip()
