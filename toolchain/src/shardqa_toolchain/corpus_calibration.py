"""Fit a corpus's own scores on its own questions: `shardqa-models calibrate-corpus`.

Thirty questions are few for so many weights, so the reader's own are where the fit begins and what it is drawn back to:
the most likely weights given the questions and a normal distribution around the reader's (Bishop 2006, 4.5). The
span's model, which orders candidates on the shards, stays. What the fit gains is told on questions it has not seen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadData
from shardqa.models.scoring import AnswerWeights, Ranks, Scoring, signals_of
from shardqa.models.subject import Subject
from shardqa_toolchain import calibrate
from shardqa_toolchain.calibrate import CalibrationQuestion, Kind, ScoringOutcome, is_right
from shardqa_toolchain.corpus_reading import ReadPassage
from shardqa_toolchain.squad import SquadQuestion

NEEDED = 30  # questions with an answer; fewer say nothing that ten questions more would not unsay
FOLDS = 5

SPREAD = np.array([0.5, 3.5, 0.2, 4.0, 0.2, 0.3, 0.4, 1.5, 1.5, 0.4, 0.3, 0.3, 0.4])
"""Usual differences of bias and of each of SIGNALS between questions."""

LEAST_STEP = 1e-6  # of any weight; smaller ones are no gain
DRAW = 0.5
"""Log-odds by which a usual difference of a signal may weigh otherwise than in the reader's weights: the standard
deviation of the distribution around them."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The worth of a corpus's own scores, on questions that the fit had not seen."""

    before: ScoringOutcome
    after: ScoringOutcome
    log_loss_before: float  # nats a question: how surprised the scores are by what was right; less is better
    log_loss_after: float

    @property
    def is_worth_it(self) -> bool:
        """Whether the scores are nearer to what was right, and keep no fewer right answers."""
        return self.log_loss_after < self.log_loss_before and self.after.kept >= self.before.kept


def check_enough(questions: Sequence[SquadQuestion]) -> None:
    """Raises BadData on too few questions with an answer."""
    answerable = sum(bool(one.answers) for one in questions)
    if answerable < NEEDED:
        raise BadData(f"{answerable} questions with an answer are too few, {NEEDED} are needed; write some more")


def asked_of(
    question: SquadQuestion, passages: Sequence[ReadPassage], k: int, size: int
) -> Iterator[CalibrationQuestion]:
    """Yields the question as it is fitted on, with its best passages, twice ``k`` of them.

    One with answers gives a second, absent one: without the documents that answer it, so the next ``k`` passages are
    those that a corpus without them would have found. ``size`` is the number of the corpus's passages.
    """
    if question.answers:
        yield _asked("answerable", question, passages[:k], size)
        answering = {one.document for one in passages[:k] if any(is_right(s.text, question.answers) for s in one.spans)}
        without = answering | {question.document}
        yield _asked("absent", question, [one for one in passages if one.document not in without][:k], size)
    else:
        yield _asked("absent" if question.document is None else "trick", question, passages[:k], size)


def _asked(kind: Kind, question: SquadQuestion, passages: Sequence[ReadPassage], size: int) -> CalibrationQuestion:
    candidates = tuple(span for one in passages for span in one.spans)
    signals = signals_of(candidates, Ranks([one.rank_score for one in passages], size), Subject.of(question.text))
    is_answerable = kind == "answerable"
    right = np.array([is_answerable and is_right(one.text, question.answers) for one in candidates], dtype=np.bool_)
    return CalibrationQuestion("own", kind, question.text, candidates, tuple(signals), right)


def fit(questions: Sequence[CalibrationQuestion], readers: Scoring) -> Scoring:
    """The reader's scoring with the answer's weights and lines fitted."""
    scoring = replace(readers, answer=_fit_answer(questions, readers))
    return replace(scoring, below=calibrate.lines(scoring, questions))


def _fit_answer(questions: Sequence[CalibrationQuestion], readers: Scoring) -> AnswerWeights:
    nonempty = [one for one in questions if one.found]
    weights = calibrate.shares(nonempty)
    right = np.array([one.right[one.best(readers)] for one in nonempty])
    design = np.array([(1.0, *astuple(one.signals[one.best(readers)])) for one in nonempty])
    own = np.array(astuple(readers.answer))
    return AnswerWeights(*map(float, _most_likely(design, right, weights * len(nonempty) / weights.sum(), own)))


def _most_likely(
    design: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns the most likely weights by Newton's method on the log-odds; ``design`` is [questions, weights].

    Each step is halved until it gains.
    """
    precision = np.square(SPREAD / DRAW)

    def loss(weights_of: NDArray[np.float64]) -> float:
        odds = design @ weights_of
        surprise = np.logaddexp(0, np.where(right, -odds, odds))
        return float(weights @ surprise + precision @ np.square(weights_of - prior) / 2)

    likeliest = prior.copy()
    for _ in range(calibrate.NEWTON_STEPS):
        chance = calibrate.chances(design @ likeliest)
        slope = design.T @ (weights * (right - chance)) - precision * (likeliest - prior)
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design + np.diag(precision)
        step = np.linalg.solve(curvature, slope)
        while loss(likeliest + step) > loss(likeliest) and np.abs(step).max() > LEAST_STEP:
            step = step / 2
        if np.abs(step).max() <= LEAST_STEP:
            break
        likeliest = likeliest + step
    return likeliest


def gain(questions: Sequence[CalibrationQuestion], readers: Scoring, in_use: Scoring) -> Gain:
    """Returns what fits gain over the scoring ``in_use``: each fifth of the questions scored by a fit to the rest."""
    before, after = _scored(in_use, questions), _scored_unseen(questions, readers)
    return Gain(
        calibrate.outcome_of(questions, *before),
        calibrate.outcome_of(questions, *after),
        _log_loss(questions, *before[:2]),
        _log_loss(questions, *after[:2]),
    )


Scores = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]  # score, whether right, whether given


def _scored(scoring: Scoring, questions: Sequence[CalibrationQuestion]) -> Scores:
    score, right = calibrate.scores(scoring, questions)
    return score, right, score >= scoring.below.balanced


def _scored_unseen(questions: Sequence[CalibrationQuestion], readers: Scoring) -> Scores:
    fold = _folds(questions)
    parts = np.zeros(len(questions)), np.zeros(len(questions), dtype=np.bool_), np.zeros(len(questions), dtype=np.bool_)
    for number in range(FOLDS):
        others = [one for one, own in zip(questions, fold, strict=True) if own != number]
        members = [n for n, own in enumerate(fold) if own == number]
        for values, own in zip(parts, _scored(fit(others, readers), [questions[n] for n in members]), strict=True):
            values[members] = own
    return parts


def _folds(questions: Sequence[CalibrationQuestion]) -> NDArray[np.int64]:
    """Returns each question's fifth: all that stands in the same words is in the same one."""
    order: dict[str, int] = {}
    return np.array([order.setdefault(one.question, len(order)) % FOLDS for one in questions])


def _log_loss(questions: Sequence[CalibrationQuestion], score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    weights = calibrate.shares(questions)
    chance = np.clip(np.where(right, score, 1 - score), 1e-9, 1)
    return float(-(weights * np.log(chance)).sum() / weights.sum())
