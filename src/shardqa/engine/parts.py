"""Chooses the sentences to show: those that support an answer, or the best of all where nothing is sure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shardqa import keys, places
from shardqa.engine.merging import scoring_of
from shardqa.models import metrics
from shardqa.models.scoring import Scoring
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

    @property
    def place(self) -> dict[str, Any] | None:
        return places.at(self.passage.get("places") or [], self.start)

    def is_below(self, headings: Sequence[str]) -> bool:
        """Whether it stands below these headings: another entry's sentence supports nothing."""
        return ((self.place or {}).get("headings") or [])[: len(headings)] == list(headings)

    def part(self) -> Part:
        place = self.place
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
    every = [passage for reply in replies for passage in reply["passages"].values()]
    margins = (logit - passage["null_logit"] for passage in every for _, _, logit in passage["sentences"])
    best = max(margins, default=0.0)
    sentences = [
        sentence
        for reply in replies
        for key, passage in reply["passages"].items()
        for sentence in _scored(passage, keys.parse_passage(key).document, scoring_of(reply), best)
        if any(map(str.isalnum, sentence.text))
    ]
    return sorted(sentences, key=lambda sentence: (-sentence.score, sentence.document, sentence.start, sentence.end))


def _scored(passage: dict[str, Any], document: str, scoring: Scoring, best: float) -> Iterator[ScoredSentence]:
    """`best` is the highest margin of all sentences that were read."""
    for start, end, logit in passage["sentences"]:
        margin = logit - passage["null_logit"]
        score = scoring.evidence_chance(margin, margin - best)
        yield ScoredSentence(passage, document, start, end, margin, score, score >= scoring.evidence.line)


def likeliest(sentences: Sequence[ScoredSentence]) -> list[Part]:
    """The best LIKELIEST of all passages, best first, nothing twice."""
    chosen: list[ScoredSentence] = []
    for sentence in distinct(sentences):
        if len(chosen) < LIKELIEST and not any(_repeats(sentence, other) for other in chosen):
            chosen.append(sentence)
    return [sentence.part() for sentence in chosen]


def _repeats(sentence: ScoredSentence, other: ScoredSentence) -> bool:
    """Whether the one says no word that the other does not, in its order."""
    return f" {metrics.normalize(sentence.text)} " in f" {metrics.normalize(other.text)} "


def supporting(sentences: Sequence[ScoredSentence], candidate: Candidate) -> list[Part]:
    """A candidate's own sentence and those below the same headings that are likely enough; in order, neighbours
    joined."""
    within = candidate.evidence[0]
    own = [
        sentence
        for sentence in sentences
        if (sentence.document, sentence.passage["start"]) == (candidate.document, candidate.passage_start)
        and within.start <= sentence.start < within.end
    ]
    headings = candidate.place.headings if candidate.place is not None else []
    others = [
        sentence
        for sentence in sentences
        if sentence.shows and sentence.document == candidate.document and sentence.is_below(headings)
    ]
    return _joined(_within_parts([*own, *others]))


def likely(sentences: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    """The sentences of one document, likeliest first, that are likely enough, in its order."""
    chosen = _within_parts([sentence for sentence in sentences if sentence.shows])
    return sorted(chosen, key=lambda sentence: sentence.start)


def _within_parts(sentences: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    """Takes as many as make SUPPORTING parts, in their order."""
    chosen: list[ScoredSentence] = []
    for sentence in distinct(sentences):
        if len(_joined([*chosen, sentence])) <= SUPPORTING:
            chosen.append(sentence)
    return chosen


def distinct(sentences: Sequence[ScoredSentence]) -> list[ScoredSentence]:
    """Leaves out those that overlap one before them."""
    chosen: list[ScoredSentence] = []
    for sentence in sentences:
        if not any(sentence.overlaps(other) for other in chosen):
            chosen.append(sentence)
    return chosen


def _joined(chosen: Iterable[ScoredSentence]) -> list[Part]:
    parts: list[Part] = []
    for sentence in sorted(chosen, key=lambda sentence: sentence.start):
        first, text = sentence.passage["start"], sentence.passage["text"]
        if parts and first <= parts[-1].end and not text[parts[-1].end - first : sentence.start - first].strip():
            before = parts.pop()
            longer = before.text + text[before.end - first : sentence.end - first]
            score = max(before.score, sentence.score)
            parts.append(before.model_copy(update={"text": longer, "end": sentence.end, "score": score}))
        else:
            parts.append(sentence.part())
    return parts
