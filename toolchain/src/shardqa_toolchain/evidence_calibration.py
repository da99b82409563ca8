"""Fit how likely a sentence is evidence, and from where on it is shown, to texts with marked sentences.

The model is a logistic regression over the sentences of all files (`scoring.EvidenceWeights`), each sentence weighing
its words and each file the same; a sentence is right where half of its words are marked. The line is the one with the
highest word F1 in the mean of the files. Fewer signals do better on files that the fit has not seen: words shared with
the question, length, position, number of sentences, neighbours, the passage's rank and its best span were tried.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadData
from shardqa.models.calibrate import AS_GOOD, LINES, chances, logistic
from shardqa.models.scoring import EvidenceWeights


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
    f1: float  # with weights and line that were fitted without this file
    best: float  # with the same weights and the line that suits this file best


def fit(files: Marked) -> EvidenceWeights:
    """Fit weights and line; raises BadData where no sentence is marked, or all are."""
    signals, right, weights = _sentences(list(files.values()))
    if not 0 < right.sum() < len(right):
        raise BadData(f"{right.sum()} of {len(right)} sentences are marked; some of both kinds are needed")
    fitted = EvidenceWeights(*logistic(signals, right, weights))
    f1 = np.mean([_curve(fitted, rows) for rows in files.values()], axis=0)
    return replace(fitted, line=round(float(np.median(LINES[f1 >= f1.max() - AS_GOOD])), 2))


def left_out(files: Marked, tests: Marked) -> Iterator[EvidenceOutcome]:
    """Each file of the fit by a fit to the others, then each of ``tests`` by a fit to all."""
    for name, rows in files.items():
        others = {other: of for other, of in files.items() if other != name}
        if others:
            yield _outcome(name, fit(others), rows)
    for name, rows in tests.items():
        yield _outcome(name, fit(files), rows)


def _outcome(name: str, weights: EvidenceWeights, rows: Sequence[MarkedRow]) -> EvidenceOutcome:
    curve = _curve(weights, rows)
    return EvidenceOutcome(name, len(rows), 100 * float(curve[np.argmin(abs(LINES - weights.line))]), 100 * curve.max())


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
    return np.column_stack([row.margins, row.margins - row.margins.max(), row.outputs])


def _curve(weights: EvidenceWeights, rows: Sequence[MarkedRow]) -> NDArray[np.float64]:
    """Word F1 of all rows together at each of LINES, 0 to 1."""
    read = [row for row in rows if len(row.margins)]
    if not read:
        return np.zeros(len(LINES))
    signals = np.concatenate([_signals(row) for row in read])
    bias, *factors = astuple(weights)[:-1]
    chance = chances(bias + signals @ np.array(factors))
    words, right = (np.concatenate([getattr(row, name) for row in read]) for name in ("words", "right"))
    shown = chance[None, :] >= LINES[:, None]
    return np.asarray(2 * (shown @ right) / np.maximum(1, shown @ words + sum(row.marked for row in rows)))
