"""Corpus-wide numbers that ranking needs: integers only, so that sums over shards are exact in any order.

With them travels the question's vector, where it is to be compared with the passages': whoever sums up decides that
once for all shards.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shardqa.bridges import TITLED, Bridges
from shardqa.errors import BadData

COUNTS = ("passages", "documents", "length", "title_length", "titles")

ENOUGH = 0.9
"""Share of a corpus' passages that have vectors, from which on nearness counts. Below, the few that have one would push
back what is not encoded yet."""

VECTOR_BYTES = 384


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """The vector that passages of one encoder's vectors are compared with."""

    encoder: str
    vector: bytes  # int8 [384]

    def record(self) -> dict[str, str]:
        """The fields for its JSON."""
        return {"encoder": self.encoder, "vector": base64.b64encode(self.vector).decode()}

    @classmethod
    def parse(cls, record: object) -> QuestionVector:
        """The inverse of `record`, other fields ignored; raises BadData."""
        fields = record if isinstance(record, dict) else {}
        encoder, base64_text = fields.get("encoder"), fields.get("vector")
        try:
            vector = base64.b64decode(base64_text, validate=True) if isinstance(base64_text, str) else b""
        except binascii.Error:
            vector = b""
        if not isinstance(encoder, str) or len(vector) != VECTOR_BYTES:
            raise BadData(
                f"a question's vector is {str(record)[:80]!r}, an encoder and {VECTOR_BYTES} bytes in base64 are "
                "needed; send what Embed replied"
            )
        return cls(encoder, vector)

    @classmethod
    def of_reply(cls, reply: Mapping[str, object]) -> QuestionVector | None:
        """Parses a shard's reply to Embed; None where it has no encoder. Raises BadData."""
        return None if reply.get("encoder") is None else cls.parse(reply)


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """Numbers of one shard's part of a corpus, or of all of it, for the terms of one question."""

    passages: int
    documents: int
    length: int  # words of all passages together
    title_length: int  # words of all passages' titles together
    df: Mapping[str, int]  # passages that hold the term, or the pair ("united state"); none is left out
    cf: Mapping[str, int]  # occurrences of the term in all passages; terms only
    vectors: Mapping[str, int] = field(default_factory=dict)  # passages that have one, by encoder
    near: QuestionVector | None = None  # what passages are compared with, too
    titles: int = 0  # documents that a text can name
    bridges: Bridges | None = None  # what the first passages name, where that is known

    def record(self) -> dict[str, Any]:
        """The fields for its JSON."""
        counts: dict[str, Any] = {name: getattr(self, name) for name in COUNTS}
        record = {**counts, "df": dict(self.df), "cf": dict(self.cf), "vectors": dict(self.vectors)}
        if self.near is not None:
            record["near"] = self.near.record()
        if self.bridges is not None:
            record["bridges"] = self.bridges.record()
        return record

    def is_encoded(self, encoder: str) -> bool:
        """Whether enough of the passages have vectors of this encoder."""
        return self.passages > 0 and self.vectors.get(encoder, 0) >= ENOUGH * self.passages

    @property
    def encoders(self) -> list[str]:
        """The encoders of which enough passages have vectors."""
        return [encoder for encoder in self.vectors if self.is_encoded(encoder)]

    def compared(self, question: QuestionVector | None) -> CorpusStatistics:
        """Returns the statistics with the question's vector, where enough passages can be compared with it."""
        return self if question is None or not self.is_encoded(question.encoder) else replace(self, near=question)

    @property
    def is_bridged(self) -> bool:
        """Whether the first passages' names are to be followed, and have not been."""
        return self.titles >= TITLED and self.bridges is None

    @classmethod
    def parse(cls, record: object) -> CorpusStatistics:
        """The inverse of `record`, other fields ignored; raises BadData for what no sum of shards can be."""
        if not isinstance(record, dict):
            raise BadData(f"statistics are a JSON {type(record).__name__}, an object is needed: the sum of all Terms")
        counts = {name: _count(record, name) for name in COUNTS}
        near = None if record.get("near") is None else QuestionVector.parse(record["near"])
        bridges = None if record.get("bridges") is None else Bridges.parse(record["bridges"])
        df, cf, vectors = (_counts(record, name) for name in ("df", "cf", "vectors"))
        return cls(df=df, cf=cf, vectors=vectors, near=near, bridges=bridges, **counts)


def total(parts: Iterable[CorpusStatistics]) -> CorpusStatistics:
    """The sum of all shards' statistics."""
    counts = dict.fromkeys(COUNTS, 0)
    df, cf, vectors = Counter[str](), Counter[str](), Counter[str]()
    for part in parts:
        for name in COUNTS:
            counts[name] += getattr(part, name)
        df.update(part.df)
        cf.update(part.cf)
        vectors.update(part.vectors)
    return CorpusStatistics(df=df, cf=cf, vectors=vectors, near=None, bridges=None, **counts)


def _count(record: Mapping[str, Any], name: str) -> int:
    value = record.get(name, 0)
    if type(value) is not int or value < 0:
        raise BadData(f"statistics have {name}={value!r}, a count is needed; send the sum of all shards' Terms")
    return value


def _counts(record: Mapping[str, Any], name: str) -> dict[str, int]:
    values = record.get(name, {})
    if not isinstance(values, dict):
        raise BadData(f"statistics have {name}={str(values)[:80]!r}, counts by term are needed; send all Terms' sum")
    return {term: _count(values, term) for term in values}
