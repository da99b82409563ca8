"""A shard's reading of its best passages: the value of an `answer:` key, which the shard writes and engines read.

Names of fields are those of the JSON. Characters are the document's, half open. Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from shardqa import keys, places
from shardqa.keys import DocumentName
from shardqa.models.evidence import Sentence
from shardqa.models.scoring import Scoring


@dataclass(frozen=True, slots=True)
class PassageRecord:
    key: str
    title: str
    text: str
    start: int
    rank_score: float
    null_logit: float
    relevance: float = 0.0  # this is 0 of a reader without that output
    sentences: Sequence[Sentence] = ()
    metadata: str = ""  # of its document, JSON
    places: places.Raw = field(default_factory=list)  # where its parts stand in the file

    @property
    def document(self) -> DocumentName:
        return keys.parse_passage(self.key).name

    def between(self, start: int, end: int) -> str:
        return self.text[start - self.start : end - self.start]

    def record(self) -> dict[str, Any]:
        """Returns the fields that are not empty, without the key, by which the record is found."""
        record = {name: getattr(self, name) for name in OF_PASSAGE if getattr(self, name) != EMPTY.get(name)}
        return {**record, "sentences": [tuple(sentence) for sentence in self.sentences]}

    @classmethod
    def parse(cls, key: str, record: Mapping[str, Any]) -> PassageRecord:
        fields = {name: record[name] for name in OF_PASSAGE if name in record}
        return cls(key, **{**fields, "sentences": [Sentence(*raw) for raw in record["sentences"]]})


OF_PASSAGE = tuple(PassageRecord.__slots__)[1:]
EMPTY = {"metadata": "", "places": []}


@dataclass(frozen=True, slots=True)
class PassagePart:
    """Characters of a passage that was read."""

    passage: PassageRecord
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.passage.between(self.start, self.end)

    @property
    def document(self) -> DocumentName:
        return self.passage.document

    @property
    def place(self) -> dict[str, Any] | None:
        return places.at(self.passage.places, self.start)

    @property
    def said(self) -> str:
        return self._with_above(self.text)

    @property
    def around(self) -> str:
        return self._with_above(self.passage.text)

    def _with_above(self, text: str) -> str:
        """Adds what a text stands below and beside: the title, its headings, and the cells of its row."""
        place = self.place or {}
        cells = (part for cell in place.get("cells") or () for part in cell)
        return "\n".join((text, self.passage.title, *(place.get("headings") or ()), *cells))

    @property
    def rank_score(self) -> float:
        return self.passage.rank_score

    @property
    def relevance(self) -> float:
        return self.passage.relevance


@dataclass(frozen=True, slots=True)
class SpanRecord(PassagePart):
    span_logit: float
    null_logit: float
    sentence: tuple[int, int]  # or sentences that it stands in
    evidence: float  # of these

    @property
    def margin(self) -> float:
        return self.span_logit - self.null_logit

    @property
    def said(self) -> str:
        return self._with_above(self.passage.between(*self.sentence))

    def record(self) -> dict[str, Any]:
        """Returns the fields for the JSON; those of a span by itself have its document, text and place, too."""
        names = ("text", "place", *OF_SPAN)
        own = {"passage": self.passage.key, "document": self.document.id}
        return {**own, **{name: getattr(self, name) for name in names}}

    @classmethod
    def parse(cls, record: Mapping[str, Any], passages: Mapping[str, PassageRecord]) -> SpanRecord:
        own = {name: record[name] for name in OF_SPAN}
        return cls(passages[record["passage"]], **{**own, "sentence": tuple(record["sentence"])})


OF_SPAN = (*PassagePart.__slots__[1:], *SpanRecord.__slots__)


@dataclass(frozen=True, slots=True)
class ShardReading:
    tag: str
    epoch: int
    model: str
    question: str  # normalised
    spans: Sequence[SpanRecord]  # best first
    passages: Mapping[str, PassageRecord]  # by key, best first
    scores: Scoring  # the reader's
    us: Mapping[str, int]  # microseconds by phase
    batch: int  # passages that were read for it, and not for an earlier stage
    cached: bool = False  # it was there already

    def json(self) -> bytes:
        record = {name: getattr(self, name) for name in OF_READING}
        record["spans"] = [span.record() for span in self.spans]
        record["passages"] = {key: passage.record() for key, passage in self.passages.items()}
        return orjson.dumps({**record, "scores": self.scores.record()})

    @classmethod
    def parse(cls, value: bytes | str) -> ShardReading | None:
        """Returns the reading in a value of Redis; None where it is none, or not of this version."""
        try:
            record = orjson.loads(value)
            passages = {key: PassageRecord.parse(key, one) for key, one in record["passages"].items()}
            spans = [SpanRecord.parse(one, passages) for one in record["spans"]]
            us = {phase: int(us) for phase, us in record["us"].items()}
            own = {"spans": spans, "passages": passages, "scores": Scoring.parse(record["scores"]), "us": us}
            return cls(**{**{name: record[name] for name in OF_READING}, **own})
        except (LookupError, TypeError, ValueError, AttributeError):
            return None

    def of_passages(self, keys: Collection[str]) -> ShardReading:
        """Leaves out other passages, and their spans."""
        return replace(
            self,
            spans=[span for span in self.spans if span.passage.key in keys],
            passages={key: passage for key, passage in self.passages.items() if key in keys},
        )


OF_READING = tuple(ShardReading.__slots__)


def marked_cached(json: bytes) -> bytes:
    """Returns the JSON of a reading as Redis keeps it: `cached`. Inside a string these bytes never stand."""
    return json.replace(b'"cached":false', b'"cached":true')
