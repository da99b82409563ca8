"""Bundles: what goes in, the same bytes for the same input, limits, and nothing half written."""

import errno
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shardqa.errors import BadData, BadModel, SetupError
from shardqa.models import shipped
from shardqa.models.check_reader import READER_FILES, check_reader
from shardqa_toolchain.packaging import archive, bundles, bytecode, contents, wheels
from shardqa_toolchain.packaging.target import Target

TARGET = Target()
VERSIONS = {"numpy": "2"}


@pytest.fixture(autouse=True)
def few_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def gather(target: Target, versions: Mapping[str, str], out: Path, folder: Path | None = None) -> str:
        for name in ("numpy/__init__.py", "numpy/tests/test_all.py", "numpy-2.dist-info/RECORD", "numpy/core.pyi"):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text("x = {'b', 'a'}\n")
        return "a test"

    monkeypatch.setattr(wheels, "gather", gather)


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    return Path(shutil.copytree(shipped.folder(), tmp_path / "reader"))


def test_a_lambda_zip_holds_handler_code_model_and_libraries_only(tmp_path: Path) -> None:
    bundles.lambda_zip(shipped.folder(), tmp_path / "out.zip", TARGET, VERSIONS)
    with zipfile.ZipFile(tmp_path / "out.zip") as zipped:
        names = set(zipped.namelist())
    assert names == {
        "lambda_function.py",
        "numpy/__init__.py",
        *contents.CODE,
        *(f"model/{name}" for name in READER_FILES),
        *({"model/card.json"} if (shipped.folder() / "card.json").exists() else set()),
    }


def test_the_code_of_a_bundle_is_what_its_handler_imports() -> None:
    program = (
        "import sys, shardqa_toolchain.packaging.serving; "
        "print(*(module.__file__ for name, module in sys.modules.items() if name.startswith('shardqa')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {name.partition("/src/")[2] for name in done.stdout.split()} == set(contents.CODE)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        bundles.lambda_zip(shipped.folder(), tmp_path / name, TARGET, VERSIONS, python=sys.executable)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_compiled_modules_name_the_place_where_they_will_run(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def f(): pass\n")
    bytecode.compile_all(sys.executable, tmp_path)
    (compiled,) = tmp_path.glob("__pycache__/one.*.pyc")
    assert b"/var/task/one.py" in compiled.read_bytes()


def test_a_bundle_over_the_limit_is_refused_with_its_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MAX_UNZIPPED_BYTES", 20_000_000)
    with pytest.raises(BadModel, match=r"2\d\.\d MB unzipped \(model 2\d\.\d MB.*takes 20\.0 MB"):
        bundles.lambda_zip(shipped.folder(), tmp_path / "out.zip", TARGET, VERSIONS)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(archive, "_add", full)
    with pytest.raises(SetupError, match="disk is full"):
        bundles.lambda_zip(shipped.folder(), tmp_path / "out.zip", TARGET, VERSIONS)
    assert not list(tmp_path.iterdir())


def test_a_failed_bundle_leaves_the_old_one(tmp_path: Path, reader: Path) -> None:
    out = tmp_path / "out.zip"
    out.write_bytes(b"old")
    (reader / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BadModel):
        bundles.lambda_zip(reader, out, TARGET, VERSIONS)
    assert out.read_bytes() == b"old"


def test_what_is_there_already_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadData, match=r"bundle\.zip"):
        bundles.lambda_zip(shipped.folder(), tmp_path, TARGET, VERSIONS)
    with pytest.raises(BadData, match="there already"):
        bundles.functions_folder(shipped.folder(), tmp_path, TARGET, VERSIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_functions_folder_pins_everything_that_is_installed_there(tmp_path: Path) -> None:
    bundles.functions_folder(shipped.folder(), tmp_path / "out", TARGET, VERSIONS)
    lines = (tmp_path / "out" / "requirements.txt").read_text().splitlines()
    assert {"numpy==2"} < set(lines)
    assert any(line.startswith("functions-framework==") for line in lines)
    assert all(line.count("==") == 1 for line in lines)
    assert "python:3.12-slim" in (tmp_path / "out" / "Dockerfile").read_text()


def test_a_reader_that_can_not_serve_is_refused_with_what_it_lacks(reader: Path) -> None:
    config, tokenizer = (reader / "config.json").read_text(), reader / "tokenizer.json"
    (reader / "config.json").write_text(json.dumps({**json.loads(config), "max_position_embeddings": 128}))
    shipped.write_checksums(reader)
    with pytest.raises(BadModel, match="rows of 128 tokens"):
        check_reader(reader, 384)
    (reader / "config.json").write_text(config)
    (reader / "scoring.json").unlink()
    shipped.write_checksums(reader)
    with pytest.raises(BadModel, match=r"no scoring\.json; fit .*shardqa-models candidates, then calibrate"):
        check_reader(reader, 384)
    tokenizer.write_text("{}")
    with pytest.raises(BadModel, match="SHA-256"):
        check_reader(reader, 384)


def test_every_file_of_a_zip_has_the_same_time_and_mode(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    archive.write({"b": tmp_path / "a", "a": tmp_path / "a"}, tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip") as zipped:
        assert [(one.filename, one.date_time, one.external_attr >> 16) for one in zipped.infolist()] == [
            (name, (1980, 1, 1, 0, 0, 0), 0o755) for name in ("a", "b")
        ]
