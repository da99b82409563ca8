"""The numbers that Word writes before the paragraphs of lists and before headings."""

import re
from typing import Any

from shardqa.files.composer import figures

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
WORTHS = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
ROMAN = tuple(zip(WORTHS, ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"), strict=True))
LEVEL = re.compile(r"%([1-9])")
MOST = 3_999  # that Roman figures can tell


class Numbering:
    """Counts the paragraphs of each list of one document, in their order."""

    def __init__(self, root: Any) -> None:
        abstract = {} if root is None else {one.get(f"{W}abstractNumId"): one for one in root.iter(f"{W}abstractNum")}
        self._lists: dict[str, str] = {}  # id of a list -> of its form, which it shares with others
        self._levels: dict[str, dict[int, Any]] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        for one in root.iter(f"{W}num") if root is not None else ():
            id_, form = one.get(f"{W}numId"), value(one, "abstractNumId")
            self._lists[id_] = form
            levels = list(abstract[form].iter(f"{W}lvl")) if form in abstract else []
            levels += one.iterfind(f"{W}lvlOverride/{W}lvl")
            self._levels[id_] = {figures(level.get(f"{W}ilvl")): level for level in levels}
            self._restarts[id_] = {
                figures(entry.get(f"{W}ilvl")): figures(value(entry, "startOverride"))
                for entry in one.iter(f"{W}lvlOverride")
                if entry.find(f"{W}startOverride") is not None
            }

    def level_of(self, list_: str, style: str) -> int:
        """Returns the level of a list that a style stands for."""
        return next((n for n, one in self._levels.get(list_, {}).items() if value(one, "pStyle") == style), 0)

    def next(self, list_: str, level: int) -> str:
        """The mark of the next paragraph: `2.1`, `(a)`, or `-` for any bullet; empty for a list that is none."""
        levels = self._levels.get(list_, {})
        if level not in levels:
            return "-" if list_ in self._lists else ""
        counts = self._counts.setdefault(self._lists[list_], {})
        restart = self._restarts[list_].pop(level, None)
        start = figures(value(levels[level], "start"), 1)
        counts[level] = restart if restart is not None else counts.get(level, start - 1) + 1
        for deeper in [one for one in counts if one > level]:
            del counts[deeper]
        if value(levels[level], "numFmt") == "bullet":
            return "-"
        all_decimal = levels[level].find(f"{W}isLgl") is not None

        def told(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            one = levels.get(at)
            count = counts.get(at, figures(value(one, "start"), 1) if one is not None else 1)
            return figure(count, "decimal" if all_decimal or one is None else value(one, "numFmt"))

        return LEVEL.sub(told, value(levels[level], "lvlText")).strip()


def figure(count: int, form: str) -> str:
    if form == "none":
        return ""
    if form in ("lowerLetter", "upperLetter") and count > 0:
        text = chr(97 + (count - 1) % 26) * min((count - 1) // 26 + 1, 9)
    elif form in ("lowerRoman", "upperRoman") and 0 < count <= MOST:
        text = ""
        for worth, letters in ROMAN:
            text += letters * (count // worth)
            count %= worth
    else:
        return f"{count:02d}" if form == "decimalZero" else str(count)
    return text.upper() if form.startswith("upper") else text


def value(element: Any, name: str) -> str:
    child = element.find(f"{W}{name}") if element is not None else None
    return child.get(f"{W}val", "") if child is not None else ""
