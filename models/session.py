"""Runs the reader's network in this process, for evaluations and benchmarks.

On a shard the worker runs the network instead; there is one session per process here, and no batching of strangers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as faults

from shardqa.errors import BadModel
from shardqa.machine import release_freed
from shardqa.models.reader import END, MAX_BATCH_ROWS, START, Batch, Row, RowLogits, batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_FILE = "model.onnx"

LOAD_FAULTS = (
    *(faults.Fail, faults.InvalidArgument, faults.InvalidGraph, faults.InvalidProtobuf, faults.NoSuchFile),
    *(faults.NotImplemented, faults.RuntimeException),
)
"""What onnxruntime raises for a file that is missing, truncated, not ONNX, or asks for what it does not have."""

Logits = tuple["NDArray[np.float32]", "NDArray[np.float32]"]
"""Start and end logits of one row, float32 [n] each, or of a batch, float32 [rows, n] each."""


def open_session(folder: Path, threads: int) -> onnxruntime.InferenceSession:
    """Loads ``model.onnx`` of a folder; raises BadModel when it is missing or not a model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    path = folder / MODEL_FILE
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except LOAD_FAULTS as error:
        raise BadModel(f"{path} can't be loaded: {error}; export or quantize it again") from None
    release_freed()
    return session


class ReaderSession:
    """An onnxruntime session over a reader's folder; may be called from several threads."""

    def __init__(self, folder: Path | str, threads: int = 1) -> None:
        """Loads ``model.onnx`` of the folder; raises BadModel when it is missing or not a model."""
        self._session = open_session(Path(folder), threads)

    @classmethod
    def of(cls, session: onnxruntime.InferenceSession) -> ReaderSession:
        """Wraps a network that is open already."""
        own = cls.__new__(cls)
        own._session = session
        return own

    @property
    def _outputs(self) -> list[str]:
        return [one.name for one in self._session.get_outputs()]

    def logits(self, batch: Batch) -> Logits:
        """Returns the start and end logits of a batch, float32 [rows, tokens] each; padding's logits mean nothing."""
        start, end = self._session.run([START, END], batch.feeds())
        return start, end

    def read(self, rows: Sequence[Row], max_rows: int = MAX_BATCH_ROWS) -> list[Logits]:
        """Returns start and end logits of each row, in the order given, without padding; ``max_rows`` share a batch."""
        return [(one.start, one.end) for one in self.read_all(rows, max_rows)]

    def read_all(self, rows: Sequence[Row], max_rows: int = MAX_BATCH_ROWS) -> list[RowLogits]:
        """Returns every logit of each row that the reader gives, in the order given."""
        logits: dict[int, RowLogits] = {}
        for batch in batches(rows, max_rows):
            outputs = dict(zip(self._outputs, self._session.run(None, batch.feeds()), strict=True))
            for line, number in enumerate(batch.rows):
                logits[number] = RowLogits.of(outputs, line, len(rows[number]))
        return [logits[number] for number in range(len(rows))]
