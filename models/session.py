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
from shardqa.models.reader import MAX_BATCH_ROWS, Batch, Row, batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_FILE = "model.onnx"

LOAD_FAULTS = (
    faults.Fail,
    faults.InvalidArgument,
    faults.InvalidGraph,
    faults.InvalidProtobuf,
    faults.NoSuchFile,
    faults.NotImplemented,
    faults.RuntimeException,
)
"""What onnxruntime raises for a file that is missing, truncated, not ONNX, or asks for what it does not have."""

Logits = tuple["NDArray[np.float32]", "NDArray[np.float32]"]
"""Start and end logits of one row, float32 [n] each, or of a batch, float32 [rows, n] each."""


def open_session(folder: Path, threads: int) -> onnxruntime.InferenceSession:
    """Load ``model.onnx`` of a folder; raises BadModel when it is missing or not a model."""
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
        """Load ``model.onnx`` of the folder; raises BadModel when it is missing or not a model."""
        self._session = open_session(Path(folder), threads)

    @classmethod
    def of(cls, session: onnxruntime.InferenceSession) -> ReaderSession:
        """Wraps a network that is open already."""
        made = cls.__new__(cls)
        made._session = session
        return made

    def logits(self, batch: Batch) -> Logits:
        """Start and end logits of a batch, float32 [rows, tokens] each; padding's logits mean nothing."""
        start, end = self._session.run(["start_logits", "end_logits"], batch.feeds())
        return start, end

    def read(self, rows: Sequence[Row], max_rows: int = MAX_BATCH_ROWS) -> list[Logits]:
        """Start and end logits of each row, in the order given, without padding; ``max_rows`` share a batch."""
        logits: list[Logits | None] = [None] * len(rows)
        for batch in batches(rows, max_rows):
            starts, ends = self.logits(batch)
            for line, number in enumerate(batch.rows):
                length = len(rows[number])
                logits[number] = starts[line, :length], ends[line, :length]
        return [logits for logits in logits if logits is not None]
