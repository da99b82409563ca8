"""Chooses the excerpts to show: of an answer in each form, or the best sentences of all where nothing is sure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from shardqa.engine.merging import ScoredSpan
from shardqa.keys import DocumentName
from shardqa.models import enumerations, evidence, metrics
from shardqa.models.reading_record import PassagePart, PassageRecord, ShardReading
from shardqa.models.scoring import Scoring
from shardqa.places import Place
from shardqa.schema import Candidate, Part

SUPPORTING = 4  # parts of an answer at most, unless it is a list
ITEMS = 12  # of a list at most
ITEM_LOGITS = 3.0  # logits that an item of a list may lie below the best one: highest F1 on 400 enumerations of SQuAD
LIKELIEST = 3  # parts where nothing is sure


@dataclass(frozen=True, slots=True)
class Excerpt(PassagePart):
    """A sentence of a passage that was read, or an item of a list."""

    margin: float  # logits above "the passage does not say"
    score: float
    evidence: float = 0.0  # of a sentence: the mean of its tokens'

    def overlaps(self, other: "Excerpt") -> bool:
        return self.document == other.document and self.start < other.end and other.start < self.end

    def is_below(self, headings: Sequence[str]) -> bool:
        """Whether it stands below these headings: another entry's sentence supports nothing."""
        return ((self.place or {}).get("headings") or [])[: len(headings)] == list(headings)

    def part(self) -> Part:
        place = self.place
        return Part(
            text=self.text,
            corpus=self.document.corpus,
            document=self.document.id,
            title=self.passage.title,
            start=self.start,
            end=self.end,
            place=Place.model_validate(place) if place else None,
            score=self.score,
        )


def sentences_of(readings: Sequence[ShardReading]) -> list[Excerpt]:
    """Lists all sentences that were read and say something, likeliest first; passages overlap, so some come twice."""
    every = [passage for reading in readings for passage in reading.passages.values()]
    best = max((one.logit - passage.null_logit for passage in every for one in passage.sentences), default=0.0)
    sentences = [
        sentence
        for reading in readings
        for passage in reading.passages.values()
        for sentence in _scored(passage, reading.scores, best)
        if any(map(str.isalnum, sentence.text))
    ]
    return sorted(sentences, key=lambda sentence: (-sentence.score, sentence.document, sentence.start, sentence.end))


def _worth_showing(sentences: Sequence[Excerpt], document: DocumentName) -> list[Excerpt]:
    """The sentences of a document that are worth showing together, likeliest first."""
    own = _telling(list(distinct(sentence for sentence in sentences if sentence.document == document)))
    chances, words = np.array([one.score for one in own]), np.array([len(one.text.split()) for one in own])
    return [one for one, shows in zip(own, evidence.worth_showing(chances, words), strict=True) if shows]


def _telling(sentences: Sequence[Excerpt]) -> Sequence[Excerpt]:
    """Leaves out headings, which say nothing by themselves; not where there is nothing else."""
    return [one for one in sentences if one.text not in (one.place or {}).get("headings", ())] or sentences


def _scored(passage: PassageRecord, scoring: Scoring, best: float) -> Iterator[Excerpt]:
    """`best` is the highest margin of all sentences that were read."""
    for one in passage.sentences:
        margin = one.logit - passage.null_logit
        score = scoring.evidence_chance(margin, margin - best, one.evidence, passage.relevance)
        yield Excerpt(passage, one.start, one.end, margin, score, one.evidence)


def likeliest(sentences: Sequence[Excerpt]) -> list[Part]:
    """The best LIKELIEST of all passages, best first, nothing twice."""
    return [sentence.part() for sentence in islice(unrepeated(_telling(sentences)), LIKELIEST)]


def answering(sentences: Sequence[Excerpt]) -> list[Excerpt]:
    """The best sentence and those below the same headings that are likely enough, in their order."""
    best = _telling(sentences)[0]
    headings = (best.place or {}).get("headings") or []
    near = [one for one in _worth_showing(sentences, best.document) if one.is_below(headings)]
    return sorted(_within_parts(unrepeated([best, *near])), key=lambda sentence: sentence.start)


def of_span(own: ScoredSpan) -> Excerpt:
    span = own.span
    return Excerpt(span.passage, span.start, span.end, span.margin, own.score)


def items(spans: Sequence[ScoredSpan]) -> list[Excerpt]:
    """Cuts the spans that are nearly as likely as the first into items: by document, in order, once each."""
    best = spans[0].span.margin
    every = [item for one in spans if one.span.margin >= best - ITEM_LOGITS for item in _items(one)]
    few = list(islice(unrepeated(every), ITEMS))
    documents = list(dict.fromkeys(item.document for item in few))
    return sorted(few, key=lambda item: (documents.index(item.document), item.start))


def _items(span: ScoredSpan) -> Iterator[Excerpt]:
    whole = of_span(span)
    first = whole.passage.start
    for start, end in enumerations.items(whole.passage.text, whole.start - first, whole.end - first):
        item = replace(whole, start=first + start, end=first + end)
        if metrics.normalise(item.text):
            yield item


def supporting(sentences: Sequence[Excerpt], candidate: Candidate) -> list[Part]:
    """A candidate's own sentence and those below the same headings that are likely enough; in order, neighbours
    joined."""
    within, document = candidate.evidence[0], DocumentName(candidate.corpus, candidate.document)
    own = [
        sentence
        for sentence in sentences
        if (sentence.document, sentence.passage.start) == (document, candidate.passage_start)
        and within.start <= sentence.start < within.end
    ]
    headings = candidate.place.headings if candidate.place is not None else []
    others = [one for one in _worth_showing(sentences, document) if one.is_below(headings)]
    return joined(_within_parts([*own, *others]))


def likely(sentences: Sequence[Excerpt]) -> list[Excerpt]:
    """The sentences of one document, likeliest first, that are worth showing, in its order."""
    worth = _worth_showing(sentences, sentences[0].document) if sentences else []
    return sorted(_within_parts(worth), key=lambda sentence: sentence.start)


def _within_parts(sentences: Iterable[Excerpt]) -> list[Excerpt]:
    """Takes as many as make SUPPORTING parts, in their order."""
    excerpts: list[Excerpt] = []
    for sentence in distinct(sentences):
        if len(joined([*excerpts, sentence])) <= SUPPORTING:
            excerpts.append(sentence)
    return excerpts


def unrepeated(excerpts: Iterable[Excerpt]) -> Iterator[Excerpt]:
    """Leaves out those that overlap one before them, or say no word that one before does not, in its order."""
    texts: list[str] = []
    for excerpt in distinct(excerpts):
        words = f" {metrics.normalise(excerpt.text)} "
        if not any(words in other for other in texts):
            texts.append(words)
            yield excerpt


def distinct(sentences: Iterable[Excerpt]) -> Iterator[Excerpt]:
    """Leaves out those that overlap one before them."""
    excerpts: list[Excerpt] = []
    for sentence in sentences:
        if not any(sentence.overlaps(other) for other in excerpts):
            excerpts.append(sentence)
            yield sentence


def joined(excerpts: Iterable[Excerpt]) -> list[Part]:
    parts: list[Part] = []
    for sentence in sorted(excerpts, key=lambda sentence: sentence.start):
        passage, before = sentence.passage, parts[-1] if parts else None
        is_near = before and passage.start <= before.end and not passage.between(before.end, sentence.start).strip()
        if before and is_near and not (sentence.place or {}).get("cells"):  # a row of a table is a part
            longer = before.text + passage.between(before.end, sentence.end)
            score = max(before.score, sentence.score)
            parts[-1] = before.model_copy(update={"text": longer, "end": sentence.end, "score": score})
        else:
            parts.append(sentence.part())
    return parts
