"""Finds the items of an enumeration around a span: "Germany, Ghana and India" is three things. Pure functions.

A reader of short spans points at one item, or at the whole enumeration. Items are what commas, semicolons and the last
"and" or "or" separate, within the sentence; at either side the enumeration goes on as long as its items are short.
"""

import re

BETWEEN = re.compile(r"\s*(?:[,;]\s*(?:and|or|as well as|&)\s+|[,;]\s+|\s(?:and|or|as well as|&)\s+)")
"""What separates two items."""

INSIDE = re.compile(r",\s+(?:\d{3,4}\b|Inc|Ltd|Jr|Sr|LLC)")
"""A comma that is of one item: of a date, a place, a company's name."""

Extent = tuple[int, int]


def items(text: str, start: int, end: int) -> list[Extent]:
    """Returns the characters of each item of a span, in order; those of the span itself where it enumerates nothing."""
    cuts = [match for match in BETWEEN.finditer(text, start, end) if not INSIDE.match(text, match.start())]
    begins, ends = [start, *(cut.end() for cut in cuts)], [*(cut.start() for cut in cuts), end]
    return [(a, z) for a, z in zip(begins, ends, strict=True) if a < z]
