"""Lines of pages joined into paragraphs: running heads left out, headings told by the outline, tables row by row."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from shardqa.files import hyphens
from shardqa.files.composer import Composer
from shardqa.files.formats.pdf.page import TextLine
from shardqa.files.formats.pdf.tables import Table
from shardqa.files.plain_tables import is_led

MARGIN = 2  # lines at the top and at the bottom of a page that may be a running head or foot
REPEATED = 0.4  # share of the pages that a running head stands on, at least: in books each second
MOST_NUMBERS = 3  # of a line that may be no page's number
LEAST_PAGES = 4  # of a document whose running heads can be told from its text
FULL = 0.7  # of the page's longest line: a shorter line ends its paragraph
WIDER = 0.35  # of a line's height: by as much a paragraph is further from the next than lines are
OTHER_SIZE = 0.15  # of a line's height: by as much a heading's letters are larger
INDENT = 0.8  # of a line's height
NEAR = 12.0  # points between the columns of a table and those of the same table on the next page
HEADING = re.compile(r"[^\W\d_]+\s+\d+\.?")
PAGE_WORDS = re.compile(r"\b(?:page|pages|seite|pagina|página|side|sida|strona|pag|pp?|of|von|de|di|sur|av)\b", re.I)
SAYS = re.compile(r"[^\W_]{2}.*[^\W\d_]{2}|[^\W\d_]{3}")  # more than a number
DIGITS = re.compile(r"\d+")
WORDS = re.compile(r"[^\W\d_]+")
HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
SENTENCE_END = re.compile(r"[.!?:;؟।۔。！？][\"'”’)\]]*$")
LIST_ITEM = re.compile(r"(?:[-•*▪◦–]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page: lines downwards, an empty one for a wide gap, and tables."""

    blocks: list[str | Table]
    margin: frozenset[int]  # numbers of the blocks that stand highest and lowest


def page_text(blocks: list[TextLine | Table]) -> PageText:
    blocks_downwards = sorted(
        (n for n, block in enumerate(blocks) if isinstance(block, TextLine)), key=lambda n: -blocks[n].bottom
    )
    margin = {*blocks_downwards[:MARGIN], *blocks_downwards[-MARGIN:]}
    usual = _usual_gap(blocks)
    pieces: list[str | Table] = []
    numbers: set[int] = set()
    for n, block in enumerate(blocks):
        before = blocks[n - 1] if n else None
        after = blocks[n + 1] if n + 1 < len(blocks) else None
        if isinstance(before, TextLine) and isinstance(block, TextLine) and _is_apart(before, block, after, usual):
            pieces.append("")
        if n in margin:
            numbers.add(len(pieces))
        pieces.append(block.text if isinstance(block, TextLine) else block)
    return PageText(pieces, frozenset(numbers))


def _usual_gap(blocks: list[TextLine | Table]) -> float:
    """Returns the usual gap between two lines of a paragraph, as a share of their height."""
    gaps = [
        (one.bottom - other.top) / one.height
        for one, other in pairwise(blocks)
        if isinstance(one, TextLine) and isinstance(other, TextLine) and one.height > 0
    ]
    return median([gap for gap in gaps if -0.5 < gap < 1.0] or [0.0])


def _is_apart(before: TextLine, line: TextLine, after: TextLine | Table | None, usual: float) -> bool:
    height = max(before.height, 1.0)
    gap = before.bottom - line.top
    if gap > (usual + WIDER) * height or (abs(line.height - before.height) > OTHER_SIZE * height and gap > -height):
        return True
    is_indented = INDENT * height < line.left - before.left < 4 * height
    return is_indented and isinstance(after, TextLine) and abs(after.left - before.left) < 0.3 * height


# ---- pages to blocks


def compose(composer: Composer, pages: list[PageText], outline: dict[int, list[tuple[int, str]]]) -> None:
    """Adds the text of all pages; `outline` has (level, title) of its entries by the page's index."""
    running = _running(pages)
    heads: set[str] = set()  # of them
    last: Table | None = None  # what the page before ended with
    for n, page in enumerate(pages):
        composer.at(page=n + 1)
        waiting = list(outline.get(n, []))
        titles = {title.casefold() for _, title in waiting}
        blocks: list[str | Table] = []
        for at, block in enumerate(page.blocks):
            shapes = _running_shapes(page, at, n, running, titles)
            if not shapes:
                blocks.append(block)
            elif heads.isdisjoint(shapes) and SAYS.search(PAGE_WORDS.sub("", str(block))):
                blocks += ["", block, ""]  # the first of each stays: it may hold a contract's number
            heads |= shapes
        parts = [part for part in _parts(blocks, titles) if part]
        there = {title for _, title in waiting if any(_begins(part, title) for part in parts)}
        for level, title in waiting:
            if title not in there:  # not found on its page, which stands under it as a whole
                composer.under(title, level)
        waiting = [entry for entry in waiting if entry[1] in there]
        for at, part in enumerate(parts):
            while waiting and _begins(part, waiting[0][1]):
                level, title = waiting.pop(0)
                composer.under(title, level)
            if isinstance(part, Table):
                is_other = part.has_header and any(isinstance(before, Table) for before in parts[:at])
                last = _add_table(composer, part, None if is_other else last)
            else:
                composer.lines(part)
                last = None


def _parts(blocks: list[str | Table], titles: set[str]) -> Iterator[str | Table]:
    """Yields the paragraphs and tables of a page."""
    width = max((len(block) for block in blocks if isinstance(block, str)), default=0)
    for is_line, run in groupby(blocks, lambda block: isinstance(block, str)):
        if is_line:
            yield from _paragraphs([block for block in run if isinstance(block, str)], titles, width)
        else:
            yield from run


def _add_table(composer: Composer, table: Table, last: Table | None) -> Table:
    """Adds a table; returns it, under the header of the last page's last table if it goes that one on."""
    rows, header = table.rows, table.rows[0] if table.has_header else None
    if last is not None and _goes_on(last, table):
        header = last.rows[0] if last.has_header else None
        rows = [header, *rows] if header is not None and rows[0] != header else rows
    composer.rows(rows[header is not None :], header)
    return Table(rows, header is not None, table.columns, table.top, table.bottom)


def _goes_on(last: Table, table: Table) -> bool:
    pairs = list(zip(last.columns, table.columns, strict=False))
    return len(last.columns) == len(table.columns) and all(abs(one - other) < NEAR for one, other in pairs)


def _begins(part: str | Table, title: str) -> bool:
    return isinstance(part, str) and part.casefold().startswith(title.casefold())


# ---- running heads


def _running_shapes(page: PageText, at: int, n: int, running: set[str], titles: set[str]) -> set[str]:
    """Returns the shapes by which a line is a running head; none where it is not."""
    block = page.blocks[at]
    if at not in page.margin or not isinstance(block, str) or block.casefold() in titles:
        return set()
    return running & _shapes(block, n)


def _shapes(line: str, page: int) -> set[str]:
    """Returns a line's shapes: its numbers as they are, or less the page's own, so that all `3 of 40` are alike.

    A word with a number behind it, like `Section 3`, is a heading; unless the word says that a page is numbered.
    """
    if HEADING.fullmatch(line) and not PAGE_WORDS.match(line):
        return {line}
    first, *words = DIGITS.split(line)
    shapes = [first]
    for n, (number, following) in enumerate(zip(DIGITS.findall(line), words, strict=True)):
        ways = (number, f"<{int(number[:9]) - page}>")[n >= MOST_NUMBERS :]
        shapes = [f"{shape}{way}{following}" for shape in shapes for way in ways]
    return set(shapes)


def _running(pages: list[PageText]) -> set[str]:
    """Returns the shapes of lines at the top or bottom of most pages: running heads, page numbers."""
    if len(pages) < LEAST_PAGES:
        return set()
    counts: Counter[str] = Counter()
    for n, page in enumerate(pages):
        lines = (page.blocks[at] for at in page.margin)
        counts.update({shape for line in lines if isinstance(line, str) for shape in _shapes(line, n)})
    return {shape for shape, count in counts.items() if count >= max(REPEATED * len(pages), LEAST_PAGES)}


# ---- lines to paragraphs


def _paragraphs(lines: list[str], titles: set[str], width: int) -> Iterator[str]:
    """Yields paragraphs: joins lines where a sentence goes on, and words that a line's end hyphenates."""
    parts: list[str] = []
    for line, after in pairwise([*lines, ""]):
        if not line:
            if parts:
                yield "".join(parts)
            parts = []
            continue
        is_title = line.casefold() in titles or after.casefold() in titles
        goes_on = HYPHEN.search(line) is not None and after[:1].islower()
        are_led = [is_led(line), is_led(after)]
        if after and all(are_led):
            parts.append(f"{line}\n")
        elif not after or is_title or any(are_led) or (not goes_on and (LIST_ITEM.match(after) or _ends(line, width))):
            yield "".join([*parts, line])
            parts = []
        elif goes_on:
            is_own = hyphens.is_own(WORDS.findall(line)[-1], WORDS.findall(after)[0])
            parts.append(line if is_own else line[:-1])
        else:
            parts.append(line + " ")


def _ends(line: str, width: int) -> bool:
    """Returns whether a paragraph ends with this line: a short one that ends a sentence, or a very short one."""
    return len(line) < FULL * width and (SENTENCE_END.search(line) is not None or len(line) < 0.5 * width)
