"""Finds where a passage's sentences begin: an answer hardly ever runs from one into the next.

Rules rather than the splitter's library (`gears_functions/splitting.py`): its 4 MB would put a packaged reader over
what may be uploaded to Lambda, and the reader's F1 is the same to 0.01 with both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BREAK = re.compile(
    r"""
    (?<![.!?…؟।۔።։။។]) (?P<mark> [.!?…؟।۔።։။។]++ ) ["'”’»)\]]*+ \s++  # end marks, what they close, a blank
    | [。！？．]++ ["'”’»)\]」』）】]*+     # scripts without blanks
    | (?<= [\u0e00-\u0eff]{20} ) [ ]++ (?= [\u0e00-\u0eff]{20} )  # Thai and Lao: names and lists have shorter parts
    | \n \s* \n                           # an empty line: a heading's or a paragraph's end
    | \n (?= [ \t]*+ (?: [-*+•] | \d{1,3}[.)] ) [ \t] )  # an item of a list
    """,
    re.VERBOSE,
)
"""Linear in the text, whatever it holds: no part of it is tried again from its middle."""

OPENING = "\"'“‘«([¿¡*_"  # what may stand before a sentence's first letter
ABBREVIATED = re.compile(
    r"(?:^|[^\w.])(?:\w|(?:\w\.)+\w|Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Gen|Col|Lt|Rev|vs|No|Nr|Inc|Co|Ltd|etc|ca|approx|vol|pp|fig)\Z"
)
"""What a full stop may follow without ending a sentence: initials, titles and the like."""

LONGEST = 16  # characters before a full stop that are looked at


PARAGRAPH = 1 << 20
"""What the numbers of sentences in two paragraphs differ by at least: more than a passage has sentences."""


def beginnings(text: str) -> list[int]:
    """The characters at which sentences begin, rising, but for the first."""
    return [match.end() for match in _breaks(text)]


def numbers(text: str, offsets: NDArray[np.int32]) -> NDArray[np.int64]:
    """The number, rising from 0, of the sentence that each wordpiece begins in, [n]; ``offsets`` are theirs, [n, 2].

    It leaps by PARAGRAPH at an empty line.
    """
    breaks = _breaks(text)
    leaps = [PARAGRAPH if match.group().count("\n") > 1 else 1 for match in breaks]
    which = np.searchsorted(np.array([match.end() for match in breaks], dtype=np.int64), offsets[:, 0], side="right")
    return np.cumsum([0, *leaps], dtype=np.int64)[which]


def _breaks(text: str) -> list[re.Match[str]]:
    return [match for match in BREAK.finditer(text) if not match["mark"] or _ends(text, match)]


def _ends(text: str, break_: re.Match[str]) -> bool:
    """Whether an end mark ends a sentence: before an empty line, or no small letter and after no abbreviation."""
    mark = break_.group()
    after = text[break_.end() : break_.end() + 4].lstrip(OPENING)[:1]
    before = text[max(0, break_.start() - LONGEST) : break_.start()]
    is_abbreviated = mark.rstrip() == "." and "\n" not in mark and ABBREVIATED.search(before)
    return mark.count("\n") > 1 or not (after.islower() or is_abbreviated)
