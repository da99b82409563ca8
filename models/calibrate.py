"""Fit ``scoring.json``: how likely a candidate is right, and the score below which nothing is answered.

    shardqa models candidates READER --squad train-v1.1.json.gz --squad unanswerable.json.gz --out train.jsonl
    shardqa models calibrate READER --candidates train.jsonl

Input: a question a line, ``{"id", "question", "answers": [..], "candidates": [{"text", "span_logit", "null_logit",
"rank_score"}, ..]}``, where no answers mean that the documents don't say.

A logistic regression over all candidates, fitted by Newton's method, says which is the best; a second one, over the
best of each question, how likely that is right. Answerable questions weigh ANSWERABLE of the total, whatever the file
holds; so the score is a probability for such a mixture. The threshold is where the share of questions treated rightly
in that mixture is highest: given the right answer, or refused where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shardqa.errors import BadData
from shardqa.models import metrics
from shardqa.models.scoring import FARTHEST, Scoring, lag

if TYPE_CHECKING:
    from numpy.typing import NDArray

RIGHT_F1 = 0.8
"""A candidate this near to a reference answer is right."""

ANSWERABLE = 3 / 5
"""The share of questions taken to have an answer: between a half, as if nothing were known of a user's questions, and
the two thirds of SQuAD 2.0's training set."""

AS_GOOD = 0.0025
"""Shares of questions nearer than this are the same: of 3,000 questions a share is known to 0.8 %, and the best line
among many near ones is an accident."""

RIDGE = 1e-3
"""Keeps Newton's method from running away where right and wrong can be told apart perfectly."""

NEWTON_STEPS = 30
"""Far more than it needs; it converges in about eight."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what was found."""

    answerable: bool
    signals: NDArray[np.float64]
    """[candidates, 2]: margin and lag."""
    right: NDArray[np.bool_]
    """Whether each candidate is right, [candidates]."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scoring treats questions, percent."""

    answered_right: float
    """Of the answerable ones: the best candidate is right and given."""
    refused: float
    """Of the unanswerable ones."""
    calibration_error: float
    """Mean distance between score and share of right candidates over ten bins of equal size, in percent points."""


def read_candidates(path: Path) -> list[Asked]:
    """Read questions with candidates; raises BadData with the line, OSError as open() does."""
    asked = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            asked.append(_asked(json.loads(line)))
        except (ValueError, TypeError, KeyError) as error:
            raise BadData(
                f"{path}, line {number}: {error!r}; write it again with 'shardqa models candidates'"
            ) from None
    return asked


def _asked(record: dict[str, list[dict[str, str | float]]]) -> Asked:
    answers = [str(answer) for answer in record["answers"]]
    found = record["candidates"]
    rank = np.array([float(candidate["rank_score"]) for candidate in found])
    margin = np.array([float(candidate["span_logit"]) - float(candidate["null_logit"]) for candidate in found])
    lags = np.array([lag(score, rank.max(initial=0)) for score in rank])
    right = [bool(answers) and metrics.f1(str(candidate["text"]), answers) >= RIGHT_F1 for candidate in found]
    return Asked(bool(answers), np.stack([margin, lags], axis=1), np.array(right, dtype=np.bool_))


def fit(asked: Sequence[Asked]) -> Scoring:
    """Fit weights and threshold; raises BadData unless there are both answerable and unanswerable questions."""
    answerable = sum(one.answerable for one in asked)
    if answerable in (0, len(asked)):
        raise BadData(
            f"{answerable} of {len(asked)} questions are answerable; some of both kinds are needed: "
            "give shardqa models candidates a file of each, or one in the form of SQuAD 2.0"
        )
    share = {True: ANSWERABLE / answerable, False: (1 - ANSWERABLE) / (len(asked) - answerable)}
    told = [one for one in asked if len(one.right)]
    bias, margin, lag_weight = _logistic(
        np.concatenate([one.signals for one in told]),
        np.concatenate([one.right for one in told]),
        np.concatenate([np.full(len(one.right), share[one.answerable]) for one in told]),
    )
    level = _level(Scoring(bias, margin, lag_weight, no_answer_below=0.0), told, share)
    return replace(level, no_answer_below=_threshold(level, asked))


def _level(scoring: Scoring, told: Sequence[Asked], share: Mapping[bool, float]) -> Scoring:
    """The scoring with its odds shifted and stretched to be right of the best candidate, the one that is given.

    Platt 1999, equation 2, over each question's best: it is more often right than others with the same signals.
    """
    best = [int(scores(scoring, one).argmax()) for one in told]
    odds = np.array([_odds(scoring, one)[at] for one, at in zip(told, best, strict=True)])
    right = np.array([one.right[at] for one, at in zip(told, best, strict=True)])
    shift, stretch = _logistic(odds[:, None], right, np.array([share[one.answerable] for one in told]))
    return Scoring(shift + stretch * scoring.bias, stretch * scoring.margin, stretch * scoring.lag, 0.0)


def _logistic(signals: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64]) -> list[float]:
    """Weighted logistic regression with a little ridge: bias, then a coefficient per signal."""
    weights = weights * len(weights) / weights.sum()
    design = np.concatenate([np.ones((len(signals), 1)), signals], axis=1)
    coefficients = np.zeros(design.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = _chances(design @ coefficients)
        slope = design.T @ (weights * (right - chance)) - RIDGE * coefficients
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design
        coefficients += np.linalg.solve(curvature + RIDGE * np.eye(len(coefficients)), slope)
    return [float(value) for value in coefficients]


def _chances(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of log-odds, none of them exactly 0 or 1."""
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -FARTHEST, FARTHEST))))


def _odds(scoring: Scoring, one: Asked) -> NDArray[np.float64]:
    """The log-odds of each candidate, [candidates]."""
    return np.asarray(scoring.bias + one.signals @ np.array([scoring.margin, scoring.lag]))


def scores(scoring: Scoring, one: Asked) -> NDArray[np.float64]:
    """The score of each candidate, [candidates]."""
    return _chances(_odds(scoring, one))


def _best(scoring: Scoring, asked: Sequence[Asked]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Each question's best score (0 without candidates) and whether that candidate is right."""
    best = np.zeros(len(asked))
    right = np.zeros(len(asked), dtype=np.bool_)
    for number, one in enumerate(asked):
        if len(one.right):
            found = scores(scoring, one)
            best[number], right[number] = found.max(), one.right[found.argmax()]
    return best, right


def _threshold(scoring: Scoring, asked: Sequence[Asked]) -> float:
    """The middle of the scores with the highest share of questions treated rightly, in hundredths."""
    best, right = _best(scoring, asked)
    answerable = np.array([one.answerable for one in asked])
    lines = np.arange(1, 100) / 100
    kept = [(best[answerable] >= line) & right[answerable] for line in lines]
    rightly = [
        ANSWERABLE * yes.mean() + (1 - ANSWERABLE) * (best[~answerable] < line).mean()
        for yes, line in zip(kept, lines, strict=True)
    ]
    return round(float(np.median(lines[np.array(rightly) >= max(rightly) - AS_GOOD])), 2)


def outcome(scoring: Scoring, asked: Sequence[Asked]) -> Outcome:
    """What a scoring does with questions; a kind of which there are none counts as 0."""
    best, right = _best(scoring, asked)
    answerable = np.array([one.answerable for one in asked])
    given = best >= scoring.no_answer_below
    return Outcome(
        answered_right=100 * float((given & right)[answerable].sum()) / max(1, int(answerable.sum())),
        refused=100 * float((~given)[~answerable].sum()) / max(1, int((~answerable).sum())),
        calibration_error=100 * _calibration_error(best, right),
    )


def _calibration_error(score: NDArray[np.float64], right: NDArray[np.bool_], bins: int = 10) -> float:
    order = np.argsort(score, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return float(sum(len(part) * abs(score[part].mean() - right[part].mean()) for part in parts)) / max(1, len(score))
