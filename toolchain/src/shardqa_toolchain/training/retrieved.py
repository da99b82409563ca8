"""Hard negatives as a search finds them: of all passages the likest to a question that does not hold its answer.

BM25 over the reader's wordpieces (Robertson and Zaragoza 2009, section 3.2), in numpy; it makes data and serves nobody.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SATURATION, LENGTH = 1.2, 0.75  # BM25's k1 and b, the usual ones

COMMON = 3_000  # wordpieces in more passages than this are not looked for: they cost most and tell least


class PassageRows:
    """Passages by wordpiece; never changes once made."""

    def __init__(self, passages: Sequence[NDArray[np.int32]]) -> None:
        """``passages`` are wordpieces, int32 [n] each; there is one at least."""
        lengths = np.array([len(pieces) for pieces in passages], dtype=np.float64)
        tallies = [np.unique(pieces, return_counts=True) for pieces in passages]
        pieces = np.concatenate([one for one, _ in tallies])
        counts = np.concatenate([count for _, count in tallies]).astype(np.float64)
        owners = np.repeat(np.arange(len(passages)), [len(one) for one, _ in tallies])
        order = np.argsort(pieces, kind="stable")
        spread = SATURATION * (1 - LENGTH + LENGTH * lengths / lengths.mean())
        weights = counts * (SATURATION + 1) / (counts + spread[owners])
        holders = np.bincount(pieces)
        rarity = np.log1p((len(passages) - holders + 0.5) / (holders + 0.5))
        self._size = len(passages)
        self._owners = owners[order]
        self._weights = (weights * rarity[pieces])[order]
        self._ends = np.cumsum(holders)
        self._starts = self._ends - holders

    def likest(self, question: NDArray[np.int32], count: int) -> list[int]:
        """Numbers of at most ``count`` passages that share most with the question, best first."""
        scores = np.zeros(self._size)
        for piece in {one for one in question.tolist() if one < len(self._ends)}:
            start, end = self._starts[piece], self._ends[piece]
            if end - start <= COMMON:
                scores[self._owners[start:end]] += self._weights[start:end]
        count = min(count, self._size)
        best = np.argpartition(-scores, count - 1)[:count]
        order: list[int] = best[np.lexsort((best, -scores[best]))].tolist()
        return [number for number in order if scores[number] > 0]
