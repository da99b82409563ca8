"""Split readers on their way: taught, resumed, written, measured."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardqa.errors import BadData, BadModel
from shardqa.models.split import SplitSession
from shardqa.models.toolchain.splitting import Measuring, cuts, timed_rows
from tests.unit import tiny

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from safetensors.numpy import load_file  # noqa: E402

from shardqa.models.session import ReaderSession  # noqa: E402
from shardqa.models.toolchain.conversion.checked import Check  # noqa: E402
from shardqa.models.toolchain.conversion.export import export  # noqa: E402
from shardqa.models.toolchain.conversion.quantize import quantize  # noqa: E402
from shardqa.models.toolchain.training import distil  # noqa: E402
from shardqa.models.toolchain.training.loop import Schedule  # noqa: E402
from shardqa.models.toolchain.training.recipe import Data, Recipe, Teaching  # noqa: E402

LAYERS = 3


def recipe(folder: Path) -> Recipe:
    train = tiny.question_set(folder / "train.json")
    teacher = str(tiny.checkpoint(folder / "teacher", LAYERS))
    teaching = Teaching(teachers=(teacher,), soft=0.8, hidden=1.0, split_layers=2)
    schedule = Schedule(passes=30, tokens=256, rate=0.01, save_seconds=1e-9)
    return Recipe(teacher, 0.0, Data(train=(str(train),), held_out=0.0, crops=0.5), schedule, teaching)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taught")
    settings = recipe(folder)
    distil.distil(settings, folder / "out", folder / "work")
    return folder


def test_the_checkpoint_says_how_it_is_split(taught: Path) -> None:
    config = json.loads((taught / "out/config.json").read_text())
    assert (config["split_layers"], config["passage_place"]) == (2, 16)


def test_a_killed_teaching_goes_on_to_the_same_weights(
    taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = recipe(taught)
    whole = distil.DistilTask.loss
    steps = 0

    def stopping(self: Any, passed: int, rows: Sequence[int], device: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 25:
            raise KeyboardInterrupt
        return whole(self, passed, rows, device)

    monkeypatch.setattr(distil.DistilTask, "loss", stopping)
    with pytest.raises(KeyboardInterrupt):
        distil.distil(settings, tmp_path / "out", tmp_path / "work")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(distil.DistilTask, "loss", whole)
    distil.distil(settings, tmp_path / "out", tmp_path / "work")
    wanted = load_file(taught / "out/model.safetensors")
    found = load_file(tmp_path / "out/model.safetensors")
    assert all((found[name] == value).all() for name, value in wanted.items())


def test_teaching_brings_the_split_student_nearer_to_its_teacher(taught: Path) -> None:
    lines = [json.loads(line) for line in (taught / "work/log.jsonl").read_text().splitlines()]
    assert lines[-1]["loss"] < 0.8 * lines[0]["loss"]


def test_a_student_can_not_be_split_above_its_layers(tmp_path: Path) -> None:
    settings = recipe(tmp_path)
    too_many = replace(settings, teaching=replace(settings.teaching, split_layers=LAYERS))
    with pytest.raises(BadModel, match="leave none together"):
        distil.distil(too_many, tmp_path / "out", tmp_path / "work")


@pytest.mark.parametrize("converted", [export, quantize])
def test_a_split_reader_is_written_whole_and_as_two_networks(taught: Path, tmp_path: Path, converted: Any) -> None:
    converted(taught / "out", tmp_path / "onnx", check=Check(limit=4))
    names = {path.name for path in (tmp_path / "onnx").iterdir()}
    assert {"model.onnx", "lower.onnx", "upper.onnx"} <= names
    assert {"lower.onnx", "upper.onnx"} <= set(json.loads((tmp_path / "onnx/checksums.json").read_text()))
    rows = timed_rows()
    whole, apart = ReaderSession(tmp_path / "onnx").read(rows), SplitSession.load(tmp_path / "onnx").read(rows)
    for (start, _), (other, _) in zip(whole, apart, strict=True):
        assert start == pytest.approx(other, abs=1e-3)


def test_a_split_reader_is_no_torchscript(taught: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="is split"):
        export(taught / "out", tmp_path / "out", "torchscript")


def test_each_cut_is_measured(taught: Path) -> None:
    found = list(cuts(taught / "out", None, Measuring(taught / "train.json", None, 1, "int8")))
    assert [(one.layers, one.is_trained) for one in found] == [(0, False), (1, False), (2, True)]
    assert found[0].warm_ms is None
    assert all(one.warm_ms and one.both_ms and one.kept_f1 is not None for one in found[1:])
    assert found[2].state_bytes == 32 + 4


def test_a_cut_beyond_the_layers_is_refused(taught: Path) -> None:
    with pytest.raises(BadData, match="cut is 3, 0 to 2 is needed"):
        list(cuts(taught / "out", [3], Measuring(taught / "train.json", None, 1, "int8")))
