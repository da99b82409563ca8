"""Runs a split reader's two networks in this process: the lower one for each part, the upper one for both together.

What the lower network says of a passage, its states, is the same for every question. Whoever keeps states pays for the
upper network alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime

from shardqa.errors import BadModel
from shardqa.models.reader import MAX_BATCH_ROWS, Row, batches
from shardqa.models.session import LOAD_FAULTS, Logits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    States = NDArray[np.float32]
    """What the lower network says of one part, float32 [tokens, hidden size]."""

LOWER_FILE, UPPER_FILE = "lower.onnx", "upper.onnx"

SPLIT_AT = "shardqa.split_at"
"""Metadata of a split reader in one piece: the name of what its lower layers give, float32 [batch, tokens, hidden].

Who writes it says that tokens with token_type_ids 0 and 1 know nothing of each other there.
"""

STATES = "states"
"""The lower network's output."""

QUESTION_STATES, PASSAGE_STATES = "question_states", "passage_states"
"""Inputs of the upper network."""

LARGEST = 127
"""The largest of a token's states in int8."""


def open_network(model: Path | bytes, threads: int) -> onnxruntime.InferenceSession:
    """A session of an ONNX file or of its content; raises BadModel when it is missing or not a model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    what = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(what, options, providers=["CPUExecutionProvider"])
    except LOAD_FAULTS as error:
        named = "the network" if isinstance(model, bytes) else str(model)
        raise BadModel(f"{named} can't be loaded: {error}; export or quantize the split reader again") from None


class SplitSession:
    """Both networks of a split reader; may be called from several threads."""

    def __init__(self, lower: Path | bytes, upper: Path | bytes, threads: int = 1) -> None:
        """Raises BadModel when either is missing or not a model."""
        self._lower, self._upper = open_network(lower, threads), open_network(upper, threads)

    @classmethod
    def load(cls, folder: Path, threads: int = 1) -> SplitSession:
        """The networks of a folder; raises BadModel when it has none."""
        return cls(folder / LOWER_FILE, folder / UPPER_FILE, threads)

    def states(self, parts: Sequence[Row], max_rows: int = MAX_BATCH_ROWS) -> list[States]:
        """What the lower network says of each part of `parts_of`, in the order given."""
        found: dict[int, States] = {}
        for batch in batches(parts, max_rows):
            (states,) = self._lower.run([STATES], batch.feeds())
            for line, number in enumerate(batch.rows):
                found[number] = states[line, : len(parts[number])]
        return [found[number] for number in range(len(parts))]

    def logits(self, questions: Sequence[States], passages: Sequence[States]) -> list[Logits]:
        """Start and end logits of each pair as one row, without padding; all pairs are one batch."""
        question, passage = _padded(questions), _padded(passages)
        width = question.shape[1]
        mask = np.zeros((len(questions), width + passage.shape[1]), np.int64)
        for line, (asked, read) in enumerate(zip(questions, passages, strict=True)):
            mask[line, : len(asked)] = 1
            mask[line, width : width + len(read)] = 1
        feeds = {QUESTION_STATES: question, PASSAGE_STATES: passage, "attention_mask": mask}
        starts, ends = self._upper.run(["start_logits", "end_logits"], feeds)
        return [(start[seen], end[seen]) for start, end, seen in zip(starts, ends, mask == 1, strict=True)]

    def read(self, rows: Sequence[Row], max_rows: int = MAX_BATCH_ROWS) -> list[Logits]:
        """Start and end logits of each row, as `ReaderSession.read`."""
        pairs = [parts_of(row) for row in rows]
        questions = self.states([question for question, _ in pairs], max_rows)
        return self.read_kept(rows, questions, self.states([passage for _, passage in pairs], max_rows), max_rows)

    def read_kept(
        self,
        rows: Sequence[Row],
        questions: Sequence[States],
        passages: Sequence[States],
        max_rows: int = MAX_BATCH_ROWS,
    ) -> list[Logits]:
        """The same with the parts' states at hand, in the rows' order."""
        found: dict[int, Logits] = {}
        for batch in batches(rows, max_rows):
            members = batch.rows
            told = self.logits([questions[row] for row in members], [passages[row] for row in members])
            found.update(zip(members, told, strict=True))
        return [found[number] for number in range(len(rows))]


def parts_of(row: Row) -> tuple[Row, Row]:
    """The question with its [CLS] and [SEP], and the passage with its [SEP], each as the lower network takes it."""
    first = row.passage.start
    nothing = slice(0, 0)
    return (
        Row(row.input_ids[:first], row.token_type_ids[:first], nothing),
        Row(row.input_ids[first:], row.token_type_ids[first:], nothing),
    )


def packed(states: States) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """States in a quarter of the bytes: int8 [tokens, hidden size], and float32 [tokens, 1] to multiply them by."""
    largest = np.abs(states).max(axis=1, keepdims=True)
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(LARGEST))
    return np.round(states / scale).astype(np.int8), scale


def unpacked(steps: NDArray[np.int8], scale: NDArray[np.float32]) -> States:
    """`packed`'s other half, to within half a step of each token."""
    return steps * scale


def _padded(parts: Sequence[States]) -> NDArray[np.float32]:
    shape = len(parts), max(len(part) for part in parts), parts[0].shape[1]
    found = np.zeros(shape, np.float32)
    for line, part in enumerate(parts):
        found[line, : len(part)] = part
    return found
