"""From many shards' replies to one: sums of statistics, candidates, the conclusion. Pure functions."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from shardqa.answer import Answer, Asked, Candidate, Timing
from shardqa.models.scoring import Scoring, shipped_scoring

KEPT = 20  # candidates kept of one question, enough for any n_best


def sum_terms(replies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Adds up all shards' Terms: integers by name, dictionaries of integers by term; tags and epochs drop out."""
    total: dict[str, Any] = {"documents": 0}
    for reply in replies:
        for name, value in reply.items():
            if name in ("tag", "epoch"):
                continue
            if isinstance(value, dict):
                into = total.setdefault(name, {})
                for term, count in value.items():
                    into[term] = into.get(term, 0) + count
            elif isinstance(value, int):
                total[name] = total.get(name, 0) + value
    return total


def candidates_of(replies: Sequence[dict[str, Any]]) -> list[Candidate]:
    """All shards' spans by calibrated score, best first; of spans that overlap in one document the best one only."""
    passages = [passage for reply in replies for passage in reply["passages"].values()]
    best_rank = max((passage["rank_score"] for passage in passages), default=0.0)
    found = [
        _candidate(reply["tag"], span, reply["passages"][span["passage"]], scoring, best_rank)
        for reply, scoring in zip(replies, map(_scoring, replies), strict=True)
        for span in reply["spans"]
    ]
    found.sort(key=lambda c: (-c.score, c.document, c.start, c.end))
    return _without_overlaps(found)[:KEPT]


def threshold_of(replies: Sequence[dict[str, Any]]) -> float:
    """The score below which nothing is answered: the readers' own, the strictest while they are being replaced."""
    return max((_scoring(reply).no_answer_below for reply in replies), default=shipped_scoring().no_answer_below)


def _scoring(reply: dict[str, Any]) -> Scoring:
    return Scoring(**reply["scoring"])


def _candidate(
    tag: str, span: dict[str, Any], passage: dict[str, Any], scoring: Scoring, best_rank: float
) -> Candidate:
    return Candidate(
        answer=span["text"],
        score=scoring.score(span["span_logit"], span["null_logit"], passage["rank_score"], best_rank),
        document=span["document"],
        title=passage["title"],
        start=span["start"],
        end=span["end"],
        passage=passage["text"],
        passage_start=passage["start"],
        shard=tag,
        rank_score=passage["rank_score"],
        margin=span["span_logit"] - span["null_logit"],
    )


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
    asked: Asked,
    question: str,
    corpus: str,
    model: str,
    n_best: int,
    min_score: float | None,
    cache: Literal["process", "redis"] | None,
    failed: list[str],
    timing: Timing,
) -> Answer:
    """The best candidate where its score reaches `min_score` (default: the reader's own threshold), or no answer."""
    threshold = asked.no_answer_below if min_score is None else min_score
    best = asked.candidates[0] if asked.candidates else None
    answered = best if best is not None and best.score >= threshold else None
    return Answer(
        question=question,
        corpus=corpus,
        answer=answered.answer if answered else None,
        score=best.score if best else 0.0,
        no_answer=answered is None,
        document=answered.document if answered else None,
        title=answered.title if answered else None,
        start=answered.start if answered else None,
        end=answered.end if answered else None,
        passage=answered.passage if answered else None,
        passage_start=answered.passage_start if answered else None,
        n_best=asked.candidates[:n_best],
        cached=cache is not None,
        cache=cache,
        partial=bool(failed),
        failed=failed,
        shards=asked.shards,
        model=model,
        timing=timing,
    )
