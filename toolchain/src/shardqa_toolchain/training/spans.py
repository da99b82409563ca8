"""The task of reading: examples into rows, and the loss of pointing at the wrong token or sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from shardqa.models.reader import Row
from shardqa_toolchain.measure import windows
from shardqa_toolchain.training.batches import UNKNOWN, UNSAID, LearningBatch, LearningRow, collate
from shardqa_toolchain.training.examples import Example
from shardqa_toolchain.training.held_out import HeldOutRow, figures
from shardqa_toolchain.training.losses import reader_logits, reader_loss
from shardqa_toolchain.training.network import SpanReader
from shardqa_toolchain.training.recipe import Data

MAX_ROW = 320  # tokens of a row in training; 2 % of SQuAD's paragraphs are longer and are read in windows

# Wordpieces that a crop leaves on each side of the answer, as far as there are so many: what tells that it is one.
CROP_MARGIN = 24


def learning_rows(example: Example, max_tokens: int = MAX_ROW) -> list[LearningRow]:
    """Returns the rows of one example; a window that does not hold the whole answer says "not here", at [CLS]."""
    return [_learning_row(example, *window) for window in windows(example.question, example.passage, max_tokens)]


def _learning_row(example: Example, first: int, row: Row) -> LearningRow:
    inside = row.passage
    evidence = np.full(len(row), UNSAID, dtype=np.int8)
    evidence[inside] = example.evidence[first : first + inside.stop - inside.start]
    start = end = 0
    if not example.has_span and (evidence == 1).any():
        start = end = UNKNOWN
    if example.answer is not None:
        begins, ends = (piece - first + inside.start for piece in example.answer)
        if inside.start <= begins and ends < inside.stop:
            start, end = begins, ends
        else:
            evidence[evidence == 1] = UNSAID  # a part of the answer's sentence at most
    return LearningRow(row.input_ids, row.token_type_ids, start, end, evidence)


def crop(row: LearningRow, random: np.random.Generator) -> LearningRow:
    """Returns the row with a piece of its passage, cut anywhere around the answer, or around a sentence that answers.

    A row without either is cut around a place drawn at random, so that its length does not give it away.
    """
    first, last = int(row.token_type_ids.argmax()), len(row) - 2
    if last < first:
        return row
    core = _held(row, first, last, random)
    begins = int(random.integers(first, max(first, core[0] - CROP_MARGIN) + 1))
    ends = int(random.integers(min(last, core[1] + CROP_MARGIN), last + 1))
    places = np.r_[:first, begins : ends + 1, last + 1]
    shift = begins - first if row.start > 0 else 0
    return LearningRow(
        row.input_ids[places], row.token_type_ids[places], row.start - shift, row.end - shift, row.evidence[places]
    )


def _held(row: LearningRow, first: int, last: int, random: np.random.Generator) -> tuple[int, int]:
    """The first and last token that a crop holds."""
    if row.start > 0:
        return row.start, row.end
    if row.answers:
        edges = np.flatnonzero(np.diff(row.evidence == 1, prepend=False, append=False)).reshape(-1, 2)
        begins, ends = edges[random.integers(len(edges))].tolist()
        return begins, ends - 1
    return (int(random.integers(first, last + 1)),) * 2


@dataclass(slots=True)
class SpanTask:
    """Learn spans from examples and from a part of the hard negatives; what is drawn is drawn anew each pass."""

    network: SpanReader
    rows: list[LearningRow]
    negatives: list[LearningRow]
    data: Data  # how many of the negatives a pass sees, and of what else it sees less
    seed: int
    held_out: list[HeldOutRow]
    _drawn: dict[int, list[LearningRow]] = field(default_factory=dict, init=False, kw_only=True)

    @property
    def trained(self) -> nn.Module:
        return self.network

    def lengths(self, passed: int) -> Sequence[int]:
        return [len(row) for row in self._pass(passed)]

    def loss(self, passed: int, rows: Sequence[int], device: torch.device) -> Tensor:
        examples = self._pass(passed)
        return self.batch_loss(collate([examples[row] for row in rows]), device)

    def batch_loss(self, batch: LearningBatch, device: torch.device) -> Tensor:
        return reader_loss(reader_logits(self.network, batch, device), batch, device)

    def held_out_figures(self, device: torch.device) -> dict[str, float]:
        return figures(self.network, self.held_out, device)

    def _pass(self, passed: int) -> list[LearningRow]:
        if passed not in self._drawn:
            random = np.random.default_rng((self.seed, passed, len(self.negatives)))
            sample = random.permutation(len(self.negatives))[: round(self.data.negatives * len(self.negatives))]
            rows = self.rows + [self.negatives[row] for row in sorted(sample.tolist())]
            cut = random.random(len(rows)) < self.data.crops
            self._drawn = {passed: [crop(row, random) if one else row for row, one in zip(rows, cut, strict=True)]}
        return self._drawn[passed]
