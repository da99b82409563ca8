"""`shardqa-models package` as a person meets it."""

import json
import platform
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shardqa.errors import BadData, BadModel, SetupError
from shardqa_toolchain.cli import app
from shardqa_toolchain.packaging import bundles
from shardqa_toolchain.packaging.target import Target
from shardqa_toolchain.packaging.trial import Trial

HERE = ["--python", f"{sys.version_info.major}.{sys.version_info.minor}", "--machine", platform.machine()]


def package(*words: object) -> Any:
    return CliRunner().invoke(app, ["package", *map(str, words)])


def test_a_folder_for_functions_is_written_and_told(tmp_path: Path) -> None:
    done = package("--kind", "functions", "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["target"] == "Python 3.12, glibc 2.34, x86_64"
    assert (tmp_path / "out" / "main.py").is_file()


@pytest.mark.parametrize(
    ("words", "fault", "message"),
    [
        (["--kind", "azure"], BadData, "--kind is 'azure'"),
        (["--python", "2.7"], SetupError, "no runtime of Lambda"),
        (["/nowhere", "--no-measure"], BadModel, "/nowhere"),
        (
            ["--machine", "aarch64" if platform.machine() == "x86_64" else "x86_64", "--try"],
            SetupError,
            "--interpreter",
        ),
    ],
)
def test_what_cannot_be_packed_is_a_fault_of_its_own(
    tmp_path: Path, words: list[str], fault: type[Exception], message: str
) -> None:
    done = package(*words, "--out", tmp_path / "out.zip")
    assert isinstance(done.exception, fault)
    assert message in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_the_figures_stand_beside_what_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shardqa_toolchain.packaging import trial

    made = bundles.Bundle(tmp_path / "b.zip", Target(), 60_000_000, 10**8, {"model": 10**8}, {}, "a test", True)
    monkeypatch.setattr(bundles, "lambda_zip", lambda *_: made)
    monkeypatch.setattr(trial, "unpacked", lambda _: _nothing())
    monkeypatch.setattr(trial, "measure", lambda *_: Trial(0.25, 123_000_000, 0.009, 0.01, {}))
    done = package("--out", made.path, *HERE)
    assert done.exit_code == 0
    assert "process start to first answer\t0.25 s\t1 s" in done.stdout
    assert "over 50 MB" in done.stderr


class _nothing:
    def __enter__(self) -> Path:
        return Path()

    def __exit__(self, *_: object) -> None:
        return
