"""The score of a passage for a question: BM25 of body, title and pairs, fused with a personalised PageRank.

A score depends on the passage, its document and corpus-wide integers only; sums run in the order of the question's
terms. So scores and order are equal, bit for bit, however many shards hold the corpus, and numpy's elementwise
+ - * / keep that (no logarithm or power of an array: their vector forms may differ in the last bit).

The graph: a term leads to the passages that hold it, in proportion to how often; a passage leads to its document; a
document leads to each of its passages. Personalised PageRank (Page et al. 1999; Haveliwala 2002) with damping d and
restarts at the question's terms has a closed form there, since after one visit to the document the walk is spread
evenly over its passages for good: restricted to passages and normalised it is
    (1 - d²) * direct + d² * (mean of direct over the document's passages),
direct(p) = sum over terms of restart(t) * tf(t, p) / cf(t). Passages do not lead back to terms: such walks would enter
other shards' documents, and a rank would depend on how the corpus is cut.

The constants were tuned on 52 articles of SQuAD 1.1's training set (2,234 paragraphs, 10,057 questions).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

K1 = 0.8  # BM25: how soon more occurrences of a term stop to count; passages are short
B = 0.5  # BM25: how much longer passages are held back, 0 to 1
TITLE = 0.5  # weight of the title's BM25
TITLE_B = 0.3
PAIRS = 0.3  # weight of the pairs' BM25
DAMPING = 0.85  # d: PageRank's usual
GRAPH = 4.0  # most that PageRank adds to a score; BM25 of a good passage is 10 to 30
GRAPH_HALF = 5.0  # times the even share (1 / passages) at which PageRank adds half of GRAPH


def idf(df: int, passages: int) -> float:
    """Robertson and Spärck Jones' weight as Lucene keeps it positive: ln(1 + (N - df + 0.5) / (df + 0.5))."""
    return math.log(1 + (max(passages - df, 0) + 0.5) / (df + 0.5))


def bm25(tf: NDArray[np.int32], lengths: NDArray[np.int32], average: float, b: float) -> NDArray[np.float64]:
    """BM25 of one term without idf, float64 [n], 0 to K1 + 1: tf (k1 + 1) / (tf + k1 (1 - b + b length / average))."""
    return np.asarray(tf * (K1 + 1) / (tf + K1 * (1 - b + b * (lengths / average))), dtype=np.float64)


def pagerank(direct: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Personalised PageRank of passages from their direct share and their document's mean; see the file's head."""
    return (1 - DAMPING * DAMPING) * direct + (DAMPING * DAMPING) * mean


def graph_score(share: NDArray[np.float64], passages: int) -> NDArray[np.float64]:
    """What a PageRank of `share` (all passages' sum is 1) adds to a score, 0 to GRAPH."""
    lift = share * passages
    return GRAPH * (lift / (lift + GRAPH_HALF))
