"""Reads tbl, the tables of manual pages, `.TS` to `.TE`, as rows."""

import re
from collections.abc import Callable, Iterator

from shardqa.loader.composer import Composer

TAB = re.compile(r"tab\s*\(\s*(.)\s*\)")
RULE = re.compile(r"\\?[_=]\s*")
MAX_LINES = 20_000


def add(composer: Composer, lines: Iterator[str], plain: Callable[[str], str]) -> None:
    """Takes the lines up to .TE and adds their rows to `composer`."""
    separator, has_format = "\t", False
    rows: list[list[str]] = []
    has_header = False
    block: list[str] | None = None  # of a cell that goes over lines, T{ to T}
    for _, line in zip(range(MAX_LINES), lines, strict=False):
        if line.startswith(".TE"):
            break
        if line.startswith(".T&"):
            has_format = False
        elif not has_format:
            if line.rstrip().endswith(";"):
                separator = found[1] if (found := TAB.search(line)) else separator
            has_format = line.rstrip().endswith(".")
        elif block is not None:
            if line.startswith("T}"):
                rows[-1][-1] = " ".join(block)
                rows[-1] += [plain(cell) for cell in line.split(separator)[1:]]
                block = [] if rows[-1][-1].strip() == "T{" else None
            elif not line.startswith((".", "'")):
                block.append(plain(line))
        elif RULE.fullmatch(line):
            has_header = has_header or len(rows) == 1
        elif line.strip() and not line.startswith((".", "'")):
            rows.append([plain(cell) for cell in line.split(separator)])
            block = [] if rows[-1][-1].strip() == "T{" else None
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    composer.rows(filled[1:] if has_header else filled, filled[0] if has_header and filled else None)
