"""A run: the schedule, resuming bit for bit, states of other runs, damaged states."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadData, BadModel
from shardqa_toolchain.training import loop

SCHEDULE = loop.Schedule(passes=2.5, tokens=64, rate=0.01, seed=3, save_seconds=1e9)


@dataclass
class Line:
    """Learns a straight line, with dropout so that random numbers count."""

    trained: Any = field(default_factory=lambda: torch.nn.Sequential(torch.nn.Dropout(0.2), torch.nn.Linear(2, 1)))
    stop_after: int | None = None
    steps: int = 0

    def lengths(self, passed: int) -> Sequence[int]:
        return [4] * 40

    def loss(self, passed: int, rows: Sequence[int], device: Any) -> Any:
        if self.steps == self.stop_after:
            raise KeyboardInterrupt
        self.steps += 1
        x = torch.tensor([[row / 40, 1.0] for row in rows])
        return ((self.trained(x) - x[:, :1] * 3) ** 2).mean()

    def held_out_figures(self, device: Any) -> dict[str, float]:
        return {}


def fresh(stop_after: int | None = None) -> Line:
    torch.manual_seed(0)
    return Line(stop_after=stop_after)


def weights(task: Line) -> list[float]:
    return [value for parameter in task.trained.parameters() for value in parameter.detach().flatten().tolist()]


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole, cut = fresh(), fresh(stop_after=25)
    schedule = loop.Schedule(passes=2.5, tokens=64, rate=0.01, seed=3, save_seconds=1e-9)
    loop.train(whole, schedule, tmp_path / "whole", {})
    with pytest.raises(KeyboardInterrupt):
        loop.train(cut, schedule, tmp_path / "cut", {})
    again = fresh()
    loop.train(again, schedule, tmp_path / "cut", {})
    assert weights(again) == weights(whole)
    assert (tmp_path / "cut/log.jsonl").read_text() == (tmp_path / "whole/log.jsonl").read_text()


def test_a_finished_run_is_not_run_again_and_its_log_holds_loss_and_rate(tmp_path: Path) -> None:
    first, again = fresh(), fresh()
    loop.train(first, SCHEDULE, tmp_path, {})
    loop.train(again, SCHEDULE, tmp_path, {})
    assert again.steps == 0
    assert weights(again) == weights(first)
    lines = [json.loads(line) for line in (tmp_path / loop.LOG_FILE).read_text().splitlines()]
    assert lines[-1]["step"] == lines[-1]["steps"]
    assert all(math.isfinite(line["loss"]) for line in lines)


def test_a_state_of_another_run_and_a_truncated_one_are_refused(tmp_path: Path) -> None:
    loop.train(fresh(), SCHEDULE, tmp_path, {"data": "one"})
    with pytest.raises(BadData, match="other settings or data"):
        loop.train(fresh(), SCHEDULE, tmp_path, {"data": "another"})
    state = tmp_path / loop.STATE_FILE
    state.write_bytes(state.read_bytes()[:200])
    with pytest.raises(BadModel, match=r"state\.pt can't be read"):
        loop.train(fresh(), SCHEDULE, tmp_path, {"data": "one"})


def test_a_part_of_a_pass_has_that_part_of_the_steps() -> None:
    full = len(loop.steps_of(Line(), loop.Schedule(passes=1, tokens=64)))
    assert len(loop.steps_of(Line(), loop.Schedule(passes=2.5, tokens=64))) == pytest.approx(2.5 * full, abs=1)


@given(st.integers(1, 500), st.floats(0, 0.9))
def test_the_rate_never_leaves_0_to_1_and_ends_near_0(steps: int, warm_up: float) -> None:
    shares = [loop.share_of_rate(step, steps, warm_up) for step in range(steps)]
    assert all(0 <= share <= 1 for share in shares)
    assert max(shares) > 0


@pytest.mark.parametrize(("setting", "value"), [("passes", 0), ("rate", 2.0), ("warm_up", 1.0), ("tokens", 0)])
def test_a_setting_out_of_its_range_is_named(setting: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(BadData, match=f"{setting} is {value}"):
        loop.train(fresh(), loop.Schedule(**{setting: value}), tmp_path, {})


def test_a_task_without_rows_is_refused(tmp_path: Path) -> None:
    class Nothing(Line):
        def lengths(self, passed: int) -> Sequence[int]:
            return []

    with pytest.raises(BadData, match="no rows to learn from"):
        loop.train(Nothing(), SCHEDULE, tmp_path, {})
