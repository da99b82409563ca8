"""Pictures of text: photographed and scanned pages, where the caller asked for their text to be recognized."""

from collections.abc import Iterator

from shardqa.errors import BadDocument
from shardqa.loader import recognition
from shardqa.loader.composer import Composer
from shardqa.loader.source_file import MAX_BINARY, Item, SourceFile


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    for number, lines in enumerate(recognition.of_file(source.read_all(MAX_BINARY)), 1):
        composer.at(page=number)
        composer.block("\n".join(line.text for line in lines))
    if not composer.text:
        raise BadDocument("no text is recognized in it")
    yield source.composed(composer)
