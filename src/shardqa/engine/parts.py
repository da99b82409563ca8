"""Chooses the excerpts to show: of an answer in each form, or the best sentences of all where nothing is sure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from shardqa import keys, places
from shardqa.engine.merging import ScoredSpan, scoring_of
from shardqa.models import enumerations, evidence, metrics
from shardqa.models.evidence import Sentence
from shardqa.models.scoring import Scoring
from shardqa.places import Place
from shardqa.schema import Candidate, Part

SUPPORTING = 4  # parts of an answer at most, unless it is a list
ITEMS = 12  # of a list at most
NEAR = 3.0  # logits that an item of a list may lie below the best one: highest F1 on 400 enumerations of SQuAD
LIKELIEST = 3  # parts where nothing is sure


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A sentence of a passage that was read, or an item of a list; characters are the document's."""

    passage: dict[str, Any]
    document: str
    start: int
    end: int
    margin: float  # logits above "the passage does not say"
    score: float
    evidence: float = 0.0  # of a sentence: the mean of its tokens'

    @property
    def text(self) -> str:
        first = self.passage["start"]
        return str(self.passage["text"][self.start - first : self.end - first])

    def overlaps(self, other: "Excerpt") -> bool:
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


def sentences_of(replies: Sequence[dict[str, Any]]) -> list[Excerpt]:
    """All sentences of the replies that say something, likeliest first; passages overlap, so some come twice."""
    every = [passage for reply in replies for passage in reply["passages"].values()]
    margins = (raw[2] - passage["null_logit"] for passage in every for raw in passage["sentences"])
    best = max(margins, default=0.0)
    sentences = [
        sentence
        for reply in replies
        for key, passage in reply["passages"].items()
        for sentence in _scored(passage, keys.parse_passage(key).document, scoring_of(reply), best)
        if any(map(str.isalnum, sentence.text))
    ]
    return sorted(sentences, key=lambda sentence: (-sentence.score, sentence.document, sentence.start, sentence.end))


def _worth_showing(sentences: Sequence[Excerpt], document: str) -> list[Excerpt]:
    """The sentences of a document that are worth showing together, likeliest first."""
    own = list(distinct(sentence for sentence in sentences if sentence.document == document))
    chances, words = np.array([one.score for one in own]), np.array([len(one.text.split()) for one in own])
    return [one for one, shows in zip(own, evidence.worth_showing(chances, words), strict=True) if shows]


def _scored(passage: dict[str, Any], document: str, scoring: Scoring, best: float) -> Iterator[Excerpt]:
    """`best` is the highest margin of all sentences that were read."""
    for raw in passage["sentences"]:
        one = Sentence(*raw)  # without evidence in a reply that an earlier version kept
        margin = one.logit - passage["null_logit"]
        score = scoring.evidence_chance(margin, margin - best, one.evidence, passage.get("relevance", 0.0))
        yield Excerpt(passage, document, one.start, one.end, margin, score, one.evidence)


def likeliest(sentences: Sequence[Excerpt]) -> list[Part]:
    """The best LIKELIEST of all passages, best first, nothing twice."""
    return [sentence.part() for sentence in islice(unrepeated(sentences), LIKELIEST)]


def answering(sentences: Sequence[Excerpt]) -> list[Excerpt]:
    """The best sentence and those below the same headings that are likely enough, in their order."""
    best = sentences[0]
    headings = (best.place or {}).get("headings") or []
    near = [one for one in _worth_showing(sentences, best.document) if one.is_below(headings)]
    return sorted(_within_parts(unrepeated([best, *near])), key=lambda sentence: sentence.start)


def of_span(scored: ScoredSpan) -> Excerpt:
    fields = scored.span.fields
    return Excerpt(scored.span.passage, fields["document"], fields["start"], fields["end"], scored.margin, scored.score)


def items(spans: Sequence[ScoredSpan]) -> list[Excerpt]:
    """Cuts the spans that are nearly as likely as the first into items: by document, in order, once each."""
    best = spans[0].margin
    every = [item for one in spans if one.margin >= best - NEAR for item in _items(one)]
    chosen = list(islice(unrepeated(every), ITEMS))
    documents = list(dict.fromkeys(item.document for item in chosen))
    return sorted(chosen, key=lambda item: (documents.index(item.document), item.start))


def _items(scored: ScoredSpan) -> Iterator[Excerpt]:
    whole = of_span(scored)
    first = whole.passage["start"]
    for start, end in enumerations.items(whole.passage["text"], whole.start - first, whole.end - first):
        item = replace(whole, start=first + start, end=first + end)
        if metrics.normalize(item.text):
            yield item


def supporting(sentences: Sequence[Excerpt], candidate: Candidate) -> list[Part]:
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
    others = [one for one in _worth_showing(sentences, candidate.document) if one.is_below(headings)]
    return joined(_within_parts([*own, *others]))


def likely(sentences: Sequence[Excerpt]) -> list[Excerpt]:
    """The sentences of one document, likeliest first, that are worth showing, in its order."""
    worth = _worth_showing(sentences, sentences[0].document) if sentences else []
    return sorted(_within_parts(worth), key=lambda sentence: sentence.start)


def _within_parts(sentences: Iterable[Excerpt]) -> list[Excerpt]:
    """Takes as many as make SUPPORTING parts, in their order."""
    chosen: list[Excerpt] = []
    for sentence in distinct(sentences):
        if len(joined([*chosen, sentence])) <= SUPPORTING:
            chosen.append(sentence)
    return chosen


def unrepeated(excerpts: Iterable[Excerpt]) -> Iterator[Excerpt]:
    """Leaves out those that overlap one before them, or say no word that one before does not, in its order."""
    said: list[str] = []
    for excerpt in distinct(excerpts):
        words = f" {metrics.normalize(excerpt.text)} "
        if not any(words in other for other in said):
            said.append(words)
            yield excerpt


def distinct(sentences: Iterable[Excerpt]) -> Iterator[Excerpt]:
    """Leaves out those that overlap one before them."""
    chosen: list[Excerpt] = []
    for sentence in sentences:
        if not any(sentence.overlaps(other) for other in chosen):
            chosen.append(sentence)
            yield sentence


def joined(chosen: Iterable[Excerpt]) -> list[Part]:
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
