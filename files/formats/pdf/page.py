"""The lines of one page as pdfium finds them, each word with its box, in the order in which they were drawn.

That order is the reading order of nearly all writers. Boxes are in points from the page's lower left corner as it is
shown, so that a page that lies on its side reads as one that stands.
"""

import ctypes
import re
import sys
import unicodedata
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pypdfium2 as pdfium
from pypdfium2 import raw

BROKEN = "\ufffe"  # what pdfium puts where a word was hyphenated at the end of a line
ENDS = re.compile("[\r\n\ufffe]+")
SAME_LINE = 0.5  # of a line's height: boxes that overlap by as much stand in one line
JOINED = 1.0  # of a line's height: a gap below it belongs to one piece of text
TOUCHING = 0.12  # of a line's height: without a gap of as much there is no blank
SMALL = 0.88  # of the height of its neighbours: below it a character may be raised or lowered
RAISED = 0.15  # of a line's height: by as much the foot of a superscript is above the line's foot
LOWERED = 0.25  # the same of a subscript's head below the line's head
ORDINALS = frozenset({"st", "nd", "rd", "th", "e", "er", "o", "a", "tm"})
LIGATURES = {first + n: 0xFB00 + n for first in (0x0B, 0x1B) for n in range(5) if first + n != ord("\r")}
"""Where TeX's fonts have ff, fi, fl, ffi and ffl; many of its files name no letters for them."""
LIGATURE = re.compile("[\ufb00-\ufb06\ufb13-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]")
LAM_ALEF = re.compile("[آأإا]ل")
HAS_FIGURE = re.compile(r"\D\d|\d\D")


@dataclass(slots=True)
class Word:
    text: str
    left: float
    right: float
    bottom: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom


@dataclass(slots=True)
class Words:
    """One or more words side by side."""

    words: list[Word]

    @property
    def left(self) -> float:
        return self.words[0].left

    @property
    def right(self) -> float:
        return self.words[-1].right

    @property
    def bottom(self) -> float:
        return self.words[0].bottom

    @property
    def top(self) -> float:
        return self.words[0].top


@dataclass(slots=True)
class TextLine(Words):
    """A whole line; `hyphenated` where its last word ends with a hyphen and goes on in the next line."""

    hyphenated: bool = False
    is_downwards: bool = False
    is_unsure: bool = False  # whether it may belong to columns that are read one after the other

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def height(self) -> float:
        return self.words[0].height


class _Box(Protocol):
    @property
    def bottom(self) -> float: ...
    @property
    def top(self) -> float: ...


def overlap(first: _Box, second: _Box) -> bool:
    """Returns whether both stand in one line."""
    height = min(first.top, second.top) - max(first.bottom, second.bottom)
    return height > SAME_LINE * min(first.top - first.bottom, second.top - second.bottom)


def lines(page: pdfium.PdfPage) -> list[TextLine]:
    """Returns the lines of a page in reading order. Raises PdfiumError."""
    texts: list[TextLine] = []
    text = page.get_textpage()
    try:
        for line in _Characters(text, page.get_rotation()).lines():
            if texts and not (texts[-1].hyphenated or line.is_downwards) and _goes_on(texts[-1], line):
                _join(texts[-1], line)
            else:
                texts.append(line)
    finally:
        text.close()
    return texts


def is_leftwards(lines: list[TextLine]) -> bool:
    """Returns whether most of the words are read from right to left."""
    kinds = [unicodedata.bidirectional(letter) for line in lines for word in line.words for letter in word.text]
    return kinds.count("R") + kinds.count("AL") > kinds.count("L")


def turn(lines: list[TextLine]) -> None:
    """Mirrors the words of a page that is read from right to left: columns then run as in other scripts."""
    for word in (word for line in lines for word in line.words):
        word.left, word.right = -word.right, -word.left


def _goes_on(before: TextLine, after: TextLine) -> bool:
    """Returns whether pdfium cut one line in two here, as it does behind a superscript."""
    first, last, word = before.words[0], before.words[-1], after.words[0]
    high = min(first.height, word.height)
    return high > 0 and overlap(first, word) and -0.3 * high < word.left - last.right < JOINED * high


def _join(before: TextLine, after: TextLine) -> None:
    last, word = before.words[-1], after.words[0]
    if word.left - last.right < TOUCHING * before.height:
        last.text += word.text
        last.right = word.right
        del after.words[0]
    before.words += after.words
    before.hyphenated = after.hyphenated


class _Characters:
    """The characters of one page, by their number in units of UTF-16, in which pdfium counts."""

    def __init__(self, text: pdfium.PdfTextPage, rotation: int) -> None:
        self._text = text.raw
        self._rotation = rotation
        self._box = raw.FS_RECTF()
        self._to_box = ctypes.byref(self._box)
        self.units = _units(text).translate(LIGATURES)
        for lam in LAM_ALEF.finditer(self.units):  # one glyph, whose letters pdfium turned round with the line
            if self.box(lam.start()) == self.box(lam.start() + 1):
                self.units = f"{self.units[: lam.start()]}{lam[0][::-1]}{self.units[lam.end() :]}"

    def lines(self) -> Iterator[TextLine]:
        start = 0
        for end in [*ENDS.finditer(self.units), None]:
            stop = end.start() if end is not None else len(self.units)
            words = [self._word(texts.start() + start, texts.end() + start) for texts in _words(self.units[start:stop])]
            words = [word for word in words if word.text]
            if words:
                has_hyphen = end is not None and BROKEN in end[0]
                words[-1].text += "-" if has_hyphen else ""
                yield TextLine(words, has_hyphen, self._is_downwards(start, stop - 1))
            if end is not None:
                start = end.end()

    def _is_downwards(self, first: int, last: int) -> bool:
        if last - first < 2 or self.units[first].isascii():
            return False
        left, right, bottom, _ = self.box(first)
        other_left, other_right, _, top = self.box(last)
        return top < bottom and other_left < right and left < other_right

    def box(self, n: int) -> tuple[float, float, float, float]:
        """Returns (left, right, bottom, top) of a character."""
        raw.FPDFText_GetLooseCharBox(self._text, n, self._to_box)
        box = self._box
        if not self._rotation:
            return box.left, box.right, box.bottom, box.top
        if self._rotation == 90:
            return box.bottom, box.top, -box.right, -box.left
        if self._rotation == 180:
            return -box.right, -box.left, -box.top, -box.bottom
        return -box.top, -box.bottom, box.left, box.right

    def _word(self, start: int, end: int) -> Word:
        left, right, bottom, top = self.box(start)
        text = self.units[start:end]
        if end - start > 1:
            last_left, last_right, last_bottom, last_top = self.box(end - 1)
            if last_left <= left:  # it runs downwards, or from right to left
                return Word(clean(text), last_left, max(right, last_right), bottom, top)
            right = last_right
            one, other = top - bottom, last_top - last_bottom
            if abs(one - other) > (1 - SMALL) * max(one, other) or (HAS_FIGURE.search(text) and end - start < 40):
                return self._scripted(start, end)
        return Word(clean(text), left, right, bottom, top)

    def _scripted(self, start: int, end: int) -> Word:
        """Returns a word with `^` before its raised characters and `_` before its lowered ones."""
        boxes = [self.box(n) for n in range(start, end)]
        _, _, bottom, top = max(boxes, key=lambda box: box[3] - box[2])
        levels = [_level(box, bottom, top) for box in boxes]
        pieces: list[str] = []
        at = 0
        while at < len(levels):
            stop = at + 1
            while stop < len(levels) and levels[stop] == levels[at]:
                stop += 1
            piece = self.units[start + at : start + stop]
            if at and levels[at] and _is_told(pieces, piece, self.units[start + stop : end]):
                pieces.append("^" if levels[at] > 0 else "_")
            pieces.append(piece)
            at = stop
        return Word(clean("".join(pieces)), boxes[0][0], boxes[-1][1], bottom, top)


def _level(box: tuple[float, float, float, float], bottom: float, top: float) -> int:
    """Returns 1 for a raised character, -1 for a lowered one, 0 for others."""
    high = top - bottom
    if box[3] - box[2] >= SMALL * high:
        return 0
    if box[2] > bottom + RAISED * high:
        return 1
    return -1 if box[3] < top - LOWERED * high and box[2] < bottom else 0


def _is_told(before: list[str], piece: str, after: str) -> bool:
    """Returns whether a raised piece gets a mark: figures do, letters only behind one letter, figure or bracket."""
    base = before[-1]
    if not any(character.isalnum() for character in piece) or (not base[-1:].isalnum() and base[-1:] not in ")]}|.,;:"):
        return False
    if not piece.isalpha():
        return True
    if after[:1].isalpha() or (piece.casefold() in ORDINALS and base[-1:].isdigit()):
        return False
    return base[-1:].isdigit() or base[-1:] in ")]}|" or len(base) == 1


def _words(text: str) -> Iterator[re.Match[str]]:
    return re.finditer(r"\S+", text)


def _units(text: pdfium.PdfTextPage) -> str:
    """Returns the page's text with a character for each unit of UTF-16: numbers then agree with pdfium's."""
    count = text.count_chars()
    buffer = ctypes.create_string_buffer(2 * (count + 1))
    read = raw.FPDFText_GetText(text.raw, 0, count, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)))
    units = array("H")
    units.frombytes(buffer.raw[: 2 * max(read - 1, 0)])
    if len(units) != count or sys.byteorder != "little":  # pdfium leaves out characters that it can't tell
        return "".join(chr(min(raw.FPDFText_GetUnicode(text.raw, n), 0xFFFD)) for n in range(count))
    return units.tobytes().decode("utf-16-le", "surrogatepass") if not _has_pairs(units) else "".join(map(chr, units))


def _has_pairs(units: "array[int]") -> bool:
    return any(0xD800 <= unit < 0xE000 for unit in units)


def clean(text: str) -> str:
    """Returns a text with ligatures as letters and surrogate pairs as characters, without what can't be encoded."""
    if text.isascii() and text.isprintable():
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    whole = LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), whole)
    return "".join(character for character in whole if character >= " " and character != "\x7f")
