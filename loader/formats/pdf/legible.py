"""Tells whether a page's characters are text: some fonts have no table of the letters that their shapes mean."""

import re
import unicodedata

from shardqa.loader.formats.pdf.page import TextLine

NO_LETTERS = 0.2  # of a page's characters without a meaning, at most
LONG = 35  # characters; a longer word without a mark in it is several, or none
LONG_SHARE = 0.25  # of a page's characters in such words, at most
LEAST = 20  # characters of a page that tell enough
MARKED = re.compile(r"[\W\d_]")
WITHOUT_BLANKS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]")


def is_text(lines: list[TextLine]) -> bool:
    words = [word.text for line in lines for word in line.words]
    total = sum(map(len, words))
    if total < LEAST:
        return True
    unknown = sum(_is_unknown(character) for word in words if not word.isascii() for character in word)
    long = sum(len(word) for word in words if len(word) > LONG and not _may_be_long(word))
    return unknown <= NO_LETTERS * total and long <= LONG_SHARE * total


def _is_unknown(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character) in ("Co", "Cn", "Cc")


def _may_be_long(word: str) -> bool:
    """Returns whether a long word is no fault: an address, a path, a number, or of a script without blanks."""
    return len(MARKED.findall(word)) > 2 or WITHOUT_BLANKS.search(word) is not None
