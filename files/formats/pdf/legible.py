"""Tells whether a page's characters are text: some fonts have no table of the letters that their shapes mean."""

import re
import unicodedata
from itertools import islice

import pypdfium2 as pdfium
from pypdfium2 import raw

from shardqa.files.formats.pdf.page import TextLine

NO_LETTERS = 0.2  # of a page's characters without a meaning, at most
LONG = 35  # characters; a longer word without a mark in it is several, or none
LONG_SHARE = 0.25  # of a page's characters in such words, at most
LEAST = 20  # characters of a page that tell enough
SPARSE = 1_000  # characters of a page, below which its pieces of text are looked at
SILENT = 50  # pieces without a letter: fewer are blanks
PER_LETTER = 1.5  # such pieces for each letter: text that is drawn twice to look bold has one
PIECES = 2_000  # that are looked at
NO_TEXT = 2  # bytes that pdfium gives of a piece without a letter: the end of a text
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


def is_whole(sheet: pdfium.PdfPage, lines: list[TextLine]) -> bool:
    """Returns whether pieces of text are drawn of which pdfium has no letter, more of them than it has letters."""
    letters = sum(len(word.text) for line in lines for word in line.words)
    if letters > SPARSE:
        return True
    least = max(SILENT, PER_LETTER * letters)
    pieces = list(islice(sheet.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT]), PIECES))
    return len(pieces) < least or _silent(sheet, pieces) < least


def _silent(sheet: pdfium.PdfPage, pieces: list[pdfium.PdfObject]) -> int:
    """Counts the pieces of text of which pdfium has no letter."""
    text = sheet.get_textpage()
    try:
        return sum(raw.FPDFTextObj_GetText(piece.raw, text.raw, None, 0) <= NO_TEXT for piece in pieces)
    finally:
        text.close()


def _is_unknown(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character) in ("Co", "Cn", "Cc")


def _may_be_long(word: str) -> bool:
    """Returns whether a long word is no fault: an address, a path, a number, or of a script without blanks."""
    return len(MARKED.findall(word)) > 2 or WITHOUT_BLANKS.search(word) is not None
