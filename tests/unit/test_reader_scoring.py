"""Scores of candidates: order, bounds, files, and fitting on made-up questions whose truth is known."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadData, BadModel
from shardqa.models import calibrate
from shardqa.models.scoring import SCORING_FILE, Scoring, shipped_scoring

SCORING = Scoring(bias=-3.0, margin=0.5, lag=-0.2, no_answer_below=0.4)
NUMBERS = st.floats(-1e6, 1e6)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_a_score_lies_between_zero_and_one_exclusive(span: float, null: float, rank: float, best: float) -> None:
    assert 0 < SCORING.score(span, null, rank, best) < 1


@given(st.floats(-10, 10), st.floats(0, 20))
def test_a_larger_margin_never_scores_lower(span: float, rank: float) -> None:
    assert SCORING.score(span + 1, 0, rank, 20) >= SCORING.score(span, 0, rank, 20)


@given(st.floats(-10, 10), st.floats(0, 19))
def test_a_better_rank_never_scores_lower(span: float, rank: float) -> None:
    assert SCORING.score(span, 0, rank + 1, 20) >= SCORING.score(span, 0, rank, 20)


def test_the_scale_of_rank_scores_does_not_matter() -> None:
    assert SCORING.score(5, 0, 6, 12) == SCORING.score(5, 0, 60, 120)


def test_rank_scores_that_are_all_zero_say_nothing() -> None:
    assert SCORING.score(5, 0, 0, 0) == SCORING.score(5, 0, 12, 12)


def test_the_shipped_threshold_is_a_probability() -> None:
    assert 0 < shipped_scoring().no_answer_below < 1


def test_a_saved_scoring_loads_the_same(tmp_path: Path) -> None:
    SCORING.save(tmp_path)
    assert Scoring.load(tmp_path) == SCORING


@given(NUMBERS, NUMBERS, NUMBERS, st.floats(0, 1))
def test_a_scoring_comes_back_from_a_label(bias: float, margin: float, lag: float, below: float) -> None:
    scoring = Scoring(bias, margin, lag, below)
    assert Scoring.of_label(scoring.on_label("reader@0123456789abcdef")) == scoring


@pytest.mark.parametrize("label", ["", "v1", "a=b", "bias=1 margin=2 lag=3", "bias=x margin=2 lag=3 no_answer_below=1",
                                   "bias=nan margin=2 lag=3 no_answer_below=1"])  # fmt: skip
def test_a_label_without_a_whole_scoring_has_none(label: str) -> None:
    assert Scoring.of_label(label) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"bias": "high"}', '{"slope": 1}'])
def test_a_broken_scoring_file_is_a_bad_model(tmp_path: Path, content: str) -> None:
    (tmp_path / SCORING_FILE).write_text(content)
    with pytest.raises(BadModel, match=SCORING_FILE):
        Scoring.load(tmp_path)


def question(number: int, margin: float, *, answerable: bool, right: bool) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "question": "Who?",
        "answers": ["Ada"] if answerable else [],
        "candidates": [
            {"text": "Ada" if right else "Bob", "span_logit": margin, "null_logit": 0.0, "rank_score": 10.0},
            {"text": "Eve", "span_logit": margin - 8, "null_logit": 0.0, "rank_score": 5.0},
        ],
    }


def written(tmp_path: Path, *records: dict[str, Any]) -> Path:
    path = tmp_path / "candidates.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


@pytest.fixture
def asked(tmp_path: Path) -> list[calibrate.Asked]:
    """Answerable questions have margins about 4 and are right, unanswerable ones about -4, with some overlap."""
    dice = random.Random(5)
    records = [question(n, dice.gauss(4, 3), answerable=True, right=True) for n in range(300)]
    records += [question(n, dice.gauss(-4, 3), answerable=False, right=False) for n in range(100)]
    return calibrate.read_candidates(written(tmp_path, *records))


def test_fitting_tells_apart_what_the_margin_tells_apart(asked: list[calibrate.Asked]) -> None:
    found = calibrate.outcome(calibrate.fit(asked), asked)
    assert found.answered_right > 80
    assert found.refused > 80


def test_fitting_learns_that_margin_counts_for_a_candidate(asked: list[calibrate.Asked]) -> None:
    assert calibrate.fit(asked).margin > 0


def test_a_threshold_of_one_refuses_everything(asked: list[calibrate.Asked]) -> None:
    found = calibrate.outcome(replace(calibrate.fit(asked), no_answer_below=1.0), asked)
    assert (found.answered_right, found.refused) == (0, 100)


def test_a_question_without_candidates_counts_as_refused(tmp_path: Path) -> None:
    empty = {"id": "q", "question": "Who?", "answers": [], "candidates": []}
    found = calibrate.outcome(SCORING, calibrate.read_candidates(written(tmp_path, empty)))
    assert found.refused == 100


def test_questions_of_one_kind_alone_are_not_enough(tmp_path: Path) -> None:
    path = written(tmp_path, question(1, 4, answerable=True, right=True))
    with pytest.raises(BadData, match=r"1 of 1 questions are answerable.* SQuAD 2\.0"):
        calibrate.fit(calibrate.read_candidates(path))


@pytest.mark.parametrize("line", ["{", "{}", '{"answers": [], "candidates": [{"text": "x"}]}', "[]"])
def test_a_broken_line_of_candidates_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "candidates.jsonl"
    path.write_text(f"{json.dumps(question(1, 4, answerable=True, right=True))}\n{line}\n")
    with pytest.raises(BadData, match="line 2"):
        calibrate.read_candidates(path)
