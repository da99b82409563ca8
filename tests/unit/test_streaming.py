"""Commands with files in them: the bytes that leave, and files that change meanwhile."""

import hashlib
import os
from pathlib import Path

import pytest
from redis._parsers import Encoder
from redis.connection import PythonRespSerializer

from shardqa import streaming
from shardqa.errors import BadModel
from shardqa.streaming import StreamedFile, packed, parts_of

CONTENT = bytes(range(256)) * 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(CONTENT)
    return path


def sent(*words: object) -> bytes:
    return b"".join(packed(words))


def as_redis_py(*words: object) -> bytes:
    return b"".join(PythonRespSerializer(6000, Encoder("utf-8", "strict", False).encode).pack(*words))


@pytest.mark.parametrize("part", [1, 100, 767, 768, 769])
@pytest.mark.parametrize("piece", [7, 1000])
def test_a_file_leaves_as_the_words_that_redis_py_would_send(
    file: Path, monkeypatch: pytest.MonkeyPatch, part: int, piece: int
) -> None:
    monkeypatch.setattr(streaming, "PART", part)
    monkeypatch.setattr(streaming, "PIECE", piece)
    words = [CONTENT[at : at + part] for at in range(0, len(CONTENT), part)]
    head = ("AI.MODELSTORE", "køy", b"\xff", 3, 0.5)
    expected = as_redis_py(*head, *words)
    assert sent(*head, *parts_of(file)) == expected
    assert sent(*head, *parts_of(CONTENT)) == expected
    assert max(len(one) for one in packed(parts_of(file))) <= max(piece, 64)


def test_an_empty_file_is_one_empty_word(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for content in (tmp_path / "empty", b""):
        assert sent("X", *parts_of(content)) == b"*2\r\n$1\r\nX\r\n$0\r\n\r\n"


@pytest.mark.parametrize("change", ["shorter", "longer", "another", "rewritten"])
def test_a_file_that_changes_before_it_is_sent_is_refused(file: Path, change: str) -> None:
    words = StreamedFile.of(file).parts()
    changed(file, change)
    with pytest.raises(BadModel, match=r"model\.onnx changed while it was sent"):
        sent("X", *words)


@pytest.mark.parametrize("change", ["shorter", "longer", "rewritten"])
def test_a_file_that_changes_while_it_is_sent_never_leaves_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(streaming, "PIECE", 100)
    pieces = packed(["X", *parts_of(file)])
    got = [next(pieces), next(pieces)]
    changed(file, change)
    with pytest.raises(BadModel):
        got.extend(pieces)
    assert sum(map(len, got)) < len(as_redis_py("X", CONTENT))


def changed(file: Path, change: str) -> None:
    match change:
        case "shorter":
            file.write_bytes(CONTENT[:300])
        case "longer":
            file.write_bytes(CONTENT * 2)
        case "another":
            other = file.with_name("other")
            other.write_bytes(CONTENT)
            other.replace(file)
        case _:
            file.write_bytes(CONTENT[::-1])
            os.utime(file, ns=(1, 1))  # its clock may stand still for milliseconds


def test_the_digest_is_of_the_whole_file(file: Path) -> None:
    found = StreamedFile.of(file)
    assert (found.size, found.sha256()) == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
