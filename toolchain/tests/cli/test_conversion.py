"""`shardqa-models export`, `quantize`, `optimize` and `verify` as typed."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shardqa.errors import BadModel, SetupError
from shardqa.models.scoring import shipped_scoring
from shardqa_toolchain.cli import app
from toolchain.tests.tiny_models import tiny_weights, write_tiny

runner = CliRunner()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("reader"))


def test_export_writes_a_folder_and_shows_the_verdict(reader: Path, tmp_path: Path) -> None:
    result = runner.invoke(app, ["export", str(reader), "--out", str(tmp_path / "out"), "--limit", "4"])
    assert result.exit_code == 0, result.output
    assert "best spans that agree, %\t\t100.0" in result.stdout
    assert (tmp_path / "out" / "model.onnx").exists()


def test_quantize_prints_the_verdict_as_json(reader: Path, tmp_path: Path) -> None:
    arguments = ["quantize", str(reader), "--out", str(tmp_path / "out"), "--json"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["passed"] is True


@pytest.mark.parametrize("scored", [False, True])
def test_quantize_sends_a_reader_without_scores_to_have_them_fitted(tmp_path: Path, scored: bool) -> None:
    checkpoint = write_tiny(tmp_path / "checkpoint")
    (checkpoint / "scoring.json").unlink(missing_ok=True)
    if scored:
        shipped_scoring().save(checkpoint)
    result = runner.invoke(app, ["quantize", str(checkpoint), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert ("next: shardqa-models candidates" in result.stderr) is not scored


def test_verify_fails_on_another_model(reader: Path, tmp_path: Path) -> None:
    other = write_tiny(tmp_path / "other", tiny_weights(seed=5))
    result = runner.invoke(app, ["verify", str(reader), str(other), "--limit", "4"])
    assert result.exit_code == 1
    assert "failed" in result.stderr


def test_verify_takes_other_thresholds(reader: Path, tmp_path: Path) -> None:
    noise = {
        name: value * 1.001 if "narrow" in name or "output.dense" in name else value
        for name, value in tiny_weights().items()
    }
    other = write_tiny(tmp_path / "other", noise)
    arguments = ["verify", str(reader), str(other), "--limit", "4"]
    assert runner.invoke(app, arguments).exit_code == 1
    assert runner.invoke(app, [*arguments, "--threshold", "quantized", "--f1-loss", "100"]).exit_code == 0


def test_what_is_no_checkpoint_is_an_error_of_one_line(tmp_path: Path) -> None:
    result = runner.invoke(app, ["quantize", str(tmp_path), "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, BadModel)
    assert "is not a checkpoint" in str(result.exception)


def test_a_missing_library_is_named(reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardqa.extras.find_spec", lambda name: None)
    result = runner.invoke(app, ["export", str(reader), "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, SetupError)
    assert "pip install 'shardqa-toolchain'" in str(result.exception)
