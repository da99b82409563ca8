"""Finds the row of a table that names its columns: the one from which they are filled. Titles and notes stand above."""

from collections import Counter
from collections.abc import Sequence

LOOKED_AT = 50  # rows


def row_of(rows: Sequence[Sequence[str]]) -> int | None:
    """Returns the first row that fills as many columns as most do; the row above it if only its corner is empty.

    Returns None where no row has two cells.
    """
    widths = [sum(bool(cell.strip()) for cell in row) for row in rows[:LOOKED_AT]]
    counts = Counter(count for count in widths if count > 1)
    if not counts:
        return None
    most = max(counts.values())
    width = max(count for count, times in counts.items() if times == most)
    first = next(n for n, count in enumerate(widths) if count >= width)
    has_corner = first > 0 and widths[first - 1] == width - 1 > 0 and not rows[first - 1][0].strip()
    return first - 1 if has_corner and all(cell.strip() for cell in rows[first - 1][1:width]) else first
