"""Why a passage has its rank score: every number that it is the sum of. Pure; the same formulas as the index's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa.analysis import Query
from shardqa.gears_functions.index import bm25, vectors
from shardqa.gears_functions.index.bridge_gains import Carried
from shardqa.gears_functions.index.passage_table import PassageTable
from shardqa.statistics import CorpusStatistics, QuestionVector


@dataclass(frozen=True, slots=True)
class Seen:
    """A passage as its index sees it."""

    words: int
    title_words: int
    in_body: Callable[[str], int]  # a term's count
    in_title: Callable[[str], int]
    in_pairs: Callable[[str, str], int]
    cosine: float | None  # how near its vector is to the question's; None where either has none

    @classmethod
    def of(cls, table: PassageTable, slot: int, question: QuestionVector | None) -> Seen:
        cosine = None
        if question is not None and table.vectors.has(slot, question.encoder):
            cosine = float(table.vectors.cosines(question.encoder, question.vector, len(table.keys))[slot])
        return cls(
            words=table.words[slot],
            title_words=table.title_words[slot],
            in_body=lambda term: _count(*table.body.term(term), slot),
            in_title=lambda term: _count(*table.title.term(term), slot),
            in_pairs=lambda first, second: _count(*table.body.pair(first, second), slot),
            cosine=cosine,
        )


def _count(slots: NDArray[np.int32], tf: NDArray[np.int32], slot: int) -> int:
    return int(tf[slots == slot].sum())


def explain(seen: Seen, query: Query, statistics: CorpusStatistics, carried: Carried | None = None) -> dict[str, Any]:
    """Returns the parts of a score; `score` is that of `Index.rank` to the last bit: its sums have the same order."""
    terms = [_term(seen, term, statistics) for term in query.terms]
    pairs = [_pair(seen, first, second, statistics) for first, second in query.pairs]
    score = 0.0
    for part in terms:
        score += part["body"]
        score += part["title"]
    for part in pairs:
        score += part["score"]
    words, near = (score, 0.0) if statistics.near is None else _fused(seen, score, bm25.total_idf(query, statistics))
    parts = {"terms": terms, "pairs": pairs, "cosine": seen.cosine, "near": near}
    bridge = None if carried is None else carried.record()
    return {**parts, "bridge": bridge, "score": words + near + (carried.score if carried else 0.0)}


def _fused(seen: Seen, words: float, idf: float) -> tuple[float, float]:
    """Returns the parts of a score that words and nearness have, where passages have vectors."""
    cosine, own = np.array(np.nan if seen.cosine is None else seen.cosine), np.array(words)
    return float(vectors.word_score(own, idf)), float(vectors.near_score(vectors.filled(cosine, own, idf), idf))


def _term(seen: Seen, term: str, statistics: CorpusStatistics) -> dict[str, Any]:
    df = statistics.df.get(term, 0)
    weight = bm25.idf(df, statistics.passages)
    tf, title_tf = seen.in_body(term), seen.in_title(term)
    body = weight * _bm25(tf, seen.words, _average(statistics.length, statistics), bm25.B)
    in_title = _bm25(title_tf, seen.title_words, _average(statistics.title_length, statistics), bm25.TITLE_B)
    title = bm25.TITLE * weight * in_title
    return {"term": term, "tf": tf, "title_tf": title_tf, "df": df, "idf": weight, "body": body, "title": title}


def _pair(seen: Seen, first: str, second: str, statistics: CorpusStatistics) -> dict[str, Any]:
    df = statistics.df.get(f"{first} {second}", 0)
    weight = bm25.PAIRS * bm25.idf(df, statistics.passages)
    tf = seen.in_pairs(first, second)
    score = weight * _bm25(tf, seen.words, _average(statistics.length, statistics), bm25.B)
    return {"first": first, "second": second, "tf": tf, "df": df, "score": score}


def _average(length: int, statistics: CorpusStatistics) -> float:
    return max(length, 1) / statistics.passages


def _bm25(tf: int, words: int, average: float, b: float) -> float:
    return tf * (bm25.K1 + 1) / (tf + bm25.K1 * (1 - b + b * (words / average))) if tf else 0.0
