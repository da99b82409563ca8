"""A passage as it is loaded from the keyspace, and what the reader's logits say of it. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa import places
from shardqa.models import evidence, metrics, reader, sentences, span_edges
from shardqa.models.evidence import Sentence
from shardqa.models.reading_record import PassageRecord, SpanRecord
from shardqa.models.tokenizer import PassageTokens

SPANS_PER_PASSAGE = 5  # candidates of one passage, enough for an n-best over a few
LOGIT_DIGITS = 3  # of sentences: a thousandth of a logit moves no chance by more than 0.0003


@dataclass(frozen=True, slots=True)
class Loaded:
    """A passage to read."""

    key: str
    score: float  # of its rank
    text: str
    start: int  # in the document
    title: str
    ids: NDArray[np.int32] | None  # word pieces, [n]; None where their tensor is gone, or may be of an earlier text
    places: places.Raw  # where its parts stand in the file
    metadata: str  # of its document, JSON
    heading: str = ""  # the last of its path


@dataclass(frozen=True, slots=True)
class PassageReading:
    """A passage as the reader sees it."""

    passage: PassageRecord
    spans: list[SpanRecord]  # best first

    def ranked(self, score: float) -> PassageReading:
        """Returns the same reading, with the score that its passage's rank has now."""
        passage = replace(self.passage, rank_score=score)
        return PassageReading(passage, [replace(span, passage=passage) for span in self.spans])


def loaded(key: str, score: float, hash: Any, blob: Any, document: Any, title: Any) -> Loaded | None:
    """Returns a passage from what Redis has of it; None where it is gone, or can't be read now.

    A document without a digest was not written to its end, as where its slot is moving: its tokens may have left first.
    """
    if isinstance(hash, Exception) or hash[0] is None:
        return None
    text, start, marks, path = hash
    metadata, digest = (None, None) if isinstance(document, Exception) else document
    metadata_json = metadata.decode("utf-8", "replace") if isinstance(metadata, bytes) else ""
    ids = None if isinstance(blob, Exception) or digest is None else np.frombuffer(blob, dtype="<i4")
    heading = (path or b"").decode("utf-8", "replace").rpartition(places.BELOW)[2]
    title_text = title.decode() if isinstance(title, bytes) else ""
    return Loaded(key, score, text.decode(), int(start), title_text, ids, places.stored(marks), metadata_json, heading)


def reading_of(
    passage: Loaded, pieces: PassageTokens, row: reader.Row, logits: reader.RowLogits, question: str = ""
) -> PassageReading:
    """Returns a passage's sentences and spans; a span that is a comma or an article alone is left out."""
    null = reader.null_logit(logits.start, logits.end)
    of_passage = logits.within(row.passage)
    offsets = pieces.offsets
    numbers = sentences.numbers(passage.text, offsets)
    best = reader.best_spans(logits.start, logits.end, row.passage, SPANS_PER_PASSAGE, sentences=numbers)
    first = passage.start
    record = PassageRecord(
        key=passage.key,
        title=passage.title,
        text=passage.text,
        start=first,
        rank_score=passage.score,
        null_logit=_rounded(null),
        relevance=_rounded(logits.relevance or 0.0),
        sentences=[
            Sentence(first + one.start, first + one.end, _rounded(one.logit), _rounded(one.evidence))
            for one in evidence.likeliest(of_passage, offsets, numbers, best)
        ],
        metadata=passage.metadata,
        places=passage.places,
    )
    spans: dict[tuple[int, int], SpanRecord] = {}  # by their characters, best first: two may be widened to the same
    for span in best:
        start, end = _edges(passage, int(offsets[span.start_token, 0]), int(offsets[span.end_token, 1]), question)
        if metrics.normalise(passage.text[start:end]):
            own = evidence.own(offsets, numbers, span, of_passage.evidence)
            sentence = first + min(own.start, start), first + max(own.end, end)
            signals = span.logit, null, sentence, _rounded(own.evidence)
            spans.setdefault((start, end), SpanRecord(record, first + start, first + end, *signals))
    return PassageReading(record, list(spans.values()))


def _rounded(logit: float) -> float:
    return round(logit, LOGIT_DIGITS)


def _edges(passage: Loaded, start: int, end: int, question: str) -> tuple[int, int]:
    mark = places.mark_at(passage.places, passage.start + start)
    if mark is not None and (cells := mark[1].get("cells")):
        start, end = span_edges.in_row(passage.text, max(0, mark[0] - passage.start), cells, start, end, question)
    return span_edges.widened(passage.text, start, end)
