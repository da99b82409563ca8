"""Sizes of activations, which int8 has to know, measured on data."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from shardqa.models.reader import Row, batches
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.graph import FloatLayers, network
from shardqa_toolchain.conversion.probes import Probe, probe


def measure_moments(checkpoint: Checkpoint) -> dict[str, NDArray[np.float64]]:
    """Sums of products of each two inputs of each product, float64 [inputs, inputs], on `measure_largest`'s rows."""
    moments: dict[str, NDArray[np.float64]] = {}
    for name, value in _observed(_observer(checkpoint), _probe(checkpoint).rows):
        inputs = value[0].astype(np.float64)
        moments[name] = moments.get(name, 0.0) + inputs.T @ inputs
    return moments


def measure_largest(checkpoint: Checkpoint) -> tuple[dict[str, NDArray[np.float32]], str]:
    """The largest that each input of each product gets, float32 [inputs], and on which rows.

    These are what `probes.probe` takes without a file: questions of ``seeds/``, else random wordpieces.
    """
    sample = _probe(checkpoint)
    session = _observer(checkpoint)
    largest: dict[str, NDArray[np.float32]] = {}
    for name, value in _observed(session, sample.rows):
        highest = np.abs(value).max(axis=(0, 1))
        largest[name] = np.maximum(largest.get(name, highest), highest)
    return largest, sample.inputs


def probe_rows(checkpoint: Checkpoint) -> Sequence[Row]:
    """Returns the rows on which a checkpoint's network is looked at."""
    return _probe(checkpoint).rows


def _probe(checkpoint: Checkpoint) -> Probe:
    positions = len(checkpoint.weights["bert.embeddings.position_embeddings.weight"])
    vocabulary = len(checkpoint.weights["bert.embeddings.word_embeddings.weight"])
    tokenizer = checkpoint.folder / TOKENIZER_FILE
    return probe(tokenizer if tokenizer.exists() else None, vocabulary, positions, None, None)


def _observer(checkpoint: Checkpoint) -> onnxruntime.InferenceSession:
    model = network(checkpoint.weights, checkpoint.shape, FloatLayers(), [], observe=True)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def _observed(session: onnxruntime.InferenceSession, rows: Sequence[Row]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yields each product's name and what it is made of, float32 [1, tokens, inputs], row by row."""
    names = [output.name for output in session.get_outputs() if output.name.startswith("?")]
    for batch in batches(rows, max_rows=1):
        for name, value in zip(names, session.run(names, batch.feeds()), strict=True):
            yield name[1:], value
