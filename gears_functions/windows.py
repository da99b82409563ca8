"""Searches through a long text, a window at a time: one keeps the interpreter's lock, and questions wait."""

import re
from collections.abc import Iterator, Sequence

WINDOW = 8_192  # characters


def matches(pattern: re.Pattern[str], text: str, longest: int, signs: Sequence[str] = ()) -> Iterator[re.Match[str]]:
    """Yields those of `pattern.finditer(text)` whose first `longest` characters tell that they match.

    Where there are `signs`, each match has one of them, casefolded, there: a part that has none is not searched.
    """
    end = 0
    for begin in range(0, len(text), WINDOW):
        if signs and not any(map(text[begin : begin + WINDOW + longest].casefold().__contains__, signs)):
            continue
        for match in pattern.finditer(text, max(begin, end), begin + WINDOW + longest):
            if match.start() >= begin + WINDOW:
                break
            whole = pattern.match(text, match.start()) if match.end() == begin + WINDOW + longest else match
            if whole is not None:
                end = whole.end()
                yield whole
