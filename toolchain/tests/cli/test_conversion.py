"""`shardqa-models export`, `quantize` and `verify` as typed."""

import json
from pathlib import Path

import pytest

from shardqa.errors import BadModel, SetupError
from shardqa.models.scoring import shipped_scoring
from toolchain.tests.tiny import command
from toolchain.tests.tiny_models import tiny_weights, write_tiny


def test_export_writes_a_folder_and_shows_the_verdict(reader: Path, tmp_path: Path) -> None:
    result = command("export", reader, "--out", tmp_path / "out", "--limit", 4)
    assert "best spans that agree, %\t\t100.0" in result.stdout
    assert (tmp_path / "out" / "model.onnx").exists()


def test_quantize_prints_the_verdict_as_json(tmp_path: Path) -> None:
    reader = write_tiny(tmp_path / "reader", tiny_weights(seed=4))
    result = command("quantize", reader, "--out", tmp_path / "out", "--json")
    assert json.loads(result.stdout)["passed"] is True


def test_quantize_sends_a_reader_without_scores_to_have_them_fitted(tmp_path: Path) -> None:
    checkpoint = write_tiny(tmp_path / "checkpoint", tiny_weights(seed=4))
    step = "next: shardqa-models candidates"
    assert step in command("quantize", checkpoint, "--out", tmp_path / "bare").stderr
    shipped_scoring().save(checkpoint)
    assert step not in command("quantize", checkpoint, "--out", tmp_path / "scored").stderr


def test_verify_fails_on_another_model_unless_other_thresholds_allow_it(reader: Path, tmp_path: Path) -> None:
    other = write_tiny(tmp_path / "other", tiny_weights(seed=5))
    result = command("verify", reader, other, "--limit", 4)
    assert result.exit_code == 1
    assert "failed" in result.stderr
    noise = {name: value * (1.001 if "output.dense" in name else 1) for name, value in tiny_weights().items()}
    near = write_tiny(tmp_path / "near", noise)
    assert command("verify", reader, near, "--limit", 4).exit_code == 1
    words = ("--threshold", "quantized", "--f1-loss", 100)
    assert command("verify", reader, near, "--limit", 4, *words).exit_code == 0


def test_what_is_no_checkpoint_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="is not a checkpoint"):
        command("quantize", tmp_path, "--out", tmp_path / "out")


def test_a_missing_library_is_named(reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardqa.extras.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"pip install '\./toolchain\[train\]'"):
        command("export", reader, "--out", tmp_path / "out")
