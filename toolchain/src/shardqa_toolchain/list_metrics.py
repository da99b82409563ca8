"""Measures how near the items of a list are to those that people marked, as MultiSpanQA's own script counts.

Partial match: an item's precision is the longest run of characters that it shares with any marked item, as a share of
it; a marked item's recall the same the other way round. All rows count together. Exact match: items that are equal.
(Li et al. 2022, https://aclanthology.org/2022.naacl-main.90/, stated here in our words.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import numpy as np

from shardqa.models import metrics
from shardqa_toolchain import intervals
from shardqa_toolchain.intervals import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

COUNTS = 5
"""Of a row: partial precision and recall, summed over items; items that are equal, predicted, marked."""


@dataclass(frozen=True, slots=True)
class ListScores:
    """Percent."""

    rows: int
    precision: float
    """Partial, as recall and F1."""
    recall: float
    f1: float
    exact_f1: float


def counted(predicted: Iterable[str], marked: Iterable[str]) -> NDArray[np.float64]:
    """The COUNTS of one row, items in any order; a row without items on one side counts as one that is missed."""
    ours, theirs = ({metrics.normalize(item) for item in items} - {""} for items in (predicted, marked))
    common = np.array([[_longest_run(item, other) for other in sorted(theirs)] for item in sorted(ours)])
    precision = recall = 0.0
    if ours and theirs:
        precision = float((common.max(axis=1) / [len(item) for item in sorted(ours)]).sum())
        recall = float((common.max(axis=0) / [len(other) for other in sorted(theirs)]).sum())
    elif not ours and not theirs:
        precision = recall = 1.0
    return np.array([precision, recall, len(ours & theirs), max(1, len(ours)), max(1, len(theirs))])


def _longest_run(item: str, other: str) -> int:
    return SequenceMatcher(None, item, other).find_longest_match().size


def summed(rows: Sequence[NDArray[np.float64]]) -> ListScores:
    total = np.sum(rows, axis=0)
    precision, recall = 100 * total[0] / total[3], 100 * total[1] / total[4]
    return ListScores(
        len(rows), float(precision), float(recall), float(_f1(total)), float(200 * total[2] / (total[3] + total[4]))
    )


def _f1(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Partial F1 in percent; the counts are in the last axis."""
    precision, recall = totals[..., 0] / totals[..., 3], totals[..., 1] / totals[..., 4]
    return np.asarray(200 * precision * recall / np.maximum(precision + recall, 1e-9))


def compared(before: Sequence[NDArray[np.float64]], after: Sequence[NDArray[np.float64]]) -> Interval:
    """Compares the partial F1 of the same rows."""
    return intervals.compared(np.array(before), np.array(after), _f1)
