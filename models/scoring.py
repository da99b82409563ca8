"""Calibrated scores: from logits and ranks to a probability, and the thresholds below which nothing is answered.

Three logistic models, all the reader's own (``scoring.json`` beside its network, in Redis the model's TAG):

* a **span** of a passage that is given: its margin. With its passage's lag, its evidence and relevance, each weighed
  anew, it orders the candidates of a question, on each shard and over all.
* an **answer** among the candidates of a question: also how far it lies above the next different one, how far the
  best passage stands out, how long the question is, how well its passage ranks, and what the question is about that
  stands in its sentence (`subject`). It is the score that a user sees; an answer in sentences has weights of its own,
  for the signals of the best sentence. A signal is a field of `Signals`, with its weight in `AnswerWeights`.
* a **sentence** among all that were read: whether it is evidence.

All signals are of what the shards' replies have together, so a score does not depend on how the corpus is sharded. The
weights are fitted by `shardqa-models calibrate`; docs/scores.md says what a score means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass
from functools import cache, lru_cache
from operator import attrgetter, mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from shardqa.answer_lines import Lines
from shardqa.errors import BadModel
from shardqa.models import metrics, shipped

if TYPE_CHECKING:
    from shardqa.models.subject import Subject

SCORING_FILE = "scoring.json"
VERSION = 7
READ_VERSIONS = (6, VERSION)

FARTHEST = 30.0  # log-odds are held within +-this, so that no score is exactly 0 or 1
Weights = TypeVar("Weights", "SpanWeights", "OrderWeights", "AnswerWeights", "EvidenceWeights", Lines)

WIDEST = 12.0  # logits: a gap is held within +-this, and is this where there is no other answer


@dataclass(frozen=True, slots=True)
class SpanWeights:
    """A logistic regression over a span's two signals; log-odds."""

    bias: float  # that a span is right with every signal at 0
    margin: float  # per logit that the span lies above "the passage does not say" (span_logit - null_logit)
    lag: float  # per lag: 0 for the question's best passage, 1 for one whose rank score is 0; negative


@dataclass(frozen=True, slots=True)
class OrderWeights:
    """Puts a question's candidates in order: a regression over all of them; per unit of each signal."""

    margin: float
    lag: float
    evidence: float  # per logit of the mean evidence of its sentence's tokens
    relevance: float  # per logit that its passage answers the question at all


@dataclass(frozen=True, slots=True)
class AnswerWeights:
    """A logistic regression over an answer's signals, which `Signals` explains; log-odds."""

    bias: float
    margin: float
    lag: float
    gap: float
    fall: float
    length: float
    rank: float
    evidence: float
    relevance: float
    missing: float = 0.0  # this and those below are 0 in a scoring of version 6
    lost: float = 0.0
    said: float = 0.0
    whole: float = 0.0


@dataclass(frozen=True, slots=True)
class EvidenceWeights:
    """A logistic regression over a sentence's signals; log-odds."""

    bias: float = 0.07
    margin: float = 0.14  # per logit that the sentence lies above "the passage does not say"
    near: float = 0.1
    """Per logit that it lies above the best sentence of all that were read: 0 for that one, else negative."""
    evidence: float = 0.0  # per logit of the mean evidence of its tokens
    relevance: float = 0.0  # per logit that its passage answers the question at all


class Spanned(Protocol):
    """A candidate of scoring, a span or a sentence."""

    @property
    def text(self) -> str: ...
    @property
    def margin(self) -> float: ...
    @property
    def rank_score(self) -> float: ...
    @property
    def evidence(self) -> float: ...
    @property
    def relevance(self) -> float: ...
    @property
    def said(self) -> str: ...  # its sentence, with the row, headings and title
    @property
    def around(self) -> str: ...  # its passage, with headings and title


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank scores of the passages found for a question, in any order, and how many passages the corpus has."""

    scores: Sequence[float]
    passages: int

    def height(self, score: float) -> float:
        """Returns ln(1 + a rank score in weights of a word that one passage has): alike in corpora of any size."""
        return math.log1p(max(0.0, score) / math.log(1 + (max(1, self.passages) - 0.5) / 1.5))


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals that tell a right answer from a wrong one, of one candidate among all of a question's."""

    margin: float  # logits above "the passage does not say"
    lag: float  # 0 for a span of the best passage, 1 for one of a passage whose rank score is 0
    gap: float  # logits that its margin lies above the best candidate with other words; within +-WIDEST
    fall: float  # how far the best passage's rank score lies above the second's, as a share of it, 0 to 1
    length: float  # ln(1 + words of the question)
    rank: float  # how high its passage ranks; see `Ranks.height`
    evidence: float = 0.0
    """The mean evidence of its sentence's tokens; this and the next are 0 of a reader without these outputs."""
    relevance: float = 0.0  # the logit that its passage answers the question at all
    missing: float = 0.0  # this and those below say what of the question stands there; see `subject.Heard`
    lost: float = 0.0
    said: float = 0.0
    whole: float = 0.0


SIGNALS = tuple(Signals.__dataclass_fields__)  # their names, which are those of the weights in AnswerWeights
_signals = attrgetter(*SIGNALS)


@dataclass(frozen=True, slots=True)
class Scoring:
    span: SpanWeights
    order: OrderWeights
    answer: AnswerWeights
    below: Lines
    no_answer_below: float
    """Of a span alone: where one passage is given and read, the score under which it does not say."""
    sentences: AnswerWeights  # of an answer in sentences, by the signals of the best one
    sentences_below: Lines
    evidence: EvidenceWeights = EvidenceWeights()
    """Readers that were calibrated without marked sentences have the defaults."""

    # ---- files and labels

    @classmethod
    def load(cls, folder: Path) -> Scoring:
        """Reads ``scoring.json`` of a reader's folder; raises BadModel when it is missing or not of this form."""
        path = folder / SCORING_FILE
        try:
            return cls.parse(json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise BadModel(f"{path} can't be read: {error!r}; fit it again with 'shardqa-models calibrate'") from None

    @classmethod
    def parse(cls, record: object) -> Scoring:
        """Returns the scoring of a `record`. Raises ValueError, TypeError, KeyError."""
        if not isinstance(record, Mapping):
            raise TypeError(f"a {type(record).__name__} is no scoring, an object is")
        if record["version"] not in READ_VERSIONS:
            raise ValueError(f"version {record['version']} of a scoring is not known here, {VERSION} is")
        return cls(
            _weights(SpanWeights, record["span"]),
            _weights(OrderWeights, record["order"]),
            _weights(AnswerWeights, record["answer"]),
            _weights(Lines, record["below"]),
            _finite(record["no_answer_below"]),
            _weights(AnswerWeights, record["sentences"]),
            _weights(Lines, record["sentences_below"]),
            _weights(EvidenceWeights, record["evidence"]),
        )

    def record(self) -> dict[str, Any]:
        """Returns the fields of its JSON."""
        return {"version": VERSION, **_fields(self)}

    @classmethod
    def of_label(cls, label: str) -> Scoring | None:
        """Returns the scoring that `on_label` wrote; None where the label holds none, or not all of it."""
        words = dict(word.split("=", 1) for word in label.split() if "=" in word)
        try:
            return cls.parse(json.loads(words["scoring"]))
        except (KeyError, ValueError, TypeError):
            return None

    def on_label(self, label: str) -> str:
        """Returns the label with the weights behind it: so they go wherever a model in Redis goes."""
        return f"{label} scoring={json.dumps(self.record(), separators=(',', ':'))}"

    def save(self, folder: Path) -> None:
        """Writes ``scoring.json`` into a reader's folder."""
        (folder / SCORING_FILE).write_text(json.dumps(self.record(), indent=2) + "\n", encoding="utf-8")

    # ---- scores

    def score(self, span_logit: float, null_logit: float, rank_score: float, best_rank: float) -> float:
        """The probability, above 0 and below 1, that this span by itself answers the question.

        ``best_rank`` is the highest rank score among the question's candidates.
        """
        weights = self.span
        return chance(
            weights.bias + weights.margin * (span_logit - null_logit) + weights.lag * lag(rank_score, best_rank)
        )

    def precedence(self, span: Spanned, lag: float) -> float:
        """Returns a number that is highest for the candidate to answer with; ``lag`` is that of the span's passage."""
        weights = self.order
        of_passage = weights.lag * lag + weights.relevance * span.relevance
        return weights.margin * span.margin + weights.evidence * span.evidence + of_passage

    def confidence(self, signals: Signals) -> float:
        """The probability, above 0 and below 1, that the best of a question's candidates answers it."""
        return _answer_chance(self.answer, signals)

    def sentences_chance(self, signals: Signals) -> float:
        """The probability, above 0 and below 1, that the best of all sentences answers the question."""
        return _answer_chance(self.sentences, signals)

    def evidence_chance(self, margin: float, near: float, evidence: float = 0.0, relevance: float = 0.0) -> float:
        """The probability, above 0 and below 1, that a sentence is evidence; see EvidenceWeights."""
        weights = self.evidence
        of_span = weights.bias + weights.margin * margin + weights.near * near
        return chance(of_span + weights.evidence * evidence + weights.relevance * relevance)


_fields = lru_cache(8)(asdict)  # each answer of a shard brings those of its model


def _answer_chance(weights: AnswerWeights, signals: Signals) -> float:
    return chance(weights.bias + sum(map(mul, _signals(weights), _signals(signals))))


def _weights(kind: type[Weights], record: Mapping[str, Any]) -> Weights:
    names = [name for name, field in kind.__dataclass_fields__.items() if name in record or field.default is MISSING]
    return kind(**{name: _finite(record[name]) for name in names})


def _finite(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]  # a TypeError is the caller's
    if not math.isfinite(number):
        raise ValueError(f"{number} is no weight")
    return number


def chance(odds: float) -> float:
    """The probability of log-odds, above 0 and below 1."""
    return 1 / (1 + math.exp(-max(-FARTHEST, min(FARTHEST, odds))))


def log_odds(chance: float) -> float:
    """The inverse of `chance`, of a probability above 0 and below 1."""
    return math.log(chance / (1 - chance))


def lag(rank_score: float, best_rank: float) -> float:
    """Returns how far a passage ranks below the best, 0 to 1: rank scores grow with the corpus, this does not."""
    return min(1.0, max(0.0, 1 - rank_score / best_rank)) if best_rank > 0 else 0.0


def signals_of(candidates: Sequence[Spanned], ranks: Ranks, subject: Subject, n: int | None = None) -> list[Signals]:
    """Returns the signals of each candidate, or of the first n; ``ranks`` are of all passages found, read or not."""
    best_rank, second = (*sorted(ranks.scores, reverse=True), 0.0, 0.0)[:2]
    fall = lag(second, best_rank)
    length = math.log(1 + subject.length)
    best = _best_by_words(candidates)
    return [
        Signals(
            margin=one.margin,
            lag=lag(one.rank_score, best_rank),
            gap=_gap(metrics.normalise(one.text), one.margin, best),
            fall=fall,
            length=length,
            rank=ranks.height(one.rank_score),
            evidence=one.evidence,
            relevance=one.relevance,
            **subject.heard(one.said, one.around)._asdict(),
        )
        for one in candidates[:n]
    ]


def _best_by_words(candidates: Sequence[Spanned]) -> list[tuple[float, str]]:
    """Returns the two best (margin, words) of different words, best first; worse candidates are not looked at."""
    best: list[tuple[float, str]] = []
    for one in sorted(candidates, key=attrgetter("margin"), reverse=True):
        own = metrics.normalise(one.text)
        if not best or own != best[0][1]:
            best.append((one.margin, own))
        if len(best) == 2:
            break
    return best


def _gap(own: str, margin: float, best: Sequence[tuple[float, str]]) -> float:
    other = next((above for above, words in best if words != own), -math.inf)
    return max(-WIDEST, min(WIDEST, margin - other))


@cache
def shipped_scoring() -> Scoring:
    """Returns the shipped reader's scoring, which models in Redis without one have, too."""
    return Scoring.load(shipped.folder())
