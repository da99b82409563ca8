"""From a fine-tuned checkpoint to the int8 reader that is shipped.

    python -m shardqa.models.conversion.quantise --source ../shared/models/reader-v0 --out /tmp/reader-v0-int8

Every weight matrix is stored in int8, the word table with one scale per row. The products differ:

* query/key/value, attention output and the widening half of the feed-forward run as plain int8 products: a scale per
  output column, and a scale per token, taken from the token's own largest activation. onnxruntime's usual dynamic
  quantisation takes one range for the whole batch instead; that costs 1.1 to 1.5 F1 and makes an answer depend on
  what it happened to be batched with.
* the narrowing half of the feed-forward sums over 1,536 activations of which a few are large; there every block of 64
  has its own scale (MatMulNBits), slower and nearly exact.

No calibration data is needed, and nothing in a row depends on the row beside it. Measured and rejected: static ranges
(with and without smoothing: logits four to seven times as far off), MatMulNBits everywhere (a third slower, gains
0.03 in the logits' root mean square error), uint8 weights (twice as slow), weights only (as slow as float32).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from onnx import TensorProto

from shardqa.models.conversion.checkpoint import Checkpoint
from shardqa.models.conversion.export import write_reader
from shardqa.models.conversion.graph import CONTRIB, Graph, bert_reader

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE_STEPS = 127
"""Steps each side of zero in a table's int8."""

COLUMN_STEPS = 100
"""Steps each side of zero in a product's int8 weights. Before VNNI, x86-64 adds two products in 16 bits and saturates
(vpmaddubsw); keeping weights to 100 makes that rare, where 127 would double the error on such processors."""

TOKEN_STEPS, TOKEN_ZERO = 127, 128
"""Steps each side of zero in an activation's uint8, and what stands for zero there."""

BLOCK = 64
"""Weights that share a scale in MatMulNBits. 32 is no better and adds 0.7 MB, 128 is a fifth worse and no faster."""

BLOCK_STEPS, BLOCK_ZERO = 127, 128
"""As above, for MatMulNBits' uint8 weights, whose zero is fixed."""

INT8_COMPUTE = 4
"""MatMulNBits' accuracy_level that quantises activations, too, per row and block."""

SENSITIVE = "narrow"
"""Products whose names end so are computed in blocks."""


class Int8Layers:
    """Tables and products in int8; see the head of this file for which way and why."""

    def lookup(self, graph: Graph, name: str, table: NDArray[np.float32], index: str) -> str:
        steps, scale = _quantised(table, axis=1, steps=TABLE_STEPS)
        rows = graph.node("Gather", [graph.constant(f"{name}.table", steps.astype(np.int8)), index], f"{name}.steps")
        scales = graph.node("Gather", [graph.constant(f"{name}.scale", scale), index], f"{name}.scales")
        floats = graph.node("Cast", [rows], f"{name}.float", to=TensorProto.FLOAT)
        return graph.node("Mul", [floats, scales], name)

    def product(self, graph: Graph, name: str, value: str, weight: NDArray[np.float32]) -> str:
        if name.endswith(SENSITIVE):
            return _block_product(graph, name, value, weight)
        return _token_product(graph, name, value, weight)


def _token_product(graph: Graph, name: str, value: str, weight: NDArray[np.float32]) -> str:
    """One scale per token of the value and one per column of the weight."""
    steps, scale = _quantised(weight, axis=0, steps=COLUMN_STEPS)
    unit_scale = graph.constant("unit.scale", np.array(1 / TOKEN_STEPS, dtype=np.float32))
    unit_zero = graph.constant("unit.zero", np.array(TOKEN_ZERO, dtype=np.uint8))
    column_zero = graph.constant("column.zero", np.array(0, dtype=np.int8))
    # A token's activations come out of layer norms and softmax averages of them: never all zero, so Div is safe.
    largest = graph.node("ReduceMax", [graph.node("Abs", [value], f"{name}.abs")], f"{name}.largest", axes=[-1])
    unit = graph.node("Div", [value, largest], f"{name}.unit")
    quantised = graph.node("QuantizeLinear", [unit, unit_scale, unit_zero], f"{name}.steps")
    columns = [graph.constant(f"{name}.weight", steps.astype(np.int8)), graph.constant(f"{name}.scale", scale[0])]
    raw = graph.node(
        "MatMulIntegerToFloat",
        [quantised, columns[0], unit_scale, columns[1], unit_zero, column_zero],
        f"{name}.raw",
        CONTRIB,
    )
    return graph.node("Mul", [raw, largest], name)


def _block_product(graph: Graph, name: str, value: str, weight: NDArray[np.float32]) -> str:
    """One scale per block of inputs and column, for the weight and, inside the operator, for the value."""
    inputs, outputs = weight.shape
    blocks = weight.T.reshape(outputs, inputs // BLOCK, BLOCK)
    steps, scale = _quantised(blocks, axis=2, steps=BLOCK_STEPS)
    return graph.node(
        "MatMulNBits",
        [
            value,
            graph.constant(f"{name}.weight", (steps + BLOCK_ZERO).astype(np.uint8)),
            graph.constant(f"{name}.scale", scale[..., 0]),
        ],
        name,
        CONTRIB,
        K=inputs,
        N=outputs,
        bits=8,
        block_size=BLOCK,
        accuracy_level=INT8_COMPUTE,
    )


def _quantised(values: NDArray[np.float32], axis: int, steps: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Whole steps within +-steps, and the scale (axis kept, length 1) so that steps * scale is about the values."""
    largest = np.abs(values).max(axis=axis, keepdims=True)
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(steps)).astype(np.float32)
    return np.round(values / scale), scale


def quantise(
    source: Annotated[Path, typer.Option(help="Folder of the checkpoint.")],
    out: Annotated[Path, typer.Option(help="Folder to write the reader to.")],
) -> None:
    """Quantise a checkpoint to int8 and write it as ONNX.

    Example: python -m shardqa.models.conversion.quantise --source ../shared/models/reader-v0 --out /tmp/reader-v0-int8
    """
    checkpoint = Checkpoint.load(source)
    write_reader(checkpoint, bert_reader(checkpoint.weights, checkpoint.shape, Int8Layers()), out)


if __name__ == "__main__":
    typer.run(quantise)
