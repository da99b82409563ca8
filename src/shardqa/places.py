"""Places of a text in the file it came from: page, headings, slide, sheet, row, line, time.

A document's places are marks in rising order: `[character, place]`, each in force until the next one. They travel and
are kept as JSON; a passage keeps those that lie in it. Pure functions.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, TypeAlias

import orjson
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from shardqa.errors import BadDocument

MAX_PLACES = 4_000_000  # bytes of one document's places as JSON: a sheet of 50,000 rows has 2 million
BELOW = " › "  # between a heading and the next one below it
MAX_HEADINGS = 8  # levels of a heading path: the six of HTML, and entries of lists


class Place(BaseModel):
    """All that is known; what a format does not have is left out."""

    model_config = ConfigDict(extra="forbid")

    part: str | None = Field(None, description="a file inside the file: an attachment, a chapter")
    page: int | None = Field(None, description="page of a PDF, from 1 as viewers count")
    slide: int | None = Field(None, description="slide, from 1")
    sheet: str | None = Field(None, description="sheet of a workbook, or its name for a part")
    row: int | None = Field(None, description="row of a table's file, from 1 as spreadsheets count")
    line: int | None = Field(None, description="line of a text, from 1")
    time: str | None = Field(None, description="time code of subtitles, H:MM:SS")
    aside: str | None = Field(
        None, description="why it is not searched: contents, index, navigation, licence; absent for text"
    )
    headings: list[str] = Field(default_factory=list, description="the headings above it, outermost first")

    @model_serializer(mode="wrap")
    def only_known(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what is not known: most places say one or two things."""
        return {name: value for name, value in handler(self).items() if value not in (None, [])}

    def __str__(self) -> str:
        """As people cite it: `p. 12, § Notice period`."""
        parts = [
            self.part,
            f"p. {self.page}" if self.page is not None else None,
            f"slide {self.slide}" if self.slide is not None else None,
            f"sheet {self.sheet}" if self.sheet is not None else None,
            f"row {self.row}" if self.row is not None else None,
            f"line {self.line}" if self.line is not None else None,
            f"at {self.time}" if self.time is not None else None,
            f"§ {BELOW.join(self.headings)}" if self.headings else None,
        ]
        return ", ".join(part for part in parts if part)


Mark: TypeAlias = tuple[int, Place]
"""(the character at which a place begins, the place)"""

Raw: TypeAlias = list[list[Any]]
"""The same as JSON has it: `[[character, {…}], …]`."""


def encode(marks: Sequence[Mark]) -> str:
    """As JSON; empty for none."""
    if not marks:
        return ""
    return orjson.dumps([[start, place.model_dump()] for start, place in marks]).decode()


def decode(places: str) -> list[Mark]:
    """Reads what `encode` wrote. Raises BadDocument for anything else."""
    return [(start, Place.model_validate(place)) for start, place in check(places)]


def check(places: str | bytes) -> Raw:
    """The marks in `places`, which may be empty. Raises BadDocument where they are not what this module writes."""
    if not places:
        return []
    if len(places) > MAX_PLACES:
        raise BadDocument(f"its places are {len(places):,} bytes of JSON, at most {MAX_PLACES:,} are kept; split it")
    try:
        found = orjson.loads(places)
    except orjson.JSONDecodeError as error:
        raise BadDocument(f"its places are not JSON ({error}); send a list of [character, place]") from None
    last = -1
    marks: list[Any] = found if isinstance(found, list) else [None]
    for mark in marks:
        if not _is_mark(mark) or mark[0] <= last:
            raise BadDocument(
                f"{str(mark)[:80]} is no mark of its places; send [[character, {{…}}], …] with rising characters"
            )
        last = mark[0]
    return marks


def stored(places: bytes | None) -> Raw:
    """The marks of a stored field; none where another writer left something else there."""
    try:
        return check(places or b"")
    except BadDocument:
        return []


def _is_mark(mark: Any) -> bool:
    return (
        isinstance(mark, list)
        and len(mark) == 2
        and isinstance(mark[0], int)
        and not isinstance(mark[0], bool)
        and mark[0] >= 0
        and isinstance(mark[1], dict)
        and set(mark[1]) <= set(Place.model_fields)
    )


def within(marks: Raw, start: int, end: int) -> Raw:
    """The marks in force anywhere in characters [start, end)."""
    starts = [mark[0] for mark in marks]
    return marks[max(bisect_right(starts, start) - 1, 0) : bisect_right(starts, end - 1)] if marks else []


def asides(marks: Sequence[list[Any]], length: int) -> list[tuple[int, int]]:
    """Characters, half open and rising, of a text of `length` characters that are kept and not searched."""
    ends = [*(mark[0] for mark in marks[1:]), length]
    return [(mark[0], end) for mark, end in zip(marks, ends, strict=True) if mark[1].get("aside")] if marks else []


def paths(marks: Sequence[list[Any]]) -> list[tuple[int, tuple[str, ...]]]:
    """The characters from which other headings are in force, and those headings."""
    every = [(mark[0], tuple(mark[1].get("headings", ()))) for mark in marks]
    return [mark for before, mark in zip([(0, ()), *every], every, strict=False) if mark[1] != before[1]]


def below(title: str, path: Sequence[str]) -> str:
    """A path as it is kept beside the title, which its first heading often repeats."""
    return BELOW.join(heading for heading in path if heading.split() != title.split())


def at(marks: Raw, character: int) -> dict[str, Any] | None:
    """The place in force at a character; None before the first mark."""
    n = bisect_right([mark[0] for mark in marks], character)
    return dict(marks[n - 1][1]) if n else None
