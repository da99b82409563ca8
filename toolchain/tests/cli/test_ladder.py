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
from shardqa_toolchain.ladder import picture, weights
from shardqa_toolchain.ladder import run as running
from shardqa_toolchain.ladder.results import Figures, Ladder, Rung, with_shares
from shardqa_toolchain.ladder.steps import LadderModels, LadderStep, sides, steps
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


def test_what_the_ladder_can_not_begin_with_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadModel, match="is not a checkpoint"):
        run("--checkpoint", str(tmp_path))
    with pytest.raises(BadData, match=r"ends in '\.gif', \.png or \.svg is needed"):
        run("--quick", "--out", str(tmp_path / "ladder.gif"))
    absent = ["ladder", "--quick", "--questions", str(tmp_path / "absent.json")]
    assert CliRunner().invoke(app, absent).exit_code == 2, "a wrong option"
    monkeypatch.setattr(command, "DEFAULT_CHECKPOINT", tmp_path / "absent")
    with pytest.raises(BadModel, match="absent is not here; name a trained checkpoint: --checkpoint FOLDER"):
        run()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_a_base_without_a_span_head_is_refused(tmp_path: Path, work: Path) -> None:
    base = weights.write_random(tmp_path / "base", weights.TINY, shipped.folder(), weights.CLASSIFIER)
    with pytest.raises(BadModel, match="base has no span head"):
        running.run(running.LadderSettings(tiny.checkpoint(tmp_path / "t"), base=base), work)


def test_a_reader_made_from_another_checkpoint_is_refused(tmp_path: Path, work: Path) -> None:
    settings = running.LadderSettings(tiny.checkpoint(tmp_path / "t"), reader=shipped.folder())
    with pytest.raises(BadModel, match=r"was made from a checkpoint with the address .* or leave --reader away"):
        running.run(settings, work)


@pytest.mark.timeout(300)
def test_refusing_needs_a_threshold(tmp_path: Path, work: Path) -> None:
    settings = running.LadderSettings(None, refusals=tiny.question_set(tmp_path / "set.json"), count=2)
    with pytest.raises(BadModel, match=r"int8 has no scoring\.json, .* or leave --refusals away"):
        running.run(settings, work)


def models(checkpoint_is_random: bool = False) -> LadderModels:
    base, small, exact, reader = (Path(name) for name in ("base", "small", "exact", "reader"))
    return LadderModels(base, small, exact, reader, True, checkpoint_is_random, "12 x 768", "6 x 384")


def steps_on(*cores: int, checkpoint_is_random: bool = False) -> list[LadderStep]:
    return steps(models(checkpoint_is_random), Path("inputs"), 384, 1.0, list(cores))


def test_random_weights_are_never_scored() -> None:
    assert [bool(step.unscored) for step in steps_on(0, 1)] == [True, False, False, False, False, False]
    assert all(step.unscored for step in steps_on(0, 1, checkpoint_is_random=True))


def test_the_last_step_has_a_process_of_one_thread_on_each_core() -> None:
    assert [(job.core, job.threads) for job in steps_on(2, 5, 7)[-1].jobs] == [(2, 1), (5, 1), (7, 1)]


def test_bfloat16_is_measured_where_the_processor_has_it() -> None:
    plain, halved = (list(sides(models(), steps_on(0), flags)) for flags in (set[str](), {"amx_bf16"}))
    assert [step.name for step in plain] == ["batches", "cache"]
    assert [step.name for step in halved] == ["batches", "bfloat16", "cache"]
    assert not any(step.counted for step in halved)


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
def test_the_ending_decides_what_is_drawn_and_the_same_figures_give_the_same_file(
    tmp_path: Path, name: str, begins: bytes
) -> None:
    files = [tmp_path / name, tmp_path / f"again-{name}"]
    for file in files:
        picture.draw(a_ladder(), file)
    assert files[0].read_bytes().startswith(begins)
    assert files[0].read_bytes() == files[1].read_bytes()
