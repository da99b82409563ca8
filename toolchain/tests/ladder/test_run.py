"""The ladder: what its figures are made of, and a trial of all its steps."""

import json
from pathlib import Path

import pytest

from shardqa.errors import SetupError
from shardqa.models import shipped
from shardqa_toolchain.ladder import run, steps, worker
from shardqa_toolchain.measure import readings
from shardqa_toolchain.picture import Panel, bars
from shardqa_toolchain.processes import Process
from toolchain.tests.tiny import command


def test_a_trial_climbs_every_step_and_draws_it(tmp_path: Path) -> None:
    done = command("ladder", "--quick", "--json", "--out", tmp_path / "ladder.svg")
    ladder = json.loads(done.stdout)
    names = ["naive", "smaller network", "no padding", "ONNX", "int8", "one thread a process"]
    assert [rung["name"] for rung in ladder["rungs"]] == names
    assert all(rung["throughput"] > 0 and rung["memory"] > 0 and rung["start"] > 0 for rung in ladder["rungs"])
    assert [rung["f1"] for rung in ladder["rungs"]] == [None] * len(names), "random weights have no F1"
    naive, own = ladder["servers"]
    assert naive["memory"] > own["memory"] > own["unshared"] > 0
    assert {"Python", "numpy", "onnxruntime", "session"} < set(ladder["account"])
    assert (tmp_path / "ladder.svg").read_text().count("one thread a process") == 1


def reported(times: list[float], seconds: float) -> dict[str, object]:
    return {"times": times, "seconds": seconds, "memory": 5_000_000, "start": 0.5}


def test_processes_side_by_side_add_up_and_rounds_give_their_median() -> None:
    both = [reported([0.1, 0.3], 0.4), reported([0.2, 0.2], 0.4)]
    rung = run._rung("two", "two processes", [both, both, [reported([9.0], 9.0)] * 2])
    assert (rung.throughput, rung.p50) == (10.0, 200.0)
    assert (rung.memory, rung.start) == (5.0, 0.5)


def test_each_step_has_a_factor_of_its_own() -> None:
    rungs = run._factors([run.Rung("a", "", 2, 1, 1), run.Rung("b", "", 8, 1, 1), run.Rung("c", "", 12, 1, 1)])
    assert [rung.factor for rung in rungs] == [None, 4, 1.5]


def test_padding_changes_no_answer(tmp_path: Path) -> None:
    asked = readings(shipped.folder(), steps.draw(None, 1, tmp_path / "one.json"))[0]
    reader = worker.opened(worker.Job(worker.ONNX, str(shipped.folder()), 1, ""))
    plain, padded = (worker.answered(reader, asked, tokens) for tokens in (0, 384))
    assert plain.answer == padded.answer
    assert plain.answer in asked.question.answers


def test_a_process_that_dies_says_its_last_words() -> None:
    words = ["shardqa_toolchain.ladder.worker", "no JSON"]
    with Process.of_module(words) as process, pytest.raises(SetupError, match=r"ended with 1: .*JSONDecodeError"):
        _ = process.first_answer


def test_the_longest_bar_is_the_largest_value_and_nothing_has_none() -> None:
    drawn = bars("title", ["a", "b", "c"], [Panel("p", [2.0, 4.0, None], ["2", "4 <", ""])])
    assert [drawn.count(f'width="{width}" height="18"') for width in ("45.0", "90.0", "0.0")] == [1, 1, 1]
    assert "4 &lt;" in drawn
