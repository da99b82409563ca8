"""The task of reading: examples into rows, and the loss of pointing at the wrong token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shardqa.models.reader import CLS, MASK, SEP
from shardqa.models.toolchain.measure import windows
from shardqa.models.toolchain.training.batches import LearningBatch, LearningRow, collate, plan
from shardqa.models.toolchain.training.examples import Example
from shardqa.models.toolchain.training.network import MASKED, SpanReader
from shardqa.models.toolchain.training.recipe import Data

MAX_ROW = 320
"""Tokens of a row in training; 2 % of SQuAD's paragraphs are longer and are read in windows."""

CROP_MARGIN = 24
"""Wordpieces that a crop leaves on each side of the answer, as far as there are so many: what tells that it is one."""

HELD_OUT_TOKENS = 8192
"""Of a batch in which the held-out loss is computed."""


def learning_rows(example: Example, max_tokens: int = MAX_ROW) -> list[LearningRow]:
    """The rows of one example; a window that does not hold the whole answer says "not here", at [CLS]."""
    rows = []
    for first, row in windows(example.question, example.passage, max_tokens):
        start = end = 0
        if example.answer is not None:
            begins, ends = (piece - first + row.passage.start for piece in example.answer)
            if row.passage.start <= begins and ends < row.passage.stop:
                start, end = begins, ends
        rows.append(LearningRow(row.input_ids, row.token_type_ids, start, end))
    return rows


def crop(row: LearningRow, random: np.random.Generator) -> LearningRow:
    """The row with a piece of its passage, cut anywhere around the answer.

    A row without one is cut around a place drawn at random, so that its length does not give it away.
    """
    first, last = int(row.token_type_ids.argmax()), len(row) - 2
    if last < first:
        return row
    held = (row.start, row.end) if row.start else (int(random.integers(first, last + 1)),) * 2
    begins = int(random.integers(first, max(first, held[0] - CROP_MARGIN) + 1))
    ends = int(random.integers(min(last, held[1] + CROP_MARGIN), last + 1))
    kept = np.r_[:first, begins : ends + 1, last + 1]
    shift = begins - first if row.start else 0
    return LearningRow(row.input_ids[kept], row.token_type_ids[kept], row.start - shift, row.end - shift)


def blank(row: LearningRow, share: float, random: np.random.Generator) -> LearningRow:
    """The row with [MASK], which BERTs know from pretraining, in place of so many of its wordpieces; markers stay."""
    hidden = (random.random(len(row)) < share) & (row.input_ids != CLS) & (row.input_ids != SEP)
    return LearningRow(np.where(hidden, MASK, row.input_ids), row.token_type_ids, row.start, row.end)


@dataclass(slots=True)
class SpanTask:
    """Learn spans from examples and from a part of the hard negatives; what is drawn is drawn anew each pass."""

    network: SpanReader
    rows: list[LearningRow]
    negatives: list[LearningRow]
    data: Data
    """How many of the negatives a pass sees, and of what else it sees less."""
    seed: int
    held_out: list[LearningRow]
    _drawn: dict[int, list[LearningRow]] = field(default_factory=dict, init=False, kw_only=True)

    @property
    def trained(self) -> nn.Module:
        return self.network

    def lengths(self, passed: int) -> Sequence[int]:
        return [len(row) for row in self._pass(passed)]

    def loss(self, passed: int, rows: Sequence[int], device: torch.device) -> Tensor:
        drawn = self._pass(passed)
        return self.batch_loss(collate([drawn[row] for row in rows]), device)

    def batch_loss(self, batch: LearningBatch, device: torch.device) -> Tensor:
        logits = span_logits(self.network, batch, device)
        return span_loss(logits, batch, device)

    def held_out_loss(self, device: torch.device) -> float | None:
        if not self.held_out:
            return None
        total = 0.0
        for members in plan([len(row) for row in self.held_out], HELD_OUT_TOKENS, 0, 0):
            batch = collate([self.held_out[row] for row in members])
            total += len(members) * float(span_loss(span_logits(self.network, batch, device), batch, device))
        return total / len(self.held_out)

    def _pass(self, passed: int) -> list[LearningRow]:
        if passed not in self._drawn:
            random = np.random.default_rng((self.seed, passed, len(self.negatives)))
            chosen = random.permutation(len(self.negatives))[: round(self.data.negatives * len(self.negatives))]
            rows = self.rows + [self.negatives[row] for row in sorted(chosen.tolist())]
            cut = random.random(len(rows)) < self.data.crops
            rows = [crop(row, random) if one else row for row, one in zip(rows, cut, strict=True)]
            self._drawn = {passed: [blank(row, self.data.blanks, random) for row in rows] if self.data.blanks else rows}
        return self._drawn[passed]


def span_logits(network: SpanReader, batch: LearningBatch, device: torch.device) -> Tensor:
    """Start and end logits, float32 [2, batch, tokens], those of question and padding struck out."""
    ids, mask, types = (
        torch.from_numpy(value).to(device) for value in (batch.input_ids, batch.attention_mask, batch.token_type_ids)
    )
    logits: Tensor = network(ids, mask, types).float()
    return (logits + barred(types)).permute(2, 0, 1)


def barred(types: Tensor) -> Tensor:
    """What to add to logits so that only the passage and [CLS] can be pointed at, float32 [batch, tokens, 1]."""
    struck = types == 0
    struck[:, 0] = False
    return struck[..., None] * MASKED


def span_loss(logits: Tensor, batch: LearningBatch, device: torch.device) -> Tensor:
    """Mean cross entropy of the right start and the right end (Devlin et al. 2019, section 4.2)."""
    start, end = (torch.from_numpy(value).to(device) for value in (batch.start, batch.end))
    return (functional.cross_entropy(logits[0], start) + functional.cross_entropy(logits[1], end)) / 2
