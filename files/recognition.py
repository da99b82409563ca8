"""Text in pictures, by rapidocr: its networks come in its wheel, so that nothing is fetched and no page leaves here."""

import functools
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from shardqa import extras
from shardqa.errors import BadDocument

LEAST_SCORE = 0.5  # below it a line is a guess
UPRIGHT_SCORE = 0.85  # mean of a page's lines: 0.98 of one that stands, 0.71 of the same upside down
WIDE = 4.0  # times its height: as wide a line tells how far a page leans
MARGIN = 0.15  # of a box's height: so much stands free above its letters, and below
WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class RecognizedWord:
    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class RecognizedLine:
    """A line of a picture. Places are in pixels from the upper left corner, as if the page did not lean."""

    words: list[RecognizedWord]
    top: float
    bottom: float


def pictures(content: bytes) -> Iterator[Any]:
    """The pictures in a file, as `lines_of` takes them; a TIFF holds many. Raises BadDocument."""
    _engine()
    import numpy
    from PIL import Image, ImageSequence, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as file:
            for picture in ImageSequence.Iterator(file):
                yield numpy.asarray(picture.convert("RGB"))[:, :, ::-1]
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
        raise BadDocument(f"not a picture that can be read: {str(error)[:120]}") from error


def lines_of(pixels: Any) -> list[RecognizedLine]:
    """Returns the lines downwards; `pixels`: uint8 [height, width, 3], blue first. Raises BadDocument without rapidocr.

    A page upside down is read so. rapidocr's own network turns single lines, upright ones of long text among them.
    """
    score, lines = _read(pixels)
    if score >= UPRIGHT_SCORE:
        return lines
    return max((score, lines), _read(pixels[::-1, ::-1]), key=lambda read: read[0])[1]


def _read(pixels: Any) -> tuple[float, list[RecognizedLine]]:
    """Returns (the lines' mean score, lines)."""
    result = _engine()(pixels, return_word_box=True)
    if result.txts is None:
        return 0.0, []
    slopes = [_slope(box) for box in result.boxes if box[1, 0] - box[0, 0] > WIDE * (box[3, 1] - box[0, 1])]
    leaning = median(slopes) if slopes else 0.0
    lines = [
        _line(text, box, words, leaning)
        for text, box, score, words in zip(result.txts, result.boxes, result.scores, result.word_results, strict=True)
        if score >= LEAST_SCORE and text.strip()
    ]
    return mean(result.scores), sorted(lines, key=lambda line: line.top)


def _slope(box: Any) -> float:
    return float((box[1, 1] - box[0, 1]) / (box[1, 0] - box[0, 0]))


def _line(text: str, box: Any, pieces: Any, leaning: float) -> RecognizedLine:
    """Makes a line of pieces (text, score, box): words, or single characters where a script has no blanks."""
    shift = leaning * float(box[:, 0].mean())
    top, bottom = float(box[:2, 1].mean()) - shift, float(box[2:, 1].mean()) - shift
    free = MARGIN * (bottom - top)
    return RecognizedLine(list(_words(text, box, pieces)), top + free, bottom - free)


def _words(text: str, box: Any, pieces: Any) -> Iterator[RecognizedWord]:
    """Yields a line's words. Where pieces don't spell them, each gets a share of the line's box by its length."""
    if "".join(piece for piece, _, _ in pieces) == "".join(text.split()):
        edges = [edge for piece, _, place in pieces for edge in _edges(piece, _span(place))]
    else:
        shares = zip(text, _edges(text, _span(box)), strict=True)
        edges = [edge for character, edge in shares if not character.isspace()]
    at = 0
    for word in WORD.findall(text):
        of_word = edges[at : at + len(word)]
        yield RecognizedWord(word, of_word[0][0], of_word[-1][1])
        at += len(word)


def _edges(text: str, span: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """Yields the left and right edge of each character, as if all had one width."""
    left, each = span[0], (span[1] - span[0]) / max(len(text), 1)
    return ((left + at * each, left + (at + 1) * each) for at in range(len(text)))


def _span(box: Any) -> tuple[float, float]:
    across = [float(corner[0]) for corner in box]
    return min(across), max(across)


@functools.cache
def _engine() -> Any:
    try:
        from rapidocr import RapidOCR
    except ModuleNotFoundError as error:
        raise BadDocument(f"reading pictures needs the library {error.name}; {extras.remedy('ocr')}") from error
    return RapidOCR(params={"Global.log_level": "critical", "Global.use_cls": False})
