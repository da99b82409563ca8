"""Measures how near excerpts are to marked spans: over words, over spans, and which of two systems is better.

Words are what blanks separate; one counts as covered where a span shares a character with it. Precision, recall and F1
are of all rows together ("micro"), so a row without marked spans counts by what is wrongly shown there. Spans are
matched one to one, best overlap first, by their share of common characters (intersection over union); a predicted span
is contained where most of it lies in one marked span.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from shardqa_toolchain import intervals
from shardqa_toolchain.intervals import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

Extent: TypeAlias = tuple[int, int]  # characters, half open
MATCHED = 0.5  # intersection over union from which two spans are the same
CONTAINED = 0.8  # share of a predicted span that lies in one marked span, from which it counts as contained
WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class EvidenceCounts:
    """Counts that one row adds to each figure: words, then spans matched, then spans contained."""

    true_words: int
    predicted_words: int
    marked_words: int
    matched: int
    contained: int  # predicted spans
    containing: int  # marked spans that hold a contained one
    predicted: int
    marked: int


@dataclass(frozen=True, slots=True)
class EvidenceScores:
    """Percent."""

    rows: int
    precision: float  # of words, as recall and F1
    recall: float
    f1: float
    iou_f1: float  # of spans with an intersection over union of MATCHED or more
    containment_f1: float


def counted(text: str, predicted: Sequence[Extent], marked: Sequence[Extent]) -> EvidenceCounts:
    """Compare predicted spans of a text with the marked ones; both in any order."""
    words = [match.span() for match in WORD.finditer(text)]
    predicted_words, marked_words = (_covered(words, spans) for spans in (predicted, marked))
    inside = np.array([[_common(one, other) / max(1, one[1] - one[0]) for other in marked] for one in predicted])
    holds = inside.reshape(len(predicted), len(marked)) >= CONTAINED
    return EvidenceCounts(
        int((predicted_words & marked_words).sum()),
        int(predicted_words.sum()),
        int(marked_words.sum()),
        _matched(predicted, marked),
        int(holds.any(axis=1).sum()),
        int(holds.any(axis=0).sum()),
        len(predicted),
        len(marked),
    )


def _covered(words: Sequence[Extent], spans: Sequence[Extent]) -> NDArray[np.bool_]:
    return np.array([any(start < last and first < end for start, end in spans) for first, last in words], np.bool_)


def _common(first: Extent, second: Extent) -> int:
    return max(0, min(first[1], second[1]) - max(first[0], second[0]))


def _matched(predicted: Sequence[Extent], marked: Sequence[Extent]) -> int:
    pairs = sorted(
        (
            (common / (one[1] - one[0] + other[1] - other[0] - common), first, second)
            for first, one in enumerate(predicted)
            for second, other in enumerate(marked)
            for common in [_common(one, other)]
            if common
        ),
        reverse=True,
    )
    firsts, seconds = set[int](), set[int]()
    for share, first, second in pairs:
        if share >= MATCHED and first not in firsts and second not in seconds:
            firsts.add(first)
            seconds.add(second)
    return len(firsts)


def summed(rows: Sequence[EvidenceCounts]) -> EvidenceScores:
    """The figures of all rows together; 0 where nothing is predicted or marked."""
    names = (
        "true_words",
        "predicted_words",
        "marked_words",
        "matched",
        "contained",
        "containing",
        "predicted",
        "marked",
    )
    total = {name: sum(getattr(row, name) for row in rows) for name in names}
    precision, recall = (
        _share(total["true_words"], total["predicted_words"]),
        _share(total["true_words"], total["marked_words"]),
    )
    within, holding = _share(total["contained"], total["predicted"]), _share(total["containing"], total["marked"])
    return EvidenceScores(
        len(rows),
        precision,
        recall,
        _share(2 * total["true_words"], total["predicted_words"] + total["marked_words"]),
        _share(2 * total["matched"], total["predicted"] + total["marked"]),
        2 * within * holding / (within + holding) if within + holding else 0.0,
    )


def _share(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def compared(before: Sequence[EvidenceCounts], after: Sequence[EvidenceCounts]) -> Interval:
    """Compares the word F1 of the same rows, the second's less the first's."""
    first, second = (
        np.array([(row.true_words, row.predicted_words + row.marked_words) for row in rows], dtype=np.float64)
        for rows in (before, after)
    )
    return intervals.compared(first, second, _f1)


def _f1(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Percent, of (true words, predicted and marked words) in the last axis."""
    return np.asarray(200 * totals[..., 0] / np.maximum(totals[..., 1], 1))


def mean(scores: Sequence[EvidenceScores]) -> EvidenceScores:
    """Averages several files, each weighing the same."""
    columns = np.array([tuple(asdict(one).values()) for one in scores])
    return EvidenceScores(int(columns[:, 0].sum()), *(float(value) for value in columns[:, 1:].mean(axis=0)))
