"""From many shards' replies to one: candidates and the conclusion. Pure functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from shardqa import languages, metadata
from shardqa.answer_lines import Lines
from shardqa.models.scoring import Scoring, Signals, Spanned, shipped_scoring, signals_of
from shardqa.places import Place
from shardqa.question import Question
from shardqa.schema import Answer, Candidate, Evidence, MergedCandidates, ShardUse, Timing

KEPT_USE = {"cached": True, "us": {}}  # of a shard in an answer that was kept: its times are not this request's
KEPT = 20  # candidates kept of one question, enough for any n_best


def candidates_of(
    replies: Sequence[dict[str, Any]], question: str, ranks: Sequence[float] | None = None
) -> list[Candidate]:
    """All shards' spans, likeliest first, each with its score; of spans that overlap in one document the best only.

    Spans are ordered as the shards order them, by themselves. Their scores look at the others as well, so one that
    comes later never shows a higher score than one before it. ``ranks`` are the rank scores of all passages found,
    read or not; without them, of those in the replies.
    """
    passages = [passage for reply in replies for passage in reply["passages"].values()]
    ranks = [passage["rank_score"] for passage in passages] if ranks is None else ranks
    found = scored(replies, question, ranks)
    return _without_overlaps([_candidate(one.tag, one.span, one.passage, one.score) for one in found])[:KEPT]


@dataclass(frozen=True, slots=True)
class Scored:
    """A span with all that its score is made of."""

    scoring: Scoring
    span: dict[str, Any]
    passage: dict[str, Any]
    tag: str
    signals: Signals
    alone: float
    score: float

    @property
    def spanned(self) -> Spanned:
        return _spanned(self.span, self.passage)


def scored(replies: Sequence[dict[str, Any]], question: str, ranks: Sequence[float]) -> list[Scored]:
    """All shards' spans in the order of `candidates_of`, those that overlap too."""
    best_rank = max(ranks, default=0.0)
    found = [
        (scoring, span, passage, reply["tag"], _alone(scoring, span, passage, best_rank))
        for reply, scoring in zip(replies, map(scoring_of, replies), strict=True)
        for span in reply["spans"]
        for passage in [reply["passages"][span["passage"]]]
    ]
    found.sort(key=lambda one: (-one[4], one[1]["document"], one[1]["start"], one[1]["end"]))
    signals = signals_of([_spanned(one[1], one[2]) for one in found], ranks, question)
    scores = accumulate((one[0].confidence(own) for one, own in zip(found, signals, strict=True)), min)
    return [Scored(*one[:4], own, one[4], score) for one, own, score in zip(found, signals, scores, strict=True)]


def lines_of(replies: Sequence[dict[str, Any]]) -> Lines:
    """The scores below which nothing is answered: the readers' own, the strictest while they are being replaced."""
    lines = [scoring_of(reply).below for reply in replies]
    return max(lines, key=lambda line: line.balanced, default=shipped_scoring().below)


def scoring_of(reply: dict[str, Any]) -> Scoring:
    """Of a shard's answer, where it may be parsed already."""
    scores = reply["scores"]
    return scores if isinstance(scores, Scoring) else Scoring.parse(scores)


def _alone(scoring: Scoring, span: dict[str, Any], passage: dict[str, Any], best_rank: float) -> float:
    return scoring.score(span["span_logit"], span["null_logit"], passage["rank_score"], best_rank)


def _spanned(span: dict[str, Any], passage: dict[str, Any]) -> Spanned:
    return Spanned(span["text"], span["span_logit"], span["null_logit"], passage["rank_score"])


def _candidate(tag: str, span: dict[str, Any], passage: dict[str, Any], score: float) -> Candidate:
    return Candidate(
        answer=span["text"],
        score=score,
        document=span["document"],
        title=passage["title"],
        start=span["start"],
        end=span["end"],
        passage=passage["text"],
        passage_start=passage["start"],
        shard=tag,
        rank_score=passage["rank_score"],
        margin=span["span_logit"] - span["null_logit"],
        place=Place.model_validate(span["place"]) if span.get("place") else None,
        evidence=[_sentence(span, passage)],
        metadata=metadata.unpack(passage.get("metadata")),
    )


def _sentence(span: dict[str, Any], passage: dict[str, Any]) -> Evidence:
    (start, end), first = span["sentence"], passage["start"]
    return Evidence(text=passage["text"][start - first : end - first], start=start, end=end)


def _without_overlaps(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Passages overlap, so the same words may have been read twice."""
    kept: list[Candidate] = []
    for candidate in candidates:
        if not any(
            candidate.document == other.document and candidate.start < other.end and other.start < candidate.end
            for other in kept
        ):
            kept.append(candidate)
    return kept


def conclude(
    merged: MergedCandidates,
    question: Question,
    model: str,
    cache: Literal["process", "redis"] | None,
    failed: list[str],
    timing: Timing,
) -> Answer:
    """The best candidate where its score reaches the question's `min_score` (default: the reader's line), or no answer.

    For whom documents are hidden (`question.view`), neither the shards' times nor their keys, with epochs in them, are
    told.
    """
    threshold = merged.below.of(question.answer_when) if question.min_score is None else question.min_score
    best = merged.candidates[0] if merged.candidates else None
    answer = best if best is not None and best.score >= threshold else None
    parts = merged.supporting if answer else merged.likeliest
    return Answer(
        question=question.wording,
        corpus=question.corpus,
        answer=answer.answer if answer else None,
        score=best.score if best else 0.0,
        no_answer=answer is None,
        needed=threshold,
        lines=merged.below,
        calibrated=merged.calibrated,
        document=answer.document if answer else None,
        title=answer.title if answer else None,
        start=answer.start if answer else None,
        end=answer.end if answer else None,
        passage=answer.passage if answer else None,
        passage_start=answer.passage_start if answer else None,
        place=answer.place if answer else None,
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
    update: dict[str, Any] = (KEPT_USE if cache else {}) | ({"us": {}, "key": ""} if view else {})
    return [use.model_copy(update=update) for use in merged.shards] if update else merged.shards
