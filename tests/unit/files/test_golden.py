"""Each line of the golden folder comes out of its file: words at their place, a reason, or nothing to lose."""

from contextlib import closing

import pytest

from shardqa.files import formats
from shardqa.files.source_file import Item, Lost, Skipped, SourceFile, Textless
from shardqa.places import at, check, encode
from shardqa.schema import Document
from tests.golden_files import FOLDER, Line, files, lines

LINES = lines()
Read = dict[str, list[Item]]


@pytest.fixture(scope="module")
def read() -> Read:
    return {path.relative_to(FOLDER).as_posix(): _of(path.relative_to(FOLDER).as_posix()) for path in files()}


def _of(name: str) -> list[Item]:
    if kind := formats.textless(name):
        return [Textless(name, kind)]
    with closing(SourceFile.open(FOLDER / name, name, formats.read)) as source:
        return list(formats.read(source))


@pytest.mark.parametrize(
    "line", [line for line in LINES if line.words], ids=lambda line: f"{line.file}-{line.words[:20]}"
)
def test_the_words_stand_at_their_place(line: Line, read: Read) -> None:
    document = next(item for item in read[line.file] if isinstance(item, Document) and item.id == line.id)
    start = document.text.index(line.words)
    assert (at(check(encode(document.places)), start) or {}) == line.place
    assert len(encode(document.places)) < 2 * len(document.text) + 500


@pytest.mark.parametrize("line", [line for line in LINES if line.reason], ids=lambda line: line.file)
def test_an_unfit_file_is_refused_with_its_reason(line: Line, read: Read) -> None:
    items = read[line.file]
    assert [type(item) for item in items] == [Skipped]
    assert isinstance(items[0], Skipped)
    assert line.reason in items[0].reason


@pytest.mark.parametrize("line", [line for line in LINES if line.textless], ids=lambda line: line.file)
def test_a_file_without_text_is_no_failure(line: Line, read: Read) -> None:
    assert [item.kind for item in read[line.file] if isinstance(item, Textless)] == [line.textless]
    assert not any(isinstance(item, Skipped | Lost) for item in read[line.file])


@pytest.mark.parametrize("line", [line for line in LINES if line.lost], ids=lambda line: line.file)
def test_what_is_lost_of_a_file_is_told(line: Line, read: Read) -> None:
    assert [line.lost in item.reason for item in read[line.file] if isinstance(item, Lost)] == [True]


def test_each_file_has_a_line_and_nothing_else_is_lost(read: Read) -> None:
    assert set(read) == {line.file for line in LINES}
    refused = {line.file for line in LINES if line.reason or line.lost}
    lost = {name for name, items in read.items() if any(isinstance(item, Skipped | Lost) for item in items)}
    assert lost == refused
