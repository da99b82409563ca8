"""Places of a text in the file it came from: page, headings, slide, sheet, row, line, time.

A document's places are marks in rising order: `[character, place]`, each in force until the next one. They travel and
are kept as JSON; a passage keeps those that lie in it. Pure functions.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_serializer

from shardqa.checks import MAX_DOCUMENT
from shardqa.errors import BadDocument

MAX_PLACES = 16_000_000  # bytes of one document's places as JSON: a sheet of 50,000 rows of 7 cells has 12 million
MAX_PLACE = 4_000  # bytes of one place as JSON: each passage under it keeps it, and its headings once more as a path
BELOW = " › "  # between a heading and the next one below it
MAX_HEADINGS = 8  # levels of a heading path: the six of HTML, and entries of lists
BETWEEN = " · "  # between two cells of a row
QUOTED = "quoted mail"  # the part of a mail that it takes from one before
FEW_CELLS = 4  # of a row that may share its passage with the next: of rows of more, a reader takes the wrong one


class Place(BaseModel):
    """The place of a span in its file; what a format does not have is left out."""

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
    cells: list[tuple[str, str]] | None = Field(
        None,
        description="the row of a table that it stands in, each filled cell with its column's name: the text there is "
        "a sentence that shardqa wrote from them",
    )
    headings: list[str] = Field(default_factory=list, description="the headings above it, outermost first")

    @model_serializer(mode="wrap")
    def only_known(self, handler: Callable[["Place"], dict[str, Any]]) -> dict[str, Any]:
        """Leaves out fields without a value: most places have one or two."""
        return {name: value for name, value in handler(self).items() if value not in (None, [])}

    def __str__(self) -> str:
        """The place in the form that people cite: `p. 12, § Notice period`."""
        marks = {"page": "p.", "slide": "slide", "sheet": "sheet", "row": "row", "line": "line", "time": "at"}
        told = [f"{mark} {value}" for name, mark in marks.items() if (value := getattr(self, name)) is not None]
        parts = [self.part, *told, f"§ {BELOW.join(self.headings)}" if self.headings else None]
        return ", ".join(part for part in parts if part)


Mark: TypeAlias = tuple[int, Place]  # (the character at which a place begins, the place)
MARKS = TypeAdapter(list[Mark])

Raw: TypeAlias = list[list[Any]]  # the same as JSON has it: `[[character, {…}], …]`


def encode(marks: Sequence[Mark]) -> str:
    """The marks in JSON; empty for none."""
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
        value = orjson.loads(places)
    except orjson.JSONDecodeError as error:
        raise BadDocument(f"its places are not JSON ({error}); send a list of [character, place]") from None
    last, are_marks = -1, _are_marks(places)
    marks: list[Any] = value if isinstance(value, list) else [None]
    for mark in marks:
        if not (are_marks or _are_marks(orjson.dumps([mark]))) or not last < mark[0] <= MAX_DOCUMENT:
            raise BadDocument(f"{str(mark)[:80]} is no mark of places; send [[character, {{…}}], …], characters rising")
        if len(places) > MAX_PLACE and (size := size_of(mark[1])) > MAX_PLACE:
            raise BadDocument(
                f"its place at character {mark[0]:,} has {size:,} bytes of JSON, more than {MAX_PLACE:,}; "
                "shorten its headings or cells"
            )
        last = mark[0]
    return marks


def stored(places: bytes | None) -> Raw:
    """The marks of a stored field; none where another writer left something else there."""
    try:
        return check(places or b"")
    except BadDocument:
        return []


def size_of(place: Place | dict[str, Any]) -> int:
    """The bytes of a place in JSON."""
    return len(orjson.dumps(place if isinstance(place, dict) else place.model_dump()))


def _are_marks(places: str | bytes) -> bool:
    try:
        MARKS.validate_json(places, strict=True)
    except ValidationError:
        return False
    return True


def within(marks: Raw, start: int, end: int) -> Raw:
    """The marks in force anywhere in characters [start, end)."""
    first = max(bisect_right(marks, start, key=itemgetter(0)) - 1, 0)
    return marks[first : bisect_right(marks, end - 1, key=itemgetter(0))]


def asides(marks: Sequence[list[Any]], length: int) -> list[tuple[int, int]]:
    """Lists ranges of a text of `length` characters, half open and rising, that are kept and not searched."""
    ends = [*(mark[0] for mark in marks[1:]), length]
    return [(mark[0], end) for mark, end in zip(marks, ends, strict=True) if mark[1].get("aside")] if marks else []


def row_of(cells: Sequence[tuple[str, str]]) -> str:
    """Returns a row as people quote it: `Weser Stahl · Bremen`; of one cell its name, too."""
    if len(cells) == 1:
        return ": ".join(filter(None, cells[0]))
    return BETWEEN.join(value for _, value in cells)


def sections(marks: Sequence[list[Any]]) -> list[tuple[int, tuple[str, ...], bool]]:
    """The characters from which other headings are in force or a row of more than FEW_CELLS stands; those headings, and
    whether it is such a row."""
    every = [(at, tuple(place.get("headings", ())), len(place.get("cells") or ()) > FEW_CELLS) for at, place in marks]
    pairs = zip([(0, (), False), *every], every, strict=False)
    return [mark for before, mark in pairs if mark[2] or mark[1:] != before[1:]]


def below(title: str, path: Sequence[str]) -> str:
    """A path as it is kept beside the title, which its first heading often repeats."""
    return BELOW.join(heading for heading in path if heading.split() != title.split())


def mark_at(marks: Raw, character: int) -> list[Any] | None:
    """The mark in force at a character; None before the first."""
    n = bisect_right(marks, character, key=itemgetter(0))
    return marks[n - 1] if n else None


def at(marks: Raw, character: int) -> dict[str, Any] | None:
    """The place in force at a character; None before the first mark."""
    mark = mark_at(marks, character)
    return dict(mark[1]) if mark is not None else None
