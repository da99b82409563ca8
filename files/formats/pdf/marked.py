"""A page of a PDF as a picture, with words marked where they stand on it.

The text of a document is what the reader made of the page: lines joined, hyphens gone, ligatures spelt out. So words
are found by their letters and figures alone.
"""

import struct
import unicodedata
import zlib

import numpy as np
import pypdfium2 as pdfium
from numpy.typing import NDArray

from shardqa.errors import BadDocument

WIDTH = 1_400  # pixels: sharp on a screen of twice the usual density
TALLEST = 4_000
MARK = (255, 226, 138)  # of white paper under it; letters stay as dark as they are
MARGIN = 2  # pixels around the words


def png(content: bytes, number: int, before: str, words: str) -> bytes:
    """Returns page `number` (from 1) as PNG, `words` marked where they follow the text `before`. Raises BadDocument."""
    try:
        document = pdfium.PdfDocument(content)
        try:
            document.init_forms()
            return _png(_picture(document[number - 1], before, words))
        finally:
            document.close()
    except (pdfium.PdfiumError, IndexError) as error:
        raise BadDocument(f"page {number} can't be shown: {error}; download the file") from error


def _picture(page: pdfium.PdfPage, before: str, words: str) -> NDArray[np.uint8]:
    width, height = page.get_size()
    bitmap = page.render(scale=min(WIDTH / width, TALLEST / height), rev_byteorder=True)
    picture: NDArray[np.uint8] = bitmap.to_numpy()[:, :, :3].copy()
    place = bitmap.get_posconv(page)
    text = page.get_textpage()
    for left, bottom, right, top in _boxes(text, before, words):
        corners = [place.to_bitmap(left, bottom), place.to_bitmap(right, top)]
        (x, y), (to_x, to_y) = ([side(pair) for pair in zip(*corners, strict=True)] for side in (min, max))
        part = picture[max(0, y - MARGIN) : to_y + MARGIN, max(0, x - MARGIN) : to_x + MARGIN]
        part[:] = part.astype(np.uint16) * MARK // 255
    return picture


def _boxes(text: pdfium.PdfTextPage, before: str, words: str) -> list[tuple[float, float, float, float]]:
    """Returns the box of each line that the words stand in; none where the page lacks them."""
    (letters, places), (phrase, _) = _letters(text.get_text_range()), _letters(words)
    starts = [n for n in range(len(letters)) if letters.startswith(phrase, n)] if phrase else []
    if not starts:
        return []
    first = starts[min(_letters(before)[0].count(phrase), len(starts) - 1)]
    start, end = places[first], places[first + len(phrase) - 1] + 1
    return [text.get_rect(n) for n in range(text.count_rects(start, end - start))]


def _letters(text: str) -> tuple[str, list[int]]:
    """Returns the letters and figures of a text, and the number of the character that each comes from."""
    every = [
        (letter, n)
        for n, character in enumerate(text)
        for letter in unicodedata.normalize("NFKC", character).casefold()
        if letter.isalnum()
    ]
    return "".join(letter for letter, _ in every), [n for _, n in every]


def _png(picture: NDArray[np.uint8]) -> bytes:
    height, width, _ = picture.shape
    rows = np.insert(picture.reshape(height, width * 3), 0, 0, axis=1).tobytes()  # each begins with its filter: none
    head = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b"")]
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
