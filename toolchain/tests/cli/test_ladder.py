"""`shardqa-models ladder` end to end on tiny random networks, its picture, and what it says when a thing is missing."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shardqa.errors import BadData, BadModel, SetupError
from shardqa.models import shipped
from shardqa_toolchain.cli import app
from shardqa_toolchain.cli import ladder as command
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.ladder import picture, weights
from shardqa_toolchain.ladder import run as running
from shardqa_toolchain.ladder.results import Figures, Ladder, Rung, with_shares
from shardqa_toolchain.ladder.steps import LadderModels, sides, steps
from toolchain.tests import tiny

STEPS = ["naive", "smaller model", "no padding", "ONNX", "int8", "one thread each"]


def run(*words: str) -> str:
    return CliRunner().invoke(app, ["ladder", *words], catch_exceptions=False).stdout


@pytest.mark.timeout(900)  # six processes, of which three import torch
def test_a_quick_ladder_has_all_steps_and_a_picture(tmp_path: Path) -> None:
    found = json.loads(run("--quick", "--json", "--out", str(tmp_path / "ladder.svg")))
    assert [rung["name"] for rung in found["rungs"]] == STEPS
    assert all(rung["figures"]["throughput"] > 0 for rung in found["rungs"])
    assert sum(rung["share"] for rung in found["rungs"][1:]) == pytest.approx(1)
    assert {rung["unscored"] for rung in found["rungs"]} == {"not measured: random weights"}
    assert "<svg" in (tmp_path / "ladder.svg").read_text()


def test_without_a_checkpoint_one_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "DEFAULT_CHECKPOINT", tmp_path / "absent")
    with pytest.raises(BadModel, match="absent is not here; name a trained checkpoint: --checkpoint FOLDER"):
        run()


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="is not a checkpoint"):
        run("--checkpoint", str(tmp_path))


def test_another_ending_than_png_or_svg_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"ends in '\.gif', \.png or \.svg is needed"):
        run("--quick", "--out", str(tmp_path / "ladder.gif"))


def test_a_base_without_a_span_head_is_refused(tmp_path: Path) -> None:
    base = weights.write_random(tmp_path / "base", weights.TINY, shipped.folder(), weights.CLASSIFIER)
    (tmp_path / "work").mkdir()
    settings = running.LadderSettings(tiny.checkpoint(tmp_path / "t"), base=base)
    with pytest.raises(BadModel, match="base has no span head"):
        running.run(settings, tmp_path / "work")


def test_a_reader_made_from_another_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    settings = running.LadderSettings(tiny.checkpoint(tmp_path / "t"), reader=shipped.folder())
    with pytest.raises(BadModel, match=r"was made from a checkpoint with the address .* or leave --reader away"):
        running.run(settings, tmp_path / "work")


@pytest.mark.timeout(300)
def test_refusing_needs_a_threshold(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    settings = running.LadderSettings(None, refusals=tiny.question_set(tmp_path / "set.json"), count=2)
    with pytest.raises(BadModel, match=r"int8 has no scoring\.json, .* or leave --refusals away"):
        running.run(settings, tmp_path / "work")


@pytest.mark.parametrize("kind", [weights.READER, weights.CLASSIFIER])
def test_random_checkpoints_are_whole(tmp_path: Path, kind: str) -> None:
    folder = weights.write_random(tmp_path / "t", weights.TINY_BASE, shipped.folder(), kind)
    found = Checkpoint.load(folder)
    assert found.shape.layers == weights.TINY_BASE.layers
    assert found.has_span_head == (kind == weights.READER)


def test_a_full_disk_is_told_with_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"can't be written: .*; 4 MB are needed: free some space, or set TMPDIR"):
        weights.write_random(tmp_path / "file" / "t", weights.TINY, shipped.folder())


def test_a_question_file_that_is_not_there_is_a_wrong_option(tmp_path: Path) -> None:
    words = ["ladder", "--quick", "--questions", str(tmp_path / "absent.json")]
    assert CliRunner().invoke(app, words).exit_code == 2


def models(checkpoint_is_random: bool = False) -> LadderModels:
    base, small, exact, reader = (Path(name) for name in ("base", "small", "exact", "reader"))
    return LadderModels(base, small, exact, reader, True, checkpoint_is_random, "12 x 768", "6 x 384")


def test_random_weights_are_never_scored() -> None:
    found = steps(models(), Path("inputs"), 384, 1.0, [0, 1])
    assert [bool(step.unscored) for step in found] == [True, False, False, False, False, False]
    assert all(step.unscored for step in steps(models(True), Path("inputs"), 384, 1.0, [0, 1]))


def test_the_last_step_has_a_process_of_one_thread_on_each_core() -> None:
    last = steps(models(), Path("inputs"), 384, 1.0, [2, 5, 7])[-1]
    assert [(job.core, job.threads) for job in last.jobs] == [(2, 1), (5, 1), (7, 1)]


def test_bfloat16_is_measured_where_the_processor_has_it() -> None:
    counted = steps(models(), Path("inputs"), 384, 1.0, [0])
    assert [step.name for step in sides(models(), counted, set())] == ["batches", "cache"]
    assert [step.name for step in sides(models(), counted, {"amx_bf16"})] == ["batches", "bfloat16", "cache"]
    assert not any(step.counted for step in sides(models(), counted, {"amx_bf16"}))


def a_ladder(*faults: str) -> Ladder:
    known = Figures(throughput=2.0, p50=5.0, p99=9.0, memory=200.0, together=190.0, start=1.0)
    rungs = [
        Rung(name, "", True, 1, 2, 24.0, None if fault else replace(known, throughput=number + 1.0), fault)
        for number, (name, fault) in enumerate(zip(STEPS, [*faults, *[""] * 6], strict=False))
    ]
    return Ladder("2 cores", "100 questions", 3, with_shares(rungs))


def test_a_step_that_died_is_in_the_table_and_the_command_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "run", lambda *_: a_ladder("", "the process of the step 'x' ended: no memory"))
    with pytest.raises(SetupError, match="no memory"):
        command.ladder(tiny.checkpoint(tmp_path / "t"))
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[-1] for row in rows[1:]] == ["", "failed", "", "", "", ""]


@pytest.mark.parametrize(("name", "begins"), [("l.png", b"\x89PNG"), ("l.svg", b"<?xml"), ("L.SVG", b"<?xml")])
def test_the_ending_decides_what_is_drawn(tmp_path: Path, name: str, begins: bytes) -> None:
    picture.draw(a_ladder(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        picture.draw(a_ladder(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_ladder_whose_steps_all_died_is_drawn_empty(tmp_path: Path) -> None:
    picture.draw(a_ladder(*["it died"] * 6), tmp_path / "l.svg")
    assert (tmp_path / "l.svg").exists()
