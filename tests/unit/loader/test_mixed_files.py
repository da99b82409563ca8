"""The folder of 200 mixed files: each fact stands in its document at its place, each unfit file has its reason."""

from pathlib import Path

import pytest

from shardqa.loader.files import SourceFiles
from shardqa.loader.source_file import Lost, Skipped
from shardqa.places import at, encode
from shardqa.schema import Document
from tests.mixed_files import MAKERS, OF_EACH, Expected, Unfit, make


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mixed")


@pytest.fixture(scope="module")
def made(folder: Path) -> tuple[list[Expected], list[Unfit]]:
    return make(folder)


@pytest.fixture(scope="module")
def read(folder: Path, made: object) -> list[Document | Skipped | Lost]:
    return list(SourceFiles([folder]))


def test_there_are_200_files(folder: Path, made: object) -> None:
    assert sum(not path.is_dir() for path in folder.rglob("*")) == 200


@pytest.mark.parametrize("kind", MAKERS)
def test_each_fact_stands_at_its_place(
    kind: str, made: tuple[list[Expected], list[Unfit]], read: list[Document | Skipped | Lost]
) -> None:
    documents = {item.id: item for item in read if isinstance(item, Document)}
    expected = [one for one in made[0] if one.kind == kind]
    assert len(expected) == OF_EACH
    for one in expected:
        document = documents[one.document]
        start = document.text.index(str(one.fact.passengers))
        assert one.fact.ferry in document.text
        assert at([[begin, place.model_dump()] for begin, place in document.places], start) == (one.place or None)
        assert len(encode(document.places)) < 2 * len(document.text)


def test_each_unfit_file_is_refused_with_its_reason(
    made: tuple[list[Expected], list[Unfit]], read: list[Document | Skipped | Lost]
) -> None:
    refused = {Path(item.place).name: item.reason for item in read if isinstance(item, Skipped)}
    assert set(refused) == {one.name for one in made[1]}
    for one in made[1]:
        assert one.reason in refused[one.name]


def test_nothing_else_is_lost(read: list[Document | Skipped | Lost]) -> None:
    assert [item for item in read if isinstance(item, Lost)] == []
