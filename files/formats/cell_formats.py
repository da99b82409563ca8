"""Numbers and dates of an xlsx as their cells show them: 17.5% rather than 0.175, €1,249.50, 3 March 2025.

Only formats that say more than the number does count: percentages, currencies and other words, dates of a form of
their own. What is not understood here (fractions, conditions, elapsed time) stays the value.
"""

import datetime
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from shardqa.files.composer import figures
from shardqa.files.formats import cell_counts, records, zipped

STYLES, BINARY = "xl/styles.xml", "xl/styles.bin"
BUILT_IN = {9: "0%", 10: "0.00%", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy"}
BUILT_IN |= {18: "h:mm AM/PM", 20: "h:mm", 21: "h:mm:ss"}
BUILT_IN |= {**dict.fromkeys((5, 6), '"$"#,##0'), **dict.fromkeys((7, 8), '"$"#,##0.00')}
CELL = re.compile(rb"<(?:\w+:)?c\b[^>]*>")
AT = re.compile(rb"""\sr\s*=\s*["']([A-Za-z]{1,3})(\d{1,7})["']""")
STYLE = re.compile(rb"""\ss\s*=\s*["'](\d{1,5})["']""")
PADDING = re.compile(r"_.|\*.|\[(?:\$-[^\]]*|Black|Blue|Cyan|Green|Magenta|Red|White|Yellow|Color ?\d+)\]", re.I)
LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]+)(?:-[^\]]*)?\]')
FIGURES = re.compile(r"(?P<before>[^#0?]*)(?P<figures>[#0?,]+(?:\.(?P<after>[#0?]+))?)(?P<behind>[^#0?]*)")
DATE = re.compile(r"yyyy|yy|m{1,5}|d{1,4}|hh?|ss?|AM/PM|[^ymdhsAP]", re.I)


def of_sheets(archive: zipfile.ZipFile) -> dict[str, dict[tuple[int, int], str]]:
    """Returns, by sheet, the formats of the cells that need one, by (row, column) from 0."""
    codes = telling(_forms(archive))
    if not codes:
        return {}
    sheets = {name: zipped.content(archive, part) for name, part in cell_counts.named_sheets(archive)}
    is_binary = BINARY in archive.namelist()
    return {
        name: of_cells(dict(records.styled(one) if is_binary else _styled(one)), codes) for name, one in sheets.items()
    }


def text(value: Any, code: str) -> str | None:
    """Returns a value as its cell shows it; None where the format is not understood."""
    sections = code.split(";")
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return _date(value, sections[0])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    has_own = value < 0 and len(sections) > 1
    digits = _number(abs(value), sections[1 if has_own else 0])
    return f"-{digits}" if digits is not None and value < 0 and not has_own else digits


def telling(forms: records.Forms) -> dict[int, str]:
    """Returns the formats that say more than the number does, by the number of their style."""
    codes = [forms.own.get(number) or BUILT_IN.get(number, "") for number in forms.used]
    return {n: code for n, code in enumerate(codes) if re.search(r'[%"$€£¥\\ymdhs]', code)}


def of_cells(styles: Mapping[records.Cell, int], codes: Mapping[int, str]) -> dict[records.Cell, str]:
    return {cell: codes[style] for cell, style in styles.items() if style in codes}


def _forms(archive: zipfile.ZipFile) -> records.Forms:
    names = archive.namelist()
    if BINARY in names:
        return records.styles(zipped.content(archive, BINARY))
    root = etree.fromstring(zipped.content(archive, STYLES), cell_counts.SAFE) if STYLES in names else None
    if root is None:
        return records.Forms()
    own = {figures(one.get("numFmtId")): one.get("formatCode") or "" for one in root.iter("{*}numFmt")}
    used = [figures(style.get("numFmtId")) for styles in root.iter("{*}cellXfs") for style in styles.iter("{*}xf")]
    return records.Forms(own, used)


def _styled(content: bytes) -> Iterator[tuple[records.Cell, int]]:
    for cell in CELL.findall(content):
        style, at = STYLE.search(cell), AT.search(cell)
        if style is not None and at is not None:
            yield (int(at[2]) - 1, cell_counts.column(at[1]) - 1), int(style[1])


def _number(value: float, section: str) -> str | None:
    plain = LITERAL.sub(lambda found: found[1] or found[2] or found[3] or "", PADDING.sub("", section))
    match = FIGURES.fullmatch(plain)
    if match is None or "," in match["figures"].rstrip(",")[-1:] or match["figures"].endswith(","):
        return None
    after = match["after"] or ""
    for _ in range(plain.count("%")):
        value *= 100
    grouping = "," if "," in match["figures"] else ""
    figures = f"{value:{grouping}.{len(after)}f}"
    for _ in range(len(after) - len(after.rstrip("#?"))):
        figures = figures.removesuffix("0")
    return f"{match['before'].strip()}{figures.removesuffix('.')}{match['behind'].rstrip()}"


def _date(value: datetime.date | datetime.time, section: str) -> str | None:
    """Returns a date as its cell shows it. `m` means minutes beside hours or seconds; None for a format with words."""
    if any(letter.isalpha() for literal in LITERAL.findall(PADDING.sub("", section)) for letter in "".join(literal)):
        return None
    plain = LITERAL.sub(lambda found: found[1] or found[2] or "", PADDING.sub("", section)).removesuffix("@")
    parts = DATE.findall(plain)
    if "".join(parts) != plain or not any(part[0].lower() in "ymdhs" for part in parts):
        return None
    clock = [part[0].lower() for part in parts if part[0].lower() in "ymdhs"]
    date, n, is_half = "", 0, "AM/PM" in plain.upper()
    for part in parts:
        kind = part.lower()
        if kind[0] not in "ymdhs":
            date += value.strftime("%p") if kind == "am/pm" else part
            continue
        is_minute = kind[0] == "m" and ("h" in clock[max(0, n - 1) : n] or "s" in clock[n + 1 : n + 2])
        field = _field(value, kind, is_minute, is_half)
        if field is None:
            return None
        date += field
        n += 1
    return date.strip()


def _field(value: Any, kind: str, is_minute: bool, is_half: bool) -> str | None:
    """Returns one field of a date (`yyyy`, `mm`); None where the value has no such field."""
    names = {"mmmm": "%B", "mmm": "%b", "dddd": "%A", "ddd": "%a", "yy": "%y"}
    numbers = {"y": "year", "d": "day", "m": "minute" if is_minute else "month", "h": "hour", "s": "second"}
    number = getattr(value, numbers[kind[0]], None)
    if number is None or kind == "mmmmm":
        return None
    if kind in names:
        return str(value.strftime(names[kind]))
    number = (number - 1) % 12 + 1 if kind[0] == "h" and is_half else number
    return f"{number:0{len(kind)}d}"
