"""A PDF of pictures, as a scanner makes it."""

import io

import pytest


def scan(*pages: str) -> bytes:
    """Returns a PDF with a picture of each line, a page each; skips the test where text can't be recognized."""
    pytest.importorskip("rapidocr", reason="the extra ocr is not installed")
    from PIL import Image, ImageDraw, ImageFont

    pictures = [Image.new("L", (900, 200), 255) for _ in pages]
    for picture, words in zip(pictures, pages, strict=True):
        ImageDraw.Draw(picture).text((40, 60), words, font=ImageFont.load_default(36), fill=0)
    file = io.BytesIO()
    pictures[0].save(file, "PDF", save_all=True, append_images=pictures[1:])
    return file.getvalue()
