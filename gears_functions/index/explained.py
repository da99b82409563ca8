"""Why a passage has its rank score: the signals that it is the sum of, as `Index.rank` adds them. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from shardqa.gears_functions.index import vectors
from shardqa.gears_functions.index.bm25 import Kind
from shardqa.gears_functions.index.bridge_gains import Carried
from shardqa.gears_functions.index.selection import Signal


def explain(
    signals: Iterable[Signal], slot: int, cosine: float | None, idf: float | None, carried: Carried | None = None
) -> dict[str, Any]:
    """Returns the parts of a score. `idf` is the weight of all terms, None where the question has no vector; `cosine`
    is how near the passage's is to that, None where either has none."""
    terms, pairs, score = defaultdict[str, dict[str, Any]](dict), list[dict[str, Any]](), 0.0
    for one in signals:
        tf, gain = _at(one, slot)
        score += gain
        if one.kind is Kind.PAIR:
            first, second = one.term.split(" ")
            pairs.append({"first": first, "second": second, "tf": tf, "df": one.df, "score": gain})
        else:
            count = "tf" if one.kind is Kind.BODY else "title_tf"
            terms[one.term] |= {"term": one.term, count: tf, "df": one.df, "idf": one.idf, one.kind.value: gain}
    words, near = (score, 0.0) if idf is None else _fused(cosine, score, idf)
    bridge = None if carried is None else carried.record()
    parts = {"terms": [*terms.values()], "pairs": pairs, "cosine": cosine, "near": near, "bridge": bridge}
    return {**parts, "score": words + near + (carried.score if carried else 0.0)}


def _at(signal: Signal, slot: int) -> tuple[int, float]:
    """Returns how often a passage holds it, and what that adds."""
    own = np.flatnonzero(signal.rows == slot)
    return (int(signal.tf[own[0]]), float(signal.gains[own[0]])) if len(own) else (0, 0.0)


def _fused(cosine: float | None, words: float, idf: float) -> tuple[float, float]:
    """Returns the parts of a score that words and nearness have, where passages have vectors."""
    filled = vectors.filled(np.array(np.nan if cosine is None else cosine), np.array(words), idf)
    return float(vectors.word_score(np.array(words), idf)), float(vectors.near_score(filled, idf))
