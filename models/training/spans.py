"""The task of reading: examples into rows, and the loss of pointing at the wrong token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shardqa.models.measure import windows
from shardqa.models.training.batches import LearningBatch, LearningRow, collate, plan
from shardqa.models.training.examples import Example
from shardqa.models.training.network import MASKED, SpanReader

MAX_ROW = 320
"""Tokens of a row in training; 2 % of SQuAD's paragraphs are longer and are read in windows."""

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


@dataclass(slots=True)
class SpanTask:
    """Learn spans from examples, and from a part of the hard negatives, drawn anew each pass."""

    network: SpanReader
    rows: list[LearningRow]
    negatives: list[LearningRow]
    share: float
    """Of the negatives that a pass sees."""
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
            chosen = random.permutation(len(self.negatives))[: round(self.share * len(self.negatives))]
            self._drawn = {passed: self.rows + [self.negatives[row] for row in sorted(chosen.tolist())]}
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
