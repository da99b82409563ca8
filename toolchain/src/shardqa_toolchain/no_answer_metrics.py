"""Measures of how well a reader knows what it does not know: SQuAD 2.0's, the calibration error, the fit of a score.

    shardqa-models measure models/reader-v4-int8 ../shared/data/squad/dev-v2.0.json.gz

The right paragraph is given, or one that only looks right. A question without an answer counts 1 when nothing is
answered, else 0 (Rajpurkar et al. 2018, section 4).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardqa.models.scoring import Scoring
from shardqa_toolchain.calibrate import RIGHT_F1
from shardqa_toolchain.measure import Read

# Of the calibration error, of equal width (Guo et al. 2017, section 2).
BINS = 15


@dataclass(frozen=True, slots=True)
class NoAnswerMetrics:
    """A reader's result on questions of which some have no answer; percent."""

    questions: int
    exact_match: float
    f1: float
    answerable_f1: float  # of the questions that have an answer
    refused: float  # of the questions that have none
    calibration_error: float  # mean distance between score and share of right answers, 0 to 1, over BINS bins
    threshold: float  # score below which nothing was answered, 0 to 1


def no_answer_metrics(reads: Sequence[Read], scoring: Scoring) -> NoAnswerMetrics:
    """Measure with the reader's own threshold; ``reads`` has one at least."""
    score = scores(reads, scoring)
    is_answer = score >= scoring.no_answer_below
    answerable = np.array([bool(one.question.answers) for one in reads])
    f1 = np.where(is_answer, [one.f1 for one in reads], ~answerable)
    exact = np.where(is_answer, [one.exact_match for one in reads], ~answerable)
    right = np.array([one.f1 >= RIGHT_F1 for one in reads])
    return NoAnswerMetrics(
        questions=len(reads),
        exact_match=100 * float(exact.mean()),
        f1=100 * float(f1.mean()),
        answerable_f1=_mean_percent(f1[answerable]),
        refused=_mean_percent(~is_answer[~answerable]),
        calibration_error=expected_calibration_error(score, right),
        threshold=scoring.no_answer_below,
    )


def scores(reads: Sequence[Read], scoring: Scoring) -> NDArray[np.float64]:
    """Returns the score of each question's best span, as if its passage ranked best, [reads]."""
    return np.array([scoring.score(one.span_logit, one.null_logit, 1.0, 1.0) for one in reads])


def expected_calibration_error(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Returns the error of Guo et al. 2017, equation 3, with BINS bins of equal width over 0 to 1."""
    bins = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    error = 0.0
    for number in range(BINS):
        in_bin = bins == number
        if in_bin.any():
            error += float(in_bin.mean()) * abs(float(score[in_bin].mean()) - float(right[in_bin].mean()))
    return error


def _mean_percent(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return 100 * float(values.mean()) if len(values) else 0.0
