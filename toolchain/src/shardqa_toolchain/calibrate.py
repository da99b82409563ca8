"""Fit ``scoring.json``: how likely an answer is right, and the scores below which nothing is answered.

    shardqa-models candidates READER --squad train-v1.1.json.gz --squad unanswerable.json.gz --out squad.jsonl
    toolchain/recipes/asked-candidates.py READER --out asked
    shardqa-models calibrate READER --candidates squad.jsonl --candidates asked/nhsuk.jsonl

Input: a question a line, ``{"id", "domain", "kind", "style", "question", "answers": [..], "absent": [term, ..],
"corpus", "ranks": [..], "candidates": [{"text", "span_logit", "null_logit", "rank_score", "evidence", "relevance",
"said", "passage", "right"}, ..], "passages": [{"key", "above", "text", "null_logit", "rank_score", "relevance",
"sentences": [[start, end, logit, evidence], ..]}, ..]}``; passages fit the scores of answers in sentences. Kinds:
**answerable**; **absent**, whose document is not in the corpus; **trick**, which the corpus only seems to answer;
**twin**, where a name of an answerable one is exchanged. A line without a kind is answerable if it has answers; its
style is text, keywords, aloud or other. A candidate is right that says so, else by its words.

The span's model is a logistic regression over all candidates, levelled on the best of each question of the domains
with trick questions. The answer's is one over each question's best candidate. In both, domains weigh the same and kinds
and styles are in the proportions of MIX; so a score is a probability for such a mixture. `left_out` fits without a
domain and reports on it, which is what a corpus never seen has to expect.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from shardqa.answer_lines import AnswerWhen, Lines
from shardqa.errors import BadData
from shardqa.models import metrics
from shardqa.models.evidence import Sentence
from shardqa.models.scoring import (
    FARTHEST,
    SIGNALS,
    AnswerWeights,
    EvidenceWeights,
    OrderWeights,
    Ranks,
    Scoring,
    Signals,
    Spanned,
    SpanWeights,
    signals_of,
)
from shardqa.models.subject import Subject

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["answerable", "absent", "trick", "twin"]

MIX: Mapping[str, float] = {
    "text": 0.4, "keywords": 0.25, "aloud": 0.2, "other": 0.05, "absent": 0.067, "trick": 0.033, "twin": 0.2,
}  # fmt: skip
"""What the questions weigh that people ask of documents of their own, by style where answerable, else by kind. They
mostly ask for what is there; what is not is of the same subjects, and a third of it nearly answered. Twins come on top,
so that a score falls where a name is another one: at 0.2 five of 100 more are refused than at 0.1, and no fewer right
answers given."""

RIGHT_F1 = 0.8  # a candidate this near to a reference answer is right
LONG_REFERENCE = 8  # words from which a reference answer is a whole clause: two words or more out of it are right then
ANSWERABLE = 3 / 5
"""Of the span's model, the share of questions taken to have an answer: between a half, as if nothing were known of a
user's questions, and the two thirds of SQuAD 2.0's training set."""

AS_GOOD = 0.0025
"""Shares of questions nearer than this are the same: of 3,000 questions a share is known to 0.8 %, and the best line
among many near ones is an accident."""

KEPT_UNSURE = 0.98  # share of the right answers that the line "unsure" keeps
RIGHT_BALANCED, RIGHT_SURE = 0.8, 0.93
"""Shares of what these lines give that are right by their labels. Of 26 answers that count as wrong, read by eye, seven
were right and from another place than the label's: 0.8 is about 85 of 100."""
REFUSED_BALANCED, REFUSED_SURE = 0.88, 0.96
"""Shares of the absent questions that these lines refuse. Those of the fit are of the very subject of a passage: others
are refused more often."""

RIDGE = 1e-3  # keeps Newton's method from running away where right and wrong can be told apart perfectly
ANSWER_RIDGE = (
    10.0  # of an answer's weights, by a few hundred questions a corpus; 1 has a higher loss on those left out
)
NEWTON_STEPS = 30  # far more than it needs; it converges in about eight
LINES = np.arange(1, 100) / 100


@dataclass(frozen=True, slots=True)
class ReadCandidate:
    """A candidate as it stands in a line."""

    text: str
    span_logit: float
    null_logit: float
    rank_score: float
    evidence: float = 0.0
    relevance: float = 0.0
    said: str = ""
    around: str = ""

    @property
    def margin(self) -> float:
        return self.span_logit - self.null_logit


@dataclass(frozen=True, slots=True)
class CalibrationQuestion:
    """A question with the candidates that were read for it, and the kind that it is of."""

    domain: str
    kind: Kind
    question: str
    found: tuple[Spanned, ...]
    signals: tuple[Signals, ...]  # of each candidate
    right: NDArray[np.bool_]  # whether each candidate is right, [candidates]
    style: str = "text"  # how it is worded

    @property
    def sort(self) -> str:
        """Its name in MIX."""
        return self.style if self.answerable else self.kind

    @property
    def answerable(self) -> bool:
        return self.kind == "answerable"

    def best(self, scoring: Scoring) -> int:
        """Returns the number of the candidate that would be the answer: the first in the scoring's order."""
        return int((_order_signals(self) @ np.array(astuple(scoring.order))).argmax())


@dataclass(frozen=True, slots=True)
class ScoringOutcome:
    """Shares of questions that a scoring treats rightly, percent unless said otherwise."""

    domain: str
    questions: int
    right: float  # of the answerable ones: the best candidate is right, given or not
    kept: float  # of those right answers: given
    refused: float  # of the absent questions
    tricks_refused: float | None  # of the trick questions; None where there are none
    twins_refused: float | None  # of the twins
    given_right: float  # of the answers given, the kinds weighing as in MIX
    auroc: float | None
    """0 to 1: right answers against wrong ones, of the answerable questions; None where all are of one kind."""
    calibration_error: float
    """0 to 1: distance between score and share of right answers over ten bins of width 0.1; kinds weigh as in MIX."""
    bins: tuple[tuple[float, float, float], ...]  # of these (mean score, share right, share of the questions)


def read_candidates(path: Path) -> list[CalibrationQuestion]:
    """Read questions with candidates; raises BadData with the line, OSError as open() does."""
    return _read(path, _question)


def read_sentences(path: Path, evidence: EvidenceWeights) -> list[CalibrationQuestion]:
    """Reads the same questions with the best sentence of each as its only candidate; raises as `read_candidates`."""
    return _read(path, lambda record, domain: _of_sentences(record, domain, evidence))


def _read(path: Path, parse: Callable[[dict[str, Any], str], CalibrationQuestion]) -> list[CalibrationQuestion]:
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            questions.append(parse(json.loads(line), path.stem))
        except (ValueError, TypeError, KeyError) as error:
            raise BadData(
                f"{path}, line {number}: {error!r}; write it again with 'shardqa-models candidates'"
            ) from None
    return questions


def _question(record: dict[str, Any], domain: str) -> CalibrationQuestion:
    answers = [str(answer) for answer in record["answers"]]
    around = {passage["key"]: _around(passage) for passage in record.get("passages", []) if "key" in passage}
    candidates = tuple(
        ReadCandidate(
            str(one["text"]),
            float(one["span_logit"]),
            float(one["null_logit"]),
            float(one["rank_score"]),
            float(one.get("evidence", 0)),  # 0 of a reader without this output and the next
            float(one.get("relevance", 0)),
            said=str(one.get("said", one["text"])),
            around=around.get(one.get("passage"), str(one["text"])),
        )
        for one in record["candidates"]
    )
    kind = _kind(record.get("kind") or ("answerable" if answers else "trick"))
    question = str(record["question"])
    signals = signals_of(candidates, _ranks(record, candidates), _subject(record))
    marks = [one.get("right", bool(answers) and is_right(one["text"], answers)) for one in record["candidates"]]
    right, style = np.array(marks, dtype=np.bool_), str(record.get("style", "text"))
    domain = str(record.get("domain", domain))
    return CalibrationQuestion(domain, kind, question, candidates, tuple(signals), right, style)


def _subject(record: dict[str, Any]) -> Subject:
    return Subject.of(str(record["question"]), tuple(record.get("absent", ())))


def _around(passage: dict[str, Any]) -> str:
    return f"{passage['text']}\n{passage.get('above', '')}"


def _kind(name: object) -> Kind:
    for kind in get_args(Kind):
        if kind == name:
            return cast("Kind", kind)
    raise ValueError(f"kind {name!r} is none of {', '.join(get_args(Kind))}")


def _ranks(record: dict[str, Any], candidates: Sequence[Spanned]) -> Ranks:
    scores = [float(rank) for rank in record.get("ranks") or [one.rank_score for one in candidates]]
    return Ranks(scores, int(record.get("corpus", len(scores))))


def _of_sentences(record: dict[str, Any], domain: str, evidence: EvidenceWeights) -> CalibrationQuestion:
    question = _question({**record, "candidates": []}, domain)
    sentences = [
        ReadCandidate(
            text,
            one.logit,
            passage["null_logit"],
            passage["rank_score"],
            one.evidence,
            passage.get("relevance", 0.0),
            said=f"{text}\n{passage.get('above', '')}",
            around=_around(passage),
        )
        for passage in record.get("passages", [])
        for one in (Sentence(*raw) for raw in passage["sentences"])
        if any(map(str.isalnum, text := passage["text"][one.start : one.end]))
    ]
    if not sentences:
        return question
    ranks = _ranks(record, sentences)
    best = max(range(len(sentences)), key=lambda n: _evidence_odds(evidence, sentences[n]))
    signals = signals_of(sentences, ranks, _subject(record))[best]
    right = question.answerable and holds(sentences[best].text, record["answers"])
    return replace(question, found=(sentences[best],), signals=(signals,), right=np.array([right]))


def _evidence_odds(weights: EvidenceWeights, sentence: Spanned) -> float:
    """Returns a number that orders a question's sentences as `Scoring.evidence_chance` does."""
    of_sentence = (weights.margin + weights.near) * sentence.margin + weights.evidence * sentence.evidence
    return of_sentence + weights.relevance * sentence.relevance


def holds(sentence: str, references: Sequence[str]) -> bool:
    """Returns whether a reference answer stands in a sentence, or the sentence in it."""
    words = f" {metrics.normalise(sentence)} "
    return any(
        one in words or words in one for one in (f" {metrics.normalise(reference)} " for reference in references)
    )


def is_right(answer: str, references: Sequence[str]) -> bool:
    """Returns whether an answer is near enough to a reference, or has words of one that is a whole clause."""
    if metrics.f1(answer, references) >= RIGHT_F1:
        return True
    words = metrics.normalise(answer)
    return " " in words and any(
        len(reference.split()) >= LONG_REFERENCE and words in metrics.normalise(reference) for reference in references
    )


# ---- fitting


def fit(questions: Sequence[CalibrationQuestion], base: Scoring | None = None) -> Scoring:
    """Fit weights and lines; raises BadData unless there are both answerable and other questions.

    Answers in sentences get those of spans, which `fit_sentences` replaces. With ``base`` its span's model, line and
    order stay as they are.
    """
    kinds = Counter(one.kind for one in questions)
    if kinds["answerable"] in (0, len(questions)):
        raise BadData(
            f"{kinds['answerable']} of {len(questions)} questions are answerable; some of both kinds are needed: "
            "give shardqa-models candidates a file of each, one in the form of SQuAD 2.0, or --domain"
        )
    span, no_answer_below = (base.span, base.no_answer_below) if base else _fit_span(questions)
    order = base.order if base else _fit_order(questions)
    blank = AnswerWeights(*[0.0] * (1 + len(SIGNALS))), Lines(0, 0, 0)
    level = Scoring(span, order, *blank, no_answer_below, *blank)
    level = replace(level, answer=_fit_answer(level, questions))
    below = lines(level, questions)
    return replace(level, below=below, sentences=level.answer, sentences_below=below)


def fit_sentences(questions: Sequence[CalibrationQuestion], base: Scoring) -> Scoring:
    """Adds weights and lines of answers in sentences, for what `read_sentences` gives."""
    scoring = fit(questions, base)
    return replace(base, sentences=scoring.answer, sentences_below=scoring.below)


def _fit_span(questions: Sequence[CalibrationQuestion]) -> tuple[SpanWeights, float]:
    every = _regression(questions, _span_signals)
    with_tricks = {one.domain for one in questions if one.kind == "trick"}
    of_tricks = [one for one in questions if one.domain in with_tricks]
    sample = of_tricks if any(one.answerable for one in of_tricks) else list(questions)
    level = _level(SpanWeights(*every), sample)
    return level, _span_line(level, sample)


def _fit_order(questions: Sequence[CalibrationQuestion]) -> OrderWeights:
    """Weighs a passage's rank against what the reader says of it."""
    return OrderWeights(*_regression(questions, _order_signals)[1:])


def _regression(
    questions: Sequence[CalibrationQuestion], signals: Callable[[CalibrationQuestion], NDArray[np.float64]]
) -> list[float]:
    """Returns bias and coefficients of a logistic regression over all candidates of all questions."""
    nonempty = [one for one in questions if one.found]
    return logistic(
        np.concatenate([signals(one) for one in nonempty]),
        np.concatenate([one.right for one in nonempty]),
        np.repeat(shares(nonempty), [len(one.found) for one in nonempty]),
    )


def _level(order: SpanWeights, questions: Sequence[CalibrationQuestion]) -> SpanWeights:
    """Scales the order to the scores of each question's best candidate (Platt 1999, equation 2).

    The best is more often right than others with its signals.
    """
    answerable = sum(one.answerable for one in questions)
    share = {True: ANSWERABLE / answerable, False: (1 - ANSWERABLE) / max(1, len(questions) - answerable)}
    nonempty = [one for one in questions if one.found]
    odds = [_span_odds(order, one) for one in nonempty]
    shift, stretch = logistic(
        np.array([own.max() for own in odds])[:, None],
        np.array([one.right[own.argmax()] for one, own in zip(nonempty, odds, strict=True)]),
        np.array([share[one.answerable] for one in nonempty]),
    )
    return SpanWeights(shift + stretch * order.bias, stretch * order.margin, stretch * order.lag)


def _span_signals(question: CalibrationQuestion) -> NDArray[np.float64]:
    """Margin and lag of each candidate, [candidates, 2]."""
    return np.array([(own.margin, own.lag) for own in question.signals])


def _order_signals(question: CalibrationQuestion) -> NDArray[np.float64]:
    """Margin, lag, evidence and relevance of each candidate, [candidates, 4]."""
    return np.array([(own.margin, own.lag, own.evidence, own.relevance) for own in question.signals])


def _span_odds(weights: SpanWeights, question: CalibrationQuestion) -> NDArray[np.float64]:
    return np.asarray(weights.bias + _span_signals(question) @ np.array([weights.margin, weights.lag]))


def _span_line(weights: SpanWeights, questions: Sequence[CalibrationQuestion]) -> float:
    """The middle of the scores with the highest share of questions treated rightly, in hundredths."""
    best = np.zeros(len(questions))
    right = np.zeros(len(questions), dtype=np.bool_)
    for number, question in enumerate(questions):
        if question.found:
            odds = _span_odds(weights, question)
            best[number], right[number] = chances(odds.max()), question.right[odds.argmax()]
    answerable = np.array([question.answerable for question in questions])
    rightly = [
        ANSWERABLE * ((best[answerable] >= line) & right[answerable]).mean()
        + (1 - ANSWERABLE) * (best[~answerable] < line).mean()
        for line in LINES
    ]
    return round(float(np.median(LINES[np.array(rightly) >= max(rightly) - AS_GOOD])), 2)


def _fit_answer(level: Scoring, questions: Sequence[CalibrationQuestion]) -> AnswerWeights:
    nonempty = [one for one in questions if one.found]
    return AnswerWeights(
        *logistic(
            np.array([astuple(one.signals[one.best(level)]) for one in nonempty]),
            np.array([one.right[one.best(level)] for one in nonempty]),
            shares(nonempty),
            ANSWER_RIDGE,
        )
    )


def shares(questions: Sequence[CalibrationQuestion]) -> NDArray[np.float64]:
    """Returns what each question weighs, [questions]: domains weigh the same, kinds and styles as in MIX.

    Where a domain lacks a style the others have its weight, and so with the kinds that are not answerable.
    """
    counts = Counter((one.domain, one.sort) for one in questions)
    masses = defaultdict[tuple[str, bool], float](float)
    for domain, sort in counts:
        masses[domain, sort in get_args(Kind)] += MIX[sort]
    whole = {True: sum(MIX[kind] for kind in get_args(Kind)[1:])}
    whole[False] = sum(MIX.values()) - whole[True]
    scale = {of: whole[of[1]] / mass for of, mass in masses.items()}
    return np.array(
        [scale[one.domain, not one.answerable] * MIX[one.sort] / counts[one.domain, one.sort] for one in questions]
    )


def lines(level: Scoring, questions: Sequence[CalibrationQuestion]) -> Lines:
    """Chooses lines by the shares of right answers kept, of given ones that are right, and of absent ones refused."""
    kept, right, refused = _trade(level, questions)
    balanced, sure = (
        _lowest((refused, of_refused), (right, of_right))
        for of_refused, of_right in ((REFUSED_BALANCED, RIGHT_BALANCED), (REFUSED_SURE, RIGHT_SURE))
    )
    unsure = float(LINES[kept >= min(KEPT_UNSURE, kept.max())].max())
    return Lines(unsure=min(unsure, balanced), balanced=balanced, sure=sure)


def _lowest(*wanted: tuple[NDArray[np.float64], float]) -> float:
    """Returns the lowest line that has all these shares, or as much of each, in turn, as lines so far have."""
    fit = np.ones(len(LINES), dtype=np.bool_)
    for shares_of, share in wanted:
        fit &= shares_of >= min(share, shares_of[fit].max()) - AS_GOOD
    return float(LINES[fit].min())


def _trade(
    level: Scoring, questions: Sequence[CalibrationQuestion]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Returns, at each of LINES, the shares of right answers kept, of given ones that are right, of absent questions
    refused, 0 to 1."""
    score, right = scores(level, questions)
    weights = shares(questions)
    absent = np.array([one.kind == "absent" for one in questions])
    others = absent if absent.any() else ~np.array([one.answerable for one in questions])
    is_given = score >= LINES[:, None]  # [lines, questions]
    given_right, given = (is_given & right) @ weights, is_given @ weights
    return (
        given_right / max(1e-9, float(weights[right].sum())),
        np.where(given > 0, given_right / np.maximum(given, 1e-9), 0.0),
        (~is_given & others) @ weights / max(1e-9, float(weights[others].sum())),
    )


def logistic(
    signals: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64], ridge: float = RIDGE
) -> list[float]:
    """Weighted logistic regression with a ridge on the coefficients of standardized signals: bias, then these."""
    weights = weights * len(weights) / weights.sum()
    mean, spread = signals.mean(axis=0), np.maximum(signals.std(axis=0), 1e-9)
    design = np.concatenate([np.ones((len(signals), 1)), (signals - mean) / spread], axis=1)
    drawn = np.array([RIDGE, *[ridge] * signals.shape[1]])
    coefficients = np.zeros(design.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = chances(design @ coefficients)
        slope = design.T @ (weights * (right - chance)) - drawn * coefficients
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design
        coefficients += np.linalg.solve(curvature + np.diag(drawn), slope)
    own = coefficients[1:] / spread
    return [float(coefficients[0] - own @ mean), *map(float, own)]


def chances(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of log-odds, none of them exactly 0 or 1."""
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -FARTHEST, FARTHEST))))


# ---- reporting


def scores(scoring: Scoring, questions: Sequence[CalibrationQuestion]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Each question's score (0 without candidates) and whether what would be given is right, [questions] each."""
    score, right = np.zeros(len(questions)), np.zeros(len(questions), dtype=np.bool_)
    for number, question in enumerate(questions):
        if question.found:
            best = question.best(scoring)
            score[number], right[number] = scoring.confidence(question.signals[best]), question.right[best]
    return score, right


def outcomes(
    scoring: Scoring, questions: Sequence[CalibrationQuestion], when: AnswerWhen = "balanced"
) -> Iterator[ScoringOutcome]:
    """Yields what a scoring does with the questions of each domain."""
    for domain in dict.fromkeys(one.domain for one in questions):
        yield outcome(scoring, [one for one in questions if one.domain == domain], when)


def left_out(
    questions: Sequence[CalibrationQuestion], when: AnswerWhen = "balanced", base: Scoring | None = None
) -> Iterator[ScoringOutcome]:
    """Yields what a scoring that was fitted without a domain does with it; nothing for a single domain."""
    for domain in dict.fromkeys(one.domain for one in questions):
        others = [one for one in questions if one.domain != domain]
        if others:
            yield outcome(fit(others, base), [one for one in questions if one.domain == domain], when)


def outcome(
    scoring: Scoring, questions: Sequence[CalibrationQuestion], when: AnswerWhen = "balanced"
) -> ScoringOutcome:
    """Returns what a scoring does with questions of one domain; a kind of which there are none counts as 0."""
    score, right = scores(scoring, questions)
    return outcome_of(questions, score, right, score >= scoring.below.of(when))


def outcome_of(
    questions: Sequence[CalibrationQuestion],
    score: NDArray[np.float64],
    right: NDArray[np.bool_],
    is_given: NDArray[np.bool_],
) -> ScoringOutcome:
    """Sums up scores and answers of whatever scoring, [questions] each."""
    kinds = {kind: np.array([one.kind == kind for one in questions], dtype=np.bool_) for kind in get_args(Kind)}
    weights = shares(questions)
    bins = tuple(_bins(score, right, weights))
    given = float(weights[is_given].sum())
    return ScoringOutcome(
        domain=questions[0].domain,
        questions=len(questions),
        right=_percent(right[kinds["answerable"]]),
        kept=_percent(is_given[kinds["answerable"] & right]),
        refused=_percent(~is_given[kinds["absent"]]),
        tricks_refused=_percent(~is_given[kinds["trick"]]) if kinds["trick"].any() else None,
        twins_refused=_percent(~is_given[kinds["twin"]]) if kinds["twin"].any() else None,
        given_right=100 * float(weights[is_given & right].sum()) / given if given else 0.0,
        auroc=auroc(score[kinds["answerable"]], right[kinds["answerable"]]),
        calibration_error=sum(share * abs(mean - right_share) for mean, right_share, share in bins),
        bins=bins,
    )


def _percent(values: NDArray[np.bool_]) -> float:
    return 100 * float(values.mean()) if len(values) else 0.0


def auroc(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float | None:
    """The chance that a right answer scores above a wrong one, ties half; None where all are of one kind."""
    above, below = score[right], score[~right]
    if not len(above) or not len(below):
        return None
    order = np.sort(below)
    wins = np.searchsorted(order, above, side="left") + np.searchsorted(order, above, side="right")
    return float(wins.sum()) / (2 * len(above) * len(below))


def _bins(
    score: NDArray[np.float64], right: NDArray[np.bool_], weights: NDArray[np.float64], bins: int = 10
) -> Iterator[tuple[float, float, float]]:
    """Yields (mean score, share right, share of all) of each bin that has a question (Guo et al. 2017, equation 3)."""
    places = np.minimum((score * bins).astype(np.int64), bins - 1)
    for own in (places == number for number in range(bins)):
        if own.any():
            of_bin = weights[own] / weights[own].sum()
            yield float(of_bin @ score[own]), float(of_bin @ right[own]), float(weights[own].sum() / weights.sum())
