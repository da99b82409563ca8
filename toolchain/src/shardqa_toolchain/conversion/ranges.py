"""Sizes of activations, which int8 has to know, measured on data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from shardqa.models.reader import Row, batches
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.graph import FloatLayers, network
from shardqa_toolchain.conversion.probes import Probe, probe


@dataclass(frozen=True, slots=True)
class InputSizes:
    """What the inputs of each product are like, by its name."""

    largest: dict[str, NDArray[np.float32]]  # [inputs]: the largest that each gets
    moments: dict[str, NDArray[np.float64]]  # [inputs, inputs]: sums of products of each two
    rows: str  # on which rows


def measure_inputs(checkpoint: Checkpoint) -> InputSizes:
    """Runs the network on what `probes.probe` takes without a file: questions of ``seeds/``, else random wordpieces."""
    sample = _probe(checkpoint)
    found = InputSizes({}, {}, sample.inputs)
    for name, value in _observed(_observer(checkpoint), sample.rows):
        highest, inputs = np.abs(value).max(axis=(0, 1)), value[0].astype(np.float64)
        if name in found.moments:
            np.maximum(found.largest[name], highest, out=found.largest[name])
            found.moments[name] += inputs.T @ inputs
        else:
            found.largest[name], found.moments[name] = highest, inputs.T @ inputs
    return found


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
