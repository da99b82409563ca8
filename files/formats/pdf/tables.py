"""Tables among a page's lines: those that are ruled by the grid, others by gaps that stand under one another.

What is drawn one after the other belongs together: of two columns of text the left one is drawn first, of a table its
rows.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median, median_low

from shardqa.files.formats.pdf import columns
from shardqa.files.formats.pdf.page import TextLine, Word, Words, overlap
from shardqa.files.formats.pdf.rules import NEAR, Rule, joined
from shardqa.files.pairs import are_pairs

GAP = 0.9  # of a line's height: as wide a gap parts two cells
LEAST_ROWS = 3  # of a table without rules
PROSE = 4.5  # words of a cell on average: columns of text have as many
LOOSE = 0.35  # of a line's height: rows are further apart than the lines of a cell, where they are
MAX_COLUMNS = 60
SAME_WIDTH = 0.4  # of the words of code, which may stand beside remarks in another font
# of a line's height: a row, or one of a table of three columns, is no further below the others
NEXT_ROW, NEXT_FULL_ROW = 1.3, 2.5
MAX_CELL = 12.0  # lines of a cell in a table without rules
HYPHENATED = re.compile(r"(?<=[^\W\d_])- (?=[^\W\d_A-Z])")
YEAR = re.compile(r"(?:19|20)\d\d")
ITEM = frozenset("•–—-*·◦▪‣○●")


@dataclass(slots=True)
class Table:
    rows: list[list[str]]
    has_header: bool
    columns: list[float]  # left edges, by which a table is known again on the next page
    top: float
    bottom: float


@dataclass(slots=True)
class _Cell(Words):
    """A piece of a line, with a gap on both sides."""

    number: int  # of its line

    @property
    def middle(self) -> float:
        return (self.bottom + self.top) / 2

    @property
    def text(self) -> str:
        return _joined(self.words)


def found(lines: list[TextLine], rules: Callable[[], list[Rule]]) -> list[TextLine | Table]:
    """Returns the lines with tables in the places of theirs; calls `rules` only where lines have gaps."""
    cells = [_cells(line, n) for n, line in enumerate(lines)]
    if sum(len(row) - 1 for row in cells) < 2 and not _side_by_side(lines):
        return list(lines)
    blocks: dict[int, Table] = {}  # by the number of their first line
    in_tables: set[int] = set()
    for table, numbers in _ruled(lines, rules()):
        if not numbers & in_tables:
            blocks[min(numbers)] = table
            in_tables |= numbers
    content: list[TextLine | Table] = []
    for free, run in groupby(range(len(lines)), lambda n: n not in in_tables):
        within = list(run)
        if free:
            for part in columns.in_turn([lines[n] for n in within]):
                content += _aligned(part, [_cells(line, n) for n, line in enumerate(part)])
        else:
            content += [blocks[n] for n in within if n in blocks]
    return content


def _cells(line: TextLine, number: int) -> list[_Cell]:
    parts = [[line.words[0]]]
    gap = GAP * line.height
    for before, word in pairwise(line.words):
        if word.left - before.right > gap:
            parts.append([])
        parts[-1].append(word)
    return [_Cell(words, number) for words in parts]


def _side_by_side(lines: list[TextLine]) -> bool:
    return any(overlap(one, other) and one.right < other.left for one, other in pairwise(lines))


# ---- ruled


def _ruled(lines: list[TextLine], rules: list[Rule]) -> Iterator[tuple[Table, set[int]]]:
    """Yields the tables in grids, with the numbers of the lines that stand in them."""
    for group in _meeting(rules):
        columns = _levels(rule.at for rule in group if rule.is_vertical)
        edges = _levels(rule.at for rule in group if not rule.is_vertical)
        left, right = min(map(_left, group)), max(map(_right, group))
        columns = _levels([left, *columns, right])
        if not (2 < len(columns) <= MAX_COLUMNS and len(edges) > 1):
            continue
        inside = {n for n, line in enumerate(lines) if _is_within(line, left, right, edges[0], edges[-1])}
        rows = _rows_of_grid([lines[n] for n in sorted(inside)], columns, edges)
        if sum(sum(map(bool, row)) > 1 for row in rows) > 1:
            yield Table(rows, _is_header(rows[0], rows[1:], True), columns[:-1], edges[-1], edges[0]), inside


def _left(rule: Rule) -> float:
    return rule.at if rule.is_vertical else rule.start


def _right(rule: Rule) -> float:
    return rule.at if rule.is_vertical else rule.end


def _is_within(line: TextLine, left: float, right: float, bottom: float, top: float) -> bool:
    middle = (line.bottom + line.top) / 2
    return bottom < middle < top and line.left > left - NEAR and line.right < right + NEAR


def _meeting(rules: list[Rule]) -> list[list[Rule]]:
    """Returns the groups of rules that touch each other and have both directions."""
    groups: list[list[Rule]] = []
    for rule in joined(rules):
        neighbours = [group for group in groups if any(_touch(rule, other) for other in group)]
        groups = [group for group in groups if not any(group is one for one in neighbours)]
        groups.append([rule, *(other for group in neighbours for other in group)])
    return [group for group in groups if len({rule.is_vertical for rule in group}) == 2]


def _touch(first: Rule, second: Rule) -> bool:
    """Returns whether one rule meets the other at a right angle."""
    return (
        first.is_vertical != second.is_vertical
        and second.start - NEAR < first.at < second.end + NEAR
        and first.start - NEAR < second.at < first.end + NEAR
    )


def _levels(places: Iterator[float] | Sequence[float]) -> list[float]:
    """Returns the places in rising order; nearly equal ones once."""
    levels: list[float] = []
    for place in sorted(places):
        if not levels or place - levels[-1] > NEAR:
            levels.append(place)
    return levels


def _rows_of_grid(lines: list[TextLine], columns: list[float], edges: list[float]) -> list[list[str]]:
    """Returns the rows of a grid downwards; where it has no rules between rows, each line is one."""
    bands: list[list[list[Word]]] = [[[] for _ in columns[1:]] for _ in edges[1:]]
    for line in lines:
        for word in line.words:
            column = _between(columns, (word.left + word.right) / 2)
            bands[_between(edges, (word.bottom + word.top) / 2)][column].append(word)
    rows: list[list[str]] = []
    for band in reversed(bands):
        if len(edges) <= 3:
            rows += _split(band)
        else:
            rows.append([_joined(cell) for cell in band])
    return [row for row in rows if any(row)]


def _between(edges: list[float], place: float) -> int:
    return max(min(sum(edge <= place for edge in edges) - 1, len(edges) - 2), 0)


def _split(band: list[list[Word]]) -> list[list[str]]:
    """Returns the rows of a band without rules: a row begins where the first column has words."""
    words = sorted((word for cell in band for word in cell), key=lambda word: -word.top)
    starts = _levels([word.bottom for word in band[0]]) if band[0] else []
    if len(starts) < 2 or not words:
        return [[_joined(cell) for cell in band]]
    height = words[0].height
    edges = [float("-inf"), *(start + height + NEAR for start in starts[:-1]), float("inf")]
    rows = [
        [_joined([word for word in cell if _between(edges, word.bottom + word.height / 2) == row]) for cell in band]
        for row in range(len(edges) - 1)
    ]
    return rows[::-1]


def _joined(words: list[Word]) -> str:
    return HYPHENATED.sub("", " ".join(word.text for word in words))


# ---- aligned


def _aligned(lines: list[TextLine], cells: list[list[_Cell]]) -> Iterator[TextLine | Table]:
    start = 0
    while start < len(lines):
        stop = _stop(cells, start) if _may_begin(cells, start) else start
        run = [cell for row in cells[start:stop] for cell in row]
        is_text = stop - start < LEAST_ROWS or _is_code(run)
        table = None if is_text else _table(run)
        if table is not None:
            yield table
        else:
            for line in lines[start : max(stop, start + 1)]:
                line.is_unsure = not is_text and _is_columns(run)
                yield line
        start = max(stop, start + 1)


def _may_begin(cells: list[list[_Cell]], at: int) -> bool:
    if len(cells[at]) > 1:
        return True
    after = cells[at + 1][0] if at + 1 < len(cells) else None
    return after is not None and cells[at][0].right < after.left and overlap(cells[at][0], after)


def _stop(cells: list[list[_Cell]], start: int) -> int:
    """Returns the end of the lines from `start` on whose cells keep to the same columns."""
    columns: list[tuple[float, float]] = []
    last_full = stop = start
    lowest = cells[start][0]  # of the cells so far: the lines of one may be drawn before the next one's
    for n in range(start, len(cells)):
        row = cells[n]
        wider = _merged([*columns, *((cell.left, cell.right) for cell in row)])
        if len(wider) < max(len(columns), 2 if len(row) > 1 else 1) or any(map(_is_leader, row)):
            break
        if n > start and not _is_near(lowest, row, cells[n + 1] if n + 1 < len(cells) else row, len(columns)):
            break
        lowest = min(lowest, row[0], key=lambda cell: cell.bottom)
        columns, stop = wider, n + 1
        if len(row) > 1 or (n > start and overlap(cells[n - 1][0], row[0])):
            last_full = n + 1
    return last_full if last_full > start else stop if len(columns) > 1 else start


def _is_near(lowest: _Cell, row: list[_Cell], after: list[_Cell], columns: int) -> bool:
    """Returns whether a row is right below the others, or below the height of a cell that is drawn next to it."""
    height = max(lowest.top - lowest.bottom, 1.0)
    down = lowest.bottom - row[0].top
    rises = after[0].bottom > row[0].top - height and after[0].left > row[0].right
    most = MAX_CELL if rises else NEXT_FULL_ROW if columns > 2 else NEXT_ROW
    return down < most * height and row[0].bottom - lowest.top < MAX_CELL * height


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    columns: list[tuple[float, float]] = []
    for left, right in sorted(spans):
        if columns and left < columns[-1][1] + 1.0:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _is_leader(cell: _Cell) -> bool:
    """Returns whether a cell is a row of dots, as in contents."""
    return "...." in cell.text.replace(" ", "")


def _bands(run: list[_Cell]) -> list[list[_Cell]]:
    """Returns the bands of cells side by side, downwards."""
    bands: list[list[_Cell]] = []
    for cell in sorted(run, key=lambda cell: -cell.middle):
        if bands and overlap(bands[-1][0], cell):
            bands[-1].append(cell)
        else:
            bands.append([cell])
    return bands


def _table(run: list[_Cell]) -> Table | None:
    columns = _merged([(cell.left, cell.right) for cell in run])
    bands = _bands(run)
    full = [band for band in bands if len(band) > 1]
    if len(full) < LEAST_ROWS or not 1 < len(columns) <= MAX_COLUMNS:
        return None
    if _is_list(run, columns) or (len(full) == len(bands) and _is_columns(run)):
        return None
    rows = _rows(bands, [left for left, _ in columns])
    if len(rows) < LEAST_ROWS:
        return None
    has_header = _is_header(rows[0], rows[1:], len(columns) > 2)
    return Table(rows, has_header, [left for left, _ in columns], bands[0][0].top, bands[-1][0].bottom)


def _rows(bands: list[list[_Cell]], columns: list[float]) -> list[list[str]]:
    """Returns the rows; bands are joined where a cell has several lines."""
    gaps = [above[0].bottom - below[0].top for above, below in pairwise(bands)]
    height = median(band[0].top - band[0].bottom for band in bands)
    rows: list[list[list[str]]] = []
    is_loose = min(gaps) + LOOSE * height < max(gaps) and any(len(band) == 1 for band in bands)
    for n, band in enumerate(bands):
        texts: list[list[str]] = [[] for _ in columns]
        for cell in sorted(band, key=lambda cell: cell.left):
            texts[_column(columns, cell)].append(cell.text)
        begins = gaps[n - 1] > min(gaps) + LOOSE * height if n and is_loose else bool(texts[0]) or len(band) > 1
        if rows and not begins:
            for whole, part in zip(rows[-1], texts, strict=True):
                whole += part
        else:
            rows.append(texts)
    return [[HYPHENATED.sub("", " ".join(cell)) for cell in row] for row in rows]


def _column(columns: list[float], cell: _Cell) -> int:
    return max(sum(left <= cell.left + 0.5 for left in columns) - 1, 0)


def _is_list(run: list[_Cell], columns: list[tuple[float, float]]) -> bool:
    """Returns whether the first of two columns has only bullets or numbers."""
    marks = [cell.text for cell in run if cell.left < columns[0][1]]
    return len(columns) == 2 and all(
        mark in ITEM or mark.rstrip(".)").lstrip("(").isdigit() or len(mark) < 2 for mark in marks
    )


def _is_code(run: list[_Cell]) -> bool:
    """Returns whether many words have characters of one width; the same word counts once."""
    widths: dict[str, float] = {}
    for word in (word for cell in run for word in cell.words):
        letters = "".join(filter(str.isalpha, word.text))
        if len(letters) > 1:
            widths[letters] = (word.right - word.left) / len(word.text)
    if len(widths) < 4:
        return False
    usual = median_low(widths.values())
    return sum(abs(width - usual) < 0.005 * usual for width in widths.values()) > SAME_WIDTH * len(widths)


def _is_header(row: list[str], body: list[list[str]], is_sure: bool) -> bool:
    """Returns whether a row names all columns (but perhaps the first) over figures; if `is_sure`, over words, too."""
    if not all(row[1:]) or not body or are_pairs([row, *body]):
        return False
    names = [bool(name) and (not _has_figure(name) or YEAR.fullmatch(name) is not None) for name in row]
    figures = [all(_has_figure(cell) for cell in cells if cell) for cells in zip(*body, strict=True)]
    years = [all(YEAR.fullmatch(cell) for cell in cells) for cells in zip(*body, strict=True)]
    over = [
        is_name for is_name, is_figure, is_year in zip(names, figures, years, strict=True) if is_figure and not is_year
    ]
    return any(over) or (is_sure and not over and any(names))


def _has_figure(cell: str) -> bool:
    return any(character.isdigit() for character in cell)


def _is_columns(run: list[_Cell]) -> bool:
    """Returns whether the cells say so much that they may be columns of text, to be read one after the other."""
    return len(_bands(run)) > LEAST_ROWS and sum(len(cell.words) for cell in run) / len(run) >= PROSE
