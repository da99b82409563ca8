"""Which sentences are shown: those that support an answer, or the best of all where nothing is sure. Pure functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shardqa import keys, places
from shardqa.engine.merging import scoring_of
from shardqa.models import metrics
from shardqa.places import Place
from shardqa.schema import Candidate, Part

SUPPORTING = 4  # parts of an answer at most
LIKELIEST = 3  # parts where nothing is sure


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence of a passage that was read; characters are the document's."""

    passage: dict[str, Any]
    document: str
    start: int
    end: int
    margin: float  # logits above "the passage does not say"
    score: float
    shows: bool  # its score reaches the reader's line for evidence

    @property
    def text(self) -> str:
        first = self.passage["start"]
        return str(self.passage["text"][self.start - first : self.end - first])

    def overlaps(self, other: "ScoredSentence") -> bool:
        return self.document == other.document and self.start < other.end and other.start < self.end

    def part(self) -> Part:
        place = places.at(self.passage.get("places") or [], self.start)
        return Part(
            text=self.text,
            document=self.document,
            title=self.passage["title"],
            start=self.start,
            end=self.end,
            place=Place.model_validate(place) if place else None,
            score=self.score,
        )


def sentences_of(replies: Sequence[dict[str, Any]]) -> list[ScoredSentence]:
    """All sentences of the replies that say something, likeliest first; passages overlap, so some come twice."""
    passages = [
        (keys.parse_passage(key).document, passage, scoring)
        for reply, scoring in zip(replies, map(scoring_of, replies), strict=True)
        for key, passage in reply["passages"].items()
    ]
    best = max((logit - one["null_logit"] for _, one, _ in passages for _, _, logit in one["sentences"]), default=0.0)
    sentences = [
        ScoredSentence(passage, document, start, end, margin, score, score >= scoring.evidence.line)
        for document, passage, scoring in passages
        for start, end, logit in passage["sentences"]
        for margin in [logit - passage["null_logit"]]
        for score in [scoring.evidence_chance(margin, margin - best)]
    ]
    sentences.sort(key=lambda one: (-one.score, one.document, one.start, one.end))
    return [one for one in sentences if any(map(str.isalnum, one.text))]


def likeliest(sentences: Sequence[ScoredSentence]) -> list[Part]:
    """The best LIKELIEST of all passages, best first, nothing twice."""
    chosen: list[ScoredSentence] = []
    for one in distinct(sentences):
        if len(chosen) < LIKELIEST and not any(_repeats(one, other) for other in chosen):
            chosen.append(one)
    return [one.part() for one in chosen]


def _repeats(one: ScoredSentence, other: ScoredSentence) -> bool:
    """Whether one says no word that the other does not, in its order."""
    return f" {metrics.normalize(one.text)} " in f" {metrics.normalize(other.text)} "


def supporting(sentences: Sequence[ScoredSentence], candidate: Candidate) -> list[Part]:
    """What holds a candidate, and what else of its document is likely enough; in order, neighbours are one part."""
    within = candidate.evidence[0]
    own = [
        one
        for one in sentences
        if (one.document, one.passage["start"]) == (candidate.document, candidate.passage_start)
        and within.start <= one.start < within.end
    ]
    others = [one for one in sentences if one.shows and one.document == candidate.document]
    return _joined(_within_parts([*own, *others]))


def shown(sentences: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    """Of one document's sentences, likeliest first, those that are likely enough, in its order."""
    return sorted(_within_parts([one for one in sentences if one.shows]), key=lambda one: one.start)


def _within_parts(sentences: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    """As many as make SUPPORTING parts, in the order given."""
    chosen: list[ScoredSentence] = []
    for one in distinct(sentences):
        if len(_joined([*chosen, one])) <= SUPPORTING:
            chosen.append(one)
    return chosen


def distinct(sentences: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    """Without those that overlap one before them."""
    chosen: list[ScoredSentence] = []
    for one in sentences:
        if not any(one.overlaps(other) for other in chosen):
            chosen.append(one)
    return chosen


def _joined(chosen: Iterable[ScoredSentence]) -> list[Part]:
    parts: list[Part] = []
    for one in sorted(chosen, key=lambda one: one.start):
        first, text = one.passage["start"], one.passage["text"]
        if parts and first <= parts[-1].end and not text[parts[-1].end - first : one.start - first].strip():
            before = parts.pop()
            longer = before.text + text[before.end - first : one.end - first]
            score = max(before.score, one.score)
            parts.append(before.model_copy(update={"text": longer, "end": one.end, "score": score}))
        else:
            parts.append(one.part())
    return parts
