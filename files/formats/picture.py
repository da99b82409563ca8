"""Pictures of text: photographed and scanned pages, where the caller asked for their text to be recognized."""

from collections.abc import Iterator

from shardqa.errors import BadDocument
from shardqa.files import recognition
from shardqa.files.composer import Composer
from shardqa.files.formats.pdf import paragraphs, scanned
from shardqa.files.source_file import MAX_BINARY, Item, SourceFile

PAGE_POINTS = 842.0  # points of a page's longer side, A4: how large a picture was drawn it rarely says


def read(source: SourceFile) -> Iterator[Item]:
    pages = [
        paragraphs.page_text(scanned.blocks(pixels, max(pixels.shape[:2]) / PAGE_POINTS)[1])
        for pixels in recognition.pictures(source.read_all(MAX_BINARY))
    ]
    composer = Composer()
    paragraphs.compose(composer, pages, {})
    if not composer.text:
        raise BadDocument("no text is recognized in it")
    yield from source.composed(composer)
