"""Batches and their order, drawn from a seed, so that a run can be taken up anywhere."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Lengths are rounded up to a multiple of this: few shapes, which oneDNN's kernels like, for a little padding.
ROUND_TOKENS = 32

# Batches' worth of rows that are sorted by length together: enough that each batch holds like lengths, few enough that
# the order stays random.
POOL_BATCHES = 64


UNKNOWN = -100  # a place that the data don't say: torch's cross entropy passes it over

UNSAID = -1  # evidence of a token that the data say nothing of


@dataclass(frozen=True, slots=True)
class LearningRow:
    """A row of `reader.join` with its labels."""

    input_ids: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]
    # The answer's first token in the row; 0, which is [CLS], when the passage does not say; UNKNOWN where sentences
    # alone answer.
    start: int
    end: int  # the answer's last token, itself included
    # Of each token whether it belongs to a sentence that answers, 0 or 1, UNSAID outside the passage, int8 [n].
    evidence: NDArray[np.int8]

    @property
    def answers(self) -> bool:
        """Whether something in the passage answers."""
        return bool((self.evidence == 1).any())

    def __len__(self) -> int:
        return len(self.input_ids)


@dataclass(frozen=True, slots=True)
class LearningBatch:
    """Rows padded to one length; int64 [rows, tokens], and [rows] for the labels of rows."""

    input_ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    evidence: NDArray[np.int8]  # [rows, tokens], UNSAID for padding
    answers: NDArray[np.bool_]  # [rows]


def plan(lengths: Sequence[int], tokens: int, seed: int, passed: int) -> list[list[int]]:
    """Deal rows into batches of about ``tokens`` tokens, padding included, for one pass over the data.

    Every row is in exactly one batch; the order depends on the lengths, ``seed`` and the number of passes before this
    one alone. A row longer than ``tokens`` is a batch by itself.
    """
    random = np.random.default_rng((seed, passed))
    order = random.permutation(len(lengths))
    sizes = -(-np.asarray(lengths, dtype=np.int64) // ROUND_TOKENS) * ROUND_TOKENS
    pool = max(1, int(POOL_BATCHES * tokens / sizes.mean())) if len(lengths) else 1
    batches = [
        batch
        for first in range(0, len(order), pool)
        for batch in _cut(sorted(order[first : first + pool].tolist(), key=lambda row: sizes[row]), sizes, tokens)
    ]
    return [batches[number] for number in random.permutation(len(batches))]


def _cut(rows: Sequence[int], rounded: NDArray[np.int64], tokens: int) -> list[list[int]]:
    """Cuts rows of rising length into batches whose longest row times their number stays within ``tokens``."""
    batches: list[list[int]] = []
    for row in rows:
        if batches and (len(batches[-1]) + 1) * rounded[row] <= tokens:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def collate(rows: Sequence[LearningRow]) -> LearningBatch:
    """Pad rows with zeros to their longest, rounded up."""
    shape = len(rows), -(-max(len(row) for row in rows) // ROUND_TOKENS) * ROUND_TOKENS
    input_ids, mask, types = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    evidence = np.full(shape, UNSAID, dtype=np.int8)
    for line, row in enumerate(rows):
        evidence[line, : len(row)] = row.evidence
        input_ids[line, : len(row)] = row.input_ids
        mask[line, : len(row)] = 1
        types[line, : len(row)] = row.token_type_ids
    start = np.array([row.start for row in rows], dtype=np.int64)
    end = np.array([row.end for row in rows], dtype=np.int64)
    return LearningBatch(input_ids, mask, types, start, end, evidence, np.array([row.answers for row in rows]))
