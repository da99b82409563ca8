"""Merges many shards' replies into one: candidates and the conclusion. Pure functions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from operator import attrgetter
from typing import Any, Literal

from shardqa import languages, metadata
from shardqa.answer_lines import UNHEARD, Lines
from shardqa.checks import MAX_N_BEST
from shardqa.engine import absence, showing
from shardqa.keys import MANY_READER, DocumentName
from shardqa.models import metrics
from shardqa.models.reading_record import ShardReading, SpanRecord
from shardqa.models.scoring import Ranks, Scoring, Signals, shipped_scoring, signals_of
from shardqa.models.subject import Subject
from shardqa.places import QUOTED, Place
from shardqa.question import Question
from shardqa.schema import Answer, Candidate, Composed, Evidence, MergedCandidates, ShardUse, Timing

HIDDEN_USE: dict[str, Any] = {"cached": False, "us": {}, "key": ""}
CACHED_USE: dict[str, Any] = {"cached": True, "us": {}}  # of a shard in a cached answer, whose times were others'


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span among those of all shards, with its score and the signals that this is made of."""

    span: SpanRecord
    tag: str  # of the shard that read it
    scoring: Scoring  # of the reader there
    signals: Signals
    score: float

    @property
    def precedence(self) -> float:
        """Orders the spans, the highest first."""
        return self.scoring.precedence(self.span, self.signals.lag)

    @property
    def order(self) -> tuple[float, DocumentName, int, int]:
        """Sorts the likeliest first; equal ones by where they stand."""
        return -self.precedence, self.span.document, self.span.start, self.span.end


def scored(readings: Sequence[ShardReading], subject: Subject, ranks: Ranks) -> list[ScoredSpan]:
    """The spans of all shards, likeliest by themselves first, those that overlap too.

    Their final scores look at the others as well, so one that comes later never shows a higher score than one before
    it. `ranks` are of all passages found, read or not.
    """
    every = ((span, reading) for reading in readings for span in reading.spans)
    read = [one for one in every if subject.is_answered(one[0].text, one[0].passage.between(*one[0].sentence))]
    spans = _scored(read, subject, ranks)
    newest = {one.span.document for one in spans if not is_quoted(one.span) and one.score >= one.scoring.below.unsure}
    kept = [one for one in read if not (one[0].document in newest and is_quoted(one[0]))]
    spans = spans if len(kept) == len(read) else _scored(kept, subject, ranks)
    lowest = accumulate((span.score for span in spans), min)
    return [replace(span, score=score) for span, score in zip(spans, lowest, strict=True)]


def _scored(read: Sequence[tuple[SpanRecord, ShardReading]], subject: Subject, ranks: Ranks) -> list[ScoredSpan]:
    every = signals_of([span for span, _ in read], ranks, subject)
    spans = [
        ScoredSpan(span, reading.tag, reading.scores, signals, reading.scores.confidence(signals))
        for (span, reading), signals in zip(read, every, strict=True)
    ]
    return sorted(spans, key=attrgetter("order"))


def is_quoted(span: SpanRecord) -> bool:
    """Returns whether a mail takes it from one before: where the newest says something, that is what is asked for."""
    return (span.place or {}).get("part") == QUOTED


def candidates_of(spans: Iterable[ScoredSpan]) -> list[Candidate]:
    """The best of `scored`; of spans that overlap in one document the best only.

    One of other words than the first is right where the first is wrong, so it has no more of a chance than that leaves.
    """
    best = list(islice(_without_overlaps(spans), MAX_N_BEST))
    words = [metrics.normalise(one.span.text) for one in best]
    left = [
        one.score if own == words[0] else min(one.score, 1 - best[0].score)
        for one, own in zip(best, words, strict=True)
    ]
    lowest = accumulate(left, min)
    return [_candidate(replace(one, score=score)) for one, score in zip(best, lowest, strict=True)]


def lines_of(readings: Sequence[ShardReading]) -> Lines:
    """The scores below which nothing is answered: the readers' own, the strictest while they are being replaced."""
    lines = [reading.scores.below for reading in readings]
    return max(lines, key=lambda line: line.balanced, default=shipped_scoring().below)


def _candidate(scored_span: ScoredSpan) -> Candidate:
    span, passage = scored_span.span, scored_span.span.passage
    start, end = span.sentence
    return Candidate(
        answer=span.text,
        score=scored_span.score,
        corpus=span.document.corpus,
        document=span.document.id,
        title=passage.title,
        start=span.start,
        end=span.end,
        passage=passage.text,
        passage_start=passage.start,
        shard=scored_span.tag,
        rank_score=passage.rank_score,
        margin=span.margin,
        place=Place.model_validate(span.place) if span.place else None,
        evidence=[Evidence(text=passage.between(start, end), start=start, end=end)],
        metadata=metadata.unpack(passage.metadata),
    )


def _without_overlaps(spans: Iterable[ScoredSpan]) -> Iterator[ScoredSpan]:
    """Passages overlap, so the same words may have been read twice."""
    distinct: list[SpanRecord] = []
    for scored_span in spans:
        span = scored_span.span
        if not any(
            span.document == other.document and span.start < other.end and other.start < span.end for other in distinct
        ):
            distinct.append(span)
            yield scored_span


def conclude(
    candidates: MergedCandidates,
    question: Question,
    model: str,
    cache: Literal["process", "redis"] | None,
    silent: list[str],
    timing: Timing,
) -> Answer:
    """The answer in the question's form where its score reaches `min_score` (default: the form's line), or none.

    No answer is sure where a name of the question stands in no passage (`absent`), and there is none where a warning
    speaks against it: the reader does not know the question's language.
    Where documents are hidden (`question.view`), no times and keys of shards are told, nor caches, which writes empty.
    """
    asked = question.corrected(candidates.corrected)
    form = candidates.auto if question.form == "auto" else question.form
    best, n_best = candidates.composed.get(form), candidates.candidates[: question.n_best]
    around = f"{best.head.title}\n{best.passage}" if best else ""
    unheard, warnings = absence.names_of(asked, candidates.absent, around), _warnings(candidates, question)
    if best is not None and (unheard or warnings):
        best = best.model_copy(update={"score": 0.0 if warnings else min(best.score, UNHEARD)})
    n_best = _agreeing(n_best, best) if best is not None else n_best
    lines = best.below if best else candidates.below
    threshold = lines.of(question.answer_when) if question.min_score is None else question.min_score
    answer = best if best is not None and best.score >= threshold and not warnings else None
    parts = answer.parts if answer else absence.nearest(candidates, asked, best)
    return Answer.of(
        answer,
        form,
        question=question.wording,
        corpus=question.asked_of,
        score=best.score if best else 0.0,
        needed=threshold,
        lines=lines,
        parts=parts,
        n_best=showing.others(asked.query, answer.text(form) if answer else None, n_best) if parts else n_best,
        cached=cache is not None and not question.view,
        cache=None if question.view else cache,
        partial=bool(silent),
        failed=silent,
        shards=_uses(candidates, cache, question.view),
        model=candidates.reader or model,
        absent=unheard if answer else [] if warnings else absence.words_of(asked.wording, candidates.absent),
        corrected=candidates.corrected,
        warnings=warnings,
        timing=Timing(total=timing.total) if question.view else timing,
    )


def _warnings(candidates: MergedCandidates, question: Question) -> list[str]:
    return [] if candidates.reader == MANY_READER else languages.warnings(question.wording)


def _agreeing(n_best: Sequence[Candidate], best: Composed) -> list[Candidate]:
    """The candidates with the answer's own score where the first one stands in it, and no higher one."""
    if not any(
        (part.corpus, part.document) == (one.corpus, one.document) and part.start <= one.start < part.end
        for one in n_best[:1]
        for part in (best.head, *best.parts)
    ):
        return [one.model_copy(update={"score": min(one.score, best.score)}) for one in n_best]
    scores = [best.score, *(min(one.score, best.score) for one in n_best[1:])]
    return [one.model_copy(update={"score": score}) for one, score in zip(n_best, scores, strict=True)]


def _uses(candidates: MergedCandidates, cache: str | None, view: str) -> list[ShardUse]:
    update = HIDDEN_USE if view else CACHED_USE if cache else {}
    return [use.model_copy(update=update) for use in candidates.shards] if update else candidates.shards
