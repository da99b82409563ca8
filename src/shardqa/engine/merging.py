"""Merges many shards' replies into one: candidates and the conclusion. Pure functions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Literal, Self

from shardqa import metadata
from shardqa.answer_lines import Lines
from shardqa.engine import languages
from shardqa.models.scoring import Ranks, Scoring, Signals, Spanned, shipped_scoring, signals_of
from shardqa.places import Place
from shardqa.question import Question
from shardqa.schema import Answer, Candidate, Evidence, MergedCandidates, ShardUse, Timing

CACHED_USE = {"cached": True, "us": {}}  # of a shard in a cached answer: its times are not this request's
MOST = 20  # candidates of one question, enough for any n_best


@dataclass(frozen=True, slots=True)
class ShardSpan:
    """A span as the shard that read it knows it: without the spans of the others."""

    tag: str
    scoring: Scoring
    fields: dict[str, Any]
    passage: dict[str, Any]  # around it
    alone: float  # its score without the others

    @classmethod
    def of(cls, reply: dict[str, Any], fields: dict[str, Any], best_rank: float) -> Self:
        scoring, passage = scoring_of(reply), reply["passages"][fields["passage"]]
        alone = scoring.score(fields["span_logit"], fields["null_logit"], passage["rank_score"], best_rank)
        return cls(reply["tag"], scoring, fields, passage, alone)

    @property
    def order(self) -> tuple[float, str, int, int]:
        """Likeliest first; of equal ones, by where they stand."""
        return -self.alone, self.fields["document"], self.fields["start"], self.fields["end"]

    @property
    def spanned(self) -> Spanned:
        fields, passage = self.fields, self.passage
        own = fields["text"], fields["span_logit"], fields["null_logit"], passage["rank_score"]
        return Spanned(*own, fields.get("evidence", 0.0), passage.get("relevance", 0.0))  # an earlier version has none


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span with its final score, and the signals that this is made of."""

    span: ShardSpan
    signals: Signals
    score: float

    @property
    def margin(self) -> float:
        return self.signals.margin


def scored(replies: Sequence[dict[str, Any]], question: str, ranks: Ranks) -> list[ScoredSpan]:
    """The spans of all shards, likeliest by themselves first, those that overlap too.

    Their final scores look at the others as well, so one that comes later never shows a higher score than one before
    it. `ranks` are of all passages found, read or not.
    """
    best_rank = max(ranks.scores, default=0.0)
    spans = [ShardSpan.of(reply, fields, best_rank) for reply in replies for fields in reply["spans"]]
    spans.sort(key=lambda span: span.order)
    every = signals_of([span.spanned for span in spans], ranks, question)
    confidences = (span.scoring.confidence(signals) for span, signals in zip(spans, every, strict=True))
    scores = accumulate(confidences, min)
    return [ScoredSpan(*parts) for parts in zip(spans, every, scores, strict=True)]


def candidates_of(spans: Iterable[ScoredSpan]) -> list[Candidate]:
    """The best of `scored`; of spans that overlap in one document the best only."""
    return [_candidate(span) for span in islice(_without_overlaps(spans), MOST)]


def lines_of(replies: Sequence[dict[str, Any]]) -> Lines:
    """The scores below which nothing is answered: the readers' own, the strictest while they are being replaced."""
    lines = [scoring_of(reply).below for reply in replies]
    return max(lines, key=lambda line: line.balanced, default=shipped_scoring().below)


def scoring_of(reply: dict[str, Any]) -> Scoring:
    """The scoring that a shard's answer brings, where it may be parsed already."""
    scores = reply["scores"]
    return scores if isinstance(scores, Scoring) else Scoring.parse(scores)


def _candidate(scored_span: ScoredSpan) -> Candidate:
    span, passage = scored_span.span.fields, scored_span.span.passage
    return Candidate(
        answer=span["text"],
        score=scored_span.score,
        document=span["document"],
        title=passage["title"],
        start=span["start"],
        end=span["end"],
        passage=passage["text"],
        passage_start=passage["start"],
        shard=scored_span.span.tag,
        rank_score=passage["rank_score"],
        margin=span["span_logit"] - span["null_logit"],
        place=Place.model_validate(span["place"]) if span.get("place") else None,
        evidence=[_sentence(span, passage)],
        metadata=metadata.unpack(passage.get("metadata")),
    )


def _sentence(span: dict[str, Any], passage: dict[str, Any]) -> Evidence:
    (start, end), first = span["sentence"], passage["start"]
    return Evidence(text=passage["text"][start - first : end - first], start=start, end=end)


def _without_overlaps(spans: Iterable[ScoredSpan]) -> Iterator[ScoredSpan]:
    """Passages overlap, so the same words may have been read twice."""
    distinct: list[dict[str, Any]] = []
    for scored_span in spans:
        span = scored_span.span.fields
        if not any(
            span["document"] == other["document"] and span["start"] < other["end"] and other["start"] < span["end"]
            for other in distinct
        ):
            distinct.append(span)
            yield scored_span


def conclude(
    merged: MergedCandidates,
    question: Question,
    model: str,
    cache: Literal["process", "redis"] | None,
    failed: list[str],
    timing: Timing,
) -> Answer:
    """The answer in the question's form where its score reaches `min_score` (default: the form's line), or none.

    For whom documents are hidden (`question.view`), neither the shards' times nor their keys, with epochs in them, are
    told.
    """
    form = merged.auto if question.form == "auto" else question.form
    best = merged.composed.get(form)
    lines = best.below if best else merged.below
    threshold = lines.of(question.answer_when) if question.min_score is None else question.min_score
    answer = best if best is not None and best.score >= threshold else None
    head = answer.head if answer else None
    parts = answer.parts if answer else merged.likeliest
    return Answer(
        question=question.wording,
        corpus=question.corpus,
        form=form,
        answer=answer.text(form) if answer else None,
        score=best.score if best else 0.0,
        no_answer=answer is None,
        needed=threshold,
        lines=lines,
        calibrated=merged.calibrated,
        document=head.document if head else None,
        title=head.title if head else None,
        start=head.start if head else None,
        end=head.end if head else None,
        passage=answer.passage if answer else None,
        passage_start=answer.passage_start if answer else None,
        place=head.place if head else None,
        metadata=answer.metadata if answer else None,
        evidence=[Evidence(text=part.text, start=part.start, end=part.end) for part in parts] if answer else [],
        parts=parts,
        n_best=merged.candidates[: question.n_best],
        cached=cache is not None,
        cache=cache,
        partial=bool(failed),
        failed=failed,
        shards=_uses(merged, cache, question.view),
        model=model,
        warnings=languages.warnings(question.wording),
        timing=Timing(total=timing.total) if question.view else timing,
    )


def _uses(merged: MergedCandidates, cache: str | None, view: str) -> list[ShardUse]:
    update: dict[str, Any] = (CACHED_USE if cache else {}) | ({"us": {}, "key": ""} if view else {})
    return [use.model_copy(update=update) for use in merged.shards] if update else merged.shards
