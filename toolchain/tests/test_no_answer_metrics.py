"""SQuAD 2.0's measures and the calibration error, against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.answer_lines import Lines
from shardqa.models.scoring import AnswerWeights, OrderWeights, Scoring, SpanWeights
from shardqa_toolchain.measure import Read
from shardqa_toolchain.no_answer_metrics import expected_calibration_error, no_answer_metrics
from shardqa_toolchain.squad import SquadQuestion

NONE, HALF = AnswerWeights(*[0.0] * 9), Lines(0.5, 0.5, 0.5)
EVEN = Scoring(SpanWeights(0.0, 1.0, -1.0), OrderWeights(1, -1, 0, 0), NONE, HALF, 0.5, NONE, HALF)


def read(answer: str, margin: float, *answers: str) -> Read:
    return Read(SquadQuestion("q", "?", answers, "d"), answer, margin, 0.0, 0.0)


@pytest.mark.parametrize(
    ("reads", "scores"),
    [
        ([read("a mill", -2)], {"f1": 100}),
        ([read("a mill", 2)], {"f1": 0, "exact_match": 0, "refused": 0}),
        ([read("a mill", -2, "a mill")], {"f1": 0, "answerable_f1": 0}),
        (
            [read("a mill", 2, "mill"), read("weir", 2, "old weir"), read("x", -2), read("y", 2)],
            {"answerable_f1": 100 * (1 + 2 / 3) / 2, "refused": 50, "f1": 100 * (1 + 2 / 3 + 1 + 0) / 4},
        ),
    ],
    ids=["a right refusal", "an answer to nothing", "a refused answer", "kinds apart"],
)
def test_refusals_count_in_full_where_nothing_answers_and_nothing_elsewhere(
    reads: list[Read], scores: dict[str, float]
) -> None:
    metrics = no_answer_metrics(reads, EVEN)
    assert {name: getattr(metrics, name) for name in scores} == pytest.approx(scores)


def test_a_score_that_holds_what_it_says_has_no_error() -> None:
    score = np.full(10, 0.5)
    assert expected_calibration_error(score, np.arange(10) < 5) == 0


def test_the_error_is_the_mean_distance_over_the_bins() -> None:
    score = np.array([0.95, 0.95, 0.05, 0.05])
    right = np.array([True, False, False, False])
    assert expected_calibration_error(score, right) == pytest.approx((0.45 + 0.05) / 2)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50))
def test_the_error_lies_between_0_and_1(pairs: list[tuple[float, bool]]) -> None:
    score, right = np.array([score for score, _ in pairs]), np.array([right for _, right in pairs])
    assert 0 <= expected_calibration_error(score, right) <= 1
