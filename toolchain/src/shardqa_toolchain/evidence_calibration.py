"""Fit how likely a sentence is evidence to texts with marked sentences.

The model is a logistic regression over the sentences of all files (`scoring.EvidenceWeights`), each sentence weighing
its words and each file the same; a sentence is right where half of its words are marked. Fewer signals do better on
files that the fit has not seen: words shared with the question, length, position, number of sentences, neighbours, the
passage's rank and its best span were tried. What is shown is `evidence.worth_showing`, which has nothing to fit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadData
from shardqa.models.evidence import worth_showing
from shardqa.models.scoring import EvidenceWeights
from shardqa_toolchain.calibrate import chances, logistic


@dataclass(frozen=True, slots=True)
class MarkedRow:
    """A question's text as the reader sees it."""

    margins: NDArray[np.float64]  # of each sentence, logits above its passage's "does not say", [sentences]
    outputs: NDArray[np.float64]  # evidence of each and relevance of its passage, [sentences, 2]
    words: NDArray[np.int64]  # of each sentence, [sentences]
    right: NDArray[np.int64]  # those of them that are marked, [sentences]
    marked: int  # words of the text that are marked, in these sentences or not


Marked = Mapping[str, Sequence[MarkedRow]]  # rows by file


@dataclass(frozen=True, slots=True)
class EvidenceOutcome:
    """Word F1 on a file, percent."""

    file: str
    rows: int
    f1: float  # of what is worth showing by weights that were fitted without this file


def fit(files: Marked) -> EvidenceWeights:
    """Fit weights; raises BadData where no sentence is marked, or all are."""
    signals, right, weights = _sentences(list(files.values()))
    if not 0 < right.sum() < len(right):
        raise BadData(f"{right.sum()} of {len(right)} sentences are marked; some of both kinds are needed")
    return EvidenceWeights(*logistic(signals, right, weights))


def left_out(files: Marked, tests: Marked) -> Iterator[EvidenceOutcome]:
    """Each file of the fit by a fit to the others, then each of ``tests`` by a fit to all."""
    for name, rows in files.items():
        others = {other: of for other, of in files.items() if other != name}
        if others:
            yield _outcome(name, fit(others), rows)
    for name, rows in tests.items():
        yield _outcome(name, fit(files), rows)


def _outcome(name: str, weights: EvidenceWeights, rows: Sequence[MarkedRow]) -> EvidenceOutcome:
    """Counts the words of all rows together."""
    bias, *factors = astuple(weights)
    masks = [worth_showing(chances(bias + _signals(row) @ np.array(factors)), row.words) for row in rows]
    words, right = (
        sum(int(getattr(row, name)[own].sum()) for row, own in zip(rows, masks, strict=True))
        for name in ("words", "right")
    )
    return EvidenceOutcome(name, len(rows), 200 * right / max(1, words + sum(row.marked for row in rows)))


def _sentences(
    files: Sequence[Sequence[MarkedRow]],
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """(signals [sentences, 4], which are right, what each weighs) of all files."""
    signals, right, weights = [], [], []
    for rows in files:
        read = [row for row in rows if len(row.margins)]
        words = np.concatenate([row.words for row in read])
        signals.append(np.concatenate([_signals(row) for row in read]))
        right.append(2 * np.concatenate([row.right for row in read]) >= words)
        weights.append(words / words.sum())
    return np.concatenate(signals), np.concatenate(right), np.concatenate(weights)


def _signals(row: MarkedRow) -> NDArray[np.float64]:
    """Margin, margin above the best, evidence and relevance, [sentences, 4]."""
    return np.column_stack([row.margins, row.margins - row.margins.max(initial=-np.inf), row.outputs])
