"""Corpus-wide numbers that ranking needs: integers only, so that sums over shards are exact in any order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shardqa.errors import BadData

COUNTS = ("passages", "documents", "length", "title_length")


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """Of one shard's part of a corpus, or of all of it, for the terms of one question."""

    passages: int
    documents: int
    length: int  # words of all passages together
    title_length: int  # words of all passages' titles together
    df: Mapping[str, int]  # passages that hold the term, or the pair ("united state"); none is left out
    cf: Mapping[str, int]  # occurrences of the term in all passages; terms only

    def record(self) -> dict[str, Any]:
        """As it travels in JSON."""
        return {**{name: getattr(self, name) for name in COUNTS}, "df": dict(self.df), "cf": dict(self.cf)}

    @classmethod
    def parse(cls, record: object) -> CorpusStatistics:
        """The inverse of `record`, other fields ignored; raises BadData for what no sum of shards can be."""
        if not isinstance(record, dict):
            raise BadData(f"statistics are a JSON {type(record).__name__}, an object is needed: the sum of all Terms")
        counts = {name: _count(record, name) for name in COUNTS}
        return cls(**counts, df=_counts(record, "df"), cf=_counts(record, "cf"))


def total(parts: Iterable[CorpusStatistics]) -> CorpusStatistics:
    """The sum of all shards' statistics."""
    counts = dict.fromkeys(COUNTS, 0)
    df, cf = dict[str, int](), dict[str, int]()
    for part in parts:
        for name in COUNTS:
            counts[name] += getattr(part, name)
        _add(df, part.df)
        _add(cf, part.cf)
    return CorpusStatistics(**counts, df=df, cf=cf)


def _add(into: dict[str, int], counts: Mapping[str, int]) -> None:
    for term, count in counts.items():
        into[term] = into.get(term, 0) + count


def _count(record: Mapping[str, Any], name: str) -> int:
    value = record.get(name, 0)
    if type(value) is not int or value < 0:
        raise BadData(f"statistics have {name}={value!r}, a count is needed; send the sum of all shards' Terms")
    return value


def _counts(record: Mapping[str, Any], name: str) -> dict[str, int]:
    values = record.get(name, {})
    if not isinstance(values, dict):
        raise BadData(
            f"statistics have {name}={str(values)[:80]!r}, counts by term are needed; send the sum of all Terms"
        )
    return {term: _count(values, term) for term in values}
