"""Text in pictures, by rapidocr: its networks come in its wheel, so that nothing is fetched and no page leaves here."""

import functools
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shardqa import extras
from shardqa.errors import BadDocument

LEAST_SCORE = 0.5  # below it a line is a guess


@dataclass(frozen=True, slots=True)
class RecognizedLine:
    """A line of a picture; its box is in pixels from the picture's upper left corner."""

    text: str
    left: float
    right: float
    top: float
    bottom: float


def of_file(content: bytes) -> Iterator[list[RecognizedLine]]:
    """The lines of each picture in a file; a TIFF holds many. Raises BadDocument."""
    _engine()
    import numpy
    from PIL import Image, ImageSequence, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as file:
            for picture in ImageSequence.Iterator(file):
                yield of_picture(numpy.asarray(picture.convert("RGB"))[:, :, ::-1])
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
        raise BadDocument(f"not a picture that can be read: {str(error)[:120]}") from error


def of_picture(pixels: Any) -> list[RecognizedLine]:
    """Downwards. `pixels` is uint8 [height, width, 3], blue first. Raises BadDocument where rapidocr is not there."""
    result = _engine()(pixels)
    found = zip(result.txts or (), result.boxes if result.boxes is not None else (), result.scores or (), strict=True)
    return [
        RecognizedLine(text, *(float(edge) for edge in (*_span(box[:, 0]), *_span(box[:, 1]))))
        for text, box, score in found
        if score >= LEAST_SCORE and text.strip()
    ]


def _span(places: Any) -> tuple[float, float]:
    return places.min(), places.max()


@functools.cache
def _engine() -> Any:
    try:
        from rapidocr import RapidOCR
    except ModuleNotFoundError as error:
        raise BadDocument(f"reading pictures needs the library {error.name}; {extras.remedy('ocr')}") from error
    return RapidOCR(params={"Global.log_level": "critical"})
