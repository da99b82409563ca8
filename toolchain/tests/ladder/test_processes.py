"""Processes of the ladder: what they report, and what is said of one that dies."""

import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shardqa.errors import SetupError
from shardqa.models import shipped
from shardqa_toolchain.ladder import inputs, worker
from shardqa_toolchain.ladder.job import ONNX, Job
from shardqa_toolchain.ladder.processes import score_step, time_step


@pytest.fixture
def job(tmp_path: Path) -> Job:
    inputs.save(inputs.draw(None, 3), tmp_path / "inputs.json")
    return Job(ONNX, (str(shipped.folder()),), str(tmp_path / "inputs.json"), 1, 384, 0.0)


def in_this_process(job: Job) -> dict[str, object]:
    out = io.StringIO()
    worker.do(job, io.StringIO("\n"), out)
    first, result = (json.loads(line) for line in out.getvalue().splitlines())
    assert first["first_answer"] > 0
    found: dict[str, object] = result
    return found


def test_processes_run_side_by_side_on_cores_of_their_own(job: Job) -> None:
    core = min(os.sched_getaffinity(0))
    found = time_step("pair", [replace(job, core=core), job])
    assert [one.timed.questions for one in found] == [3, 3]
    assert all(0 < one.start < 600 for one in found)
    assert all(len(one.timed.times) == 3 for one in found)
    assert all(10_000_000 < one.timed.memory < 2_000_000_000 for one in found)


def test_a_process_that_dies_is_told_with_its_stderr(job: Job, tmp_path: Path) -> None:
    shutil.copyfile(shipped.folder() / "tokenizer.json", tmp_path / "tokenizer.json")
    broken = replace(job, folders=(str(tmp_path),))
    with pytest.raises(SetupError, match=r"the step 'broken' ended with exit code 1: .*model\.onnx can't be loaded"):
        time_step("broken", [broken])


def test_a_process_that_is_killed_is_told_with_the_signal(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the kernel ends one that takes too much memory; Python imports this file by itself.
    (tmp_path / "sitecustomize.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(SetupError, match="the step 'big' was ended by signal 9"):
        score_step("big", job)


def test_refused_answers_are_scored_by_the_threshold_of_a_reader(
    job: Job, tmp_path: Path, scoring: Callable[[float], Path]
) -> None:
    assert in_this_process(replace(job, scored=True, scoring=str(scoring(1.0))))["f1"] == 0
    answering = in_this_process(replace(job, scored=True, scoring=str(scoring(0.0))))
    assert answering["f1"] == pytest.approx(in_this_process(replace(job, scored=True))["f1"])


@pytest.fixture
def scoring(tmp_path: Path) -> Callable[[float], Path]:
    def write(threshold: float) -> Path:
        known = json.loads((shipped.folder() / "scoring.json").read_text())
        (tmp_path / "scoring.json").write_text(json.dumps({**known, "no_answer_below": threshold}))
        return tmp_path

    return write
