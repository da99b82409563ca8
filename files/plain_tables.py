"""Tables that no lines draw, in plain text: names and values with dots between them, cells parted by tabs or blanks."""

import re
from itertools import groupby
from typing import TypeAlias

RUN = r"(?:(?<![.·])(?<![.·][ \t])(?:[.·][ \t]?){5,}|(?<!…)…{2,}+|(?<!_)_{5,}+)"  # whole, so that each is tried once
LEADER = re.compile(rf"[ \t]*(\S.{{0,200}}?)[ \t:]{{0,20}}{RUN}[ \t]*([^\s.·…_].*)")
SIGNS = (".....", ". . . .", ".\t.", "·····", "· · · ·", "……", "_____")  # in a text that may have such lines
PAGE = re.compile(r"\d{1,4}|[ivxlc]+")
CELL = re.compile(r"\S+(?: \S+)*")
MARK = re.compile(r"[-=+|:\s]*")  # of a line below a head
LEAST_ROWS = 3  # whose cells stand under one another; of tabs two
Rows: TypeAlias = list[list[str]]


def parts(text: str) -> list[str | Rows]:
    """Returns a text's lines in runs: tables as rows, others as they are. Lines of contents are no table."""
    if not ("\t" in text or "  " in text or any(sign in text for sign in SIGNS)):
        return [text]
    found: list[str | Rows] = []
    for kind, run in groupby(text.split("\n"), _kind):
        lines = list(run)
        rows = _rows(kind, lines)
        if rows is not None:
            found.append(rows)
        elif found and isinstance(found[-1], str):
            found[-1] += "\n" + "\n".join(lines)
        else:
            found.append("\n".join(lines))
    return found


def is_led(line: str) -> bool:
    return LEADER.fullmatch(line) is not None


def _kind(line: str) -> str:
    if is_led(line):
        return "dots"
    if "\t" in line.strip():
        return f"{len(line.strip().split(chr(9)))} tabs"
    return "blanks" if "  " in line.rstrip() else ""


def _rows(kind: str, lines: list[str]) -> Rows | None:
    if kind == "dots":
        rows = [[f"{match[1]}:", match[2].strip()] for match in map(LEADER.fullmatch, lines) if match]
    elif kind == "blanks":
        rows = _under_one_another(lines)
    else:
        rows = [re.split(r"\t+", line.strip()) for line in lines] if kind and len(lines) > 1 else []
    last = [row[-1].strip() for row in rows]
    numbers = [int(page) for page in last if page.isdecimal()]
    are_contents = all(map(PAGE.fullmatch, last)) and numbers == sorted(numbers) and len(last) != 1
    return rows if rows and not (are_contents and kind != "blanks") else None


def _under_one_another(lines: list[str]) -> Rows:
    """Returns the rows of lines whose cells begin or end in the same columns; what stands below one goes on with it."""
    every = [list(CELL.finditer(line)) for line in lines if not MARK.fullmatch(line)]
    most = max(map(len, every), default=0)
    full = [row for row in every if len(row) == most]
    if len(full) < LEAST_ROWS or len(full[0]) < 2 or not all(map(_is_column, zip(*full, strict=True))):
        return []
    starts = [min(cell.start() for cell in column) for column in zip(*full, strict=True)]
    ends = [max(cell.end() for cell in column) for column in zip(*full, strict=True)]
    rows: Rows = []
    for row in every:
        texts = [""] * len(starts)
        for cell in row:
            n = next((n for n, end in enumerate(ends) if cell.start() < end), len(ends) - 1)
            texts[n] = cell[0]
        if rows and not texts[0]:
            rows[-1] = [" ".join(filter(None, both)) for both in zip(rows[-1], texts, strict=True)]
        else:
            rows.append(texts)
    return rows


def _is_column(cells: tuple[re.Match[str], ...]) -> bool:
    return len({cell.start() for cell in cells}) == 1 or len({cell.end() for cell in cells}) == 1
