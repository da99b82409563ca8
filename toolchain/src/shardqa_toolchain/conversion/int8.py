"""Tables and products in int8: how they are stored and computed.

Every weight matrix is stored in int8 with one scale per output column, the word table with one per row. The products
run as plain int8 products. The scale of the activations comes from each token's own largest activation, so that nothing
in a row depends on the row beside it. onnxruntime's usual dynamic quantization takes one range for the whole batch
instead; that costs 1.1 to 1.5 F1 and makes an answer depend on what it happened to be batched with. Ranges fixed by
data make fewer operations and twice the error.

A few inputs of the products that follow a normalisation are ten times as large as the others: they are evened out, an
input divided by what the weight's row is multiplied by (Xiao et al. 2023, SmoothQuant, equation 4 with alpha 0.5). The
narrowing half of the feed-forward sums over many activations of which a few are large: there every group of 384 inputs
has a scale per token of its own, and what GELU gives is lifted above zero, so that the little below zero does not take
half of the steps.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from shardqa_toolchain.conversion.builder import CONTRIB, GraphBuilder

TABLE_STEPS = 127  # steps each side of zero in a table's int8

# Steps each side of zero in a product's int8 weights: the most with which sums are exact on every processor. Before
# VNNI, x86-64 adds two products in 16 bits and saturates (vpmaddubsw); 2 * 255 * 64 fits. With 100 a tenth of the
# largest sums are wrong there (`tests/unit/models/test_processors.py`). uint8 weights are exact as well, but a quarter
# slower.
COLUMN_STEPS = 64

GELU_FLOOR = 0.17  # GELU gives more than minus this (its least is -0.16997), so that what is lifted by it is above zero

GROUP_INPUTS = 384  # inputs that share a scale per token in a product named SENSITIVE

SENSITIVE = "narrow"  # products whose names end so have their inputs in groups

# Products whose names end so are made of what a normalisation gives. Evening out the inputs of the others, which are of
# a size already, gains nothing.
EVENED = ("qkv", "widen")

# Bounds a factor's logarithm: the rows that inputs were measured on may have left one asleep.
MOST_EVENING = math.log(100)

DAMPING = 0.01  # of the mean of the moments' diagonal, added to it: rows measured on are not all there are

LEAST = 1e-30  # stands for the largest activation of a token whose activations are all zero


@dataclass(frozen=True, slots=True)
class _Steps:
    """The step and the zero with which activations become uint8."""

    name: str
    scale: float  # of activations whose largest is 1
    zero: int  # what stands for zero
    signed: bool

    def largest(self, graph: GraphBuilder, name: str, value: str) -> str:
        """Each token's largest activation."""
        if not self.signed:
            return graph.node("ReduceMax", [value], f"{name}.largest", axes=[-1])
        size = graph.node("Abs", [value], f"{name}.abs")
        least = graph.constant("least", np.array(LEAST, dtype=np.float32))
        return graph.node("Max", [graph.node("ReduceMax", [size], f"{name}.top", axes=[-1]), least], f"{name}.largest")

    def constants(self, graph: GraphBuilder) -> tuple[str, str]:
        """Names of scale and zero."""
        scale = graph.constant(f"{self.name}.scale", np.array(self.scale, dtype=np.float32))
        return scale, graph.constant(f"{self.name}.zero", np.array(self.zero, dtype=np.uint8))


SIGNED, POSITIVE = _Steps("unit", 1 / 127, 128, signed=True), _Steps("positive", 1 / 255, 0, signed=False)


@dataclass(frozen=True, slots=True)
class _Columns:
    """A product's weight: int8 with a scale per column."""

    steps: NDArray[np.float32]
    scale: NDArray[np.float32]  # [1, columns]

    @classmethod
    def of(cls, weight: NDArray[np.float32], moments: NDArray[np.float64] | None = None) -> Self:
        """Rounds a weight; with the ``moments`` of its inputs, rounding errors make up for one another."""
        steps, scale = quantized(weight, axis=0, steps=COLUMN_STEPS)
        return cls(steps if moments is None else compensated(weight, scale, moments), scale)

    @property
    def sums(self) -> NDArray[np.float32]:
        """Returns the sum of each column, as it is stored."""
        return np.asarray(self.steps.sum(axis=0) * self.scale[0])


@dataclass(frozen=True, slots=True)
class TokenLayers:
    """A scale per token, for the sensitive products one per token and group of inputs."""

    # How large each input of a product gets, about: float32 [inputs]. What is not named is not evened out.
    largest: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    # Sums of products of each two inputs of a product: float64 [inputs, inputs]. Where none are, weights are rounded.
    moments: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    group_inputs: int = GROUP_INPUTS  # about so many inputs share a scale

    def lookup(self, graph: GraphBuilder, name: str, table: NDArray[np.float32], index: str) -> str:
        steps, scale = quantized(table, axis=1, steps=TABLE_STEPS)
        rows = graph.node("Gather", [graph.constant(f"{name}.table", steps.astype(np.int8)), index], f"{name}.steps")
        scales = graph.node("Gather", [graph.constant(f"{name}.scale", scale), index], f"{name}.scales")
        floats = graph.node("Cast", [rows], f"{name}.float", to=TensorProto.FLOAT)
        return graph.node("Mul", [floats, scales], name)

    def product(self, graph: GraphBuilder, name: str, value: str, weight: NDArray[np.float32]) -> str:
        if name.endswith(SENSITIVE):
            return self._lifted_product(graph, name, value, weight)
        moments = self.moments.get(name)
        if name.endswith(EVENED) and name in self.largest:
            factors = evening(self.largest[name], weight)
            value = graph.node("Mul", [value, graph.constant(f"{name}.even", 1 / factors)], f"{name}.evened")
            weight = weight * factors[:, None]
            moments = None if moments is None else moments / np.outer(factors, factors)
        return _token_product(graph, name, value, _Columns.of(weight, moments), SIGNED)

    def _lifted_product(self, graph: GraphBuilder, name: str, value: str, weight: NDArray[np.float32]) -> str:
        """Returns the product of a weight and what GELU gives, in groups of inputs with a scale each."""
        groups = max(1, round(len(weight) / self.group_inputs))
        lift = graph.constant("gelu.floor", np.array(GELU_FLOOR, dtype=np.float32))
        sum_of_both = graph.node("Add", [value, lift], f"{name}.lifted")
        moments = self.moments.get(name)
        places = np.array_split(np.arange(len(weight)), groups)
        columns = [_Columns.of(weight[own], None if moments is None else moments[np.ix_(own, own)]) for own in places]
        names = [f"{name}.{number}" for number in range(groups)]
        values = graph.split(sum_of_both, [f"{one}.inputs" for one in names], [len(one.steps) for one in columns])
        products = [_token_product(graph, *one, POSITIVE) for one in zip(names, values, columns, strict=True)]
        offset = np.stack([one.sums for one in columns]).sum(axis=0) * np.float32(-GELU_FLOOR)
        return graph.node("Sum", [*products, graph.constant(f"{name}.added", offset)], name)


def compensated(
    weight: NDArray[np.float32], scale: NDArray[np.float32], moments: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Returns whole steps of a weight [inputs, columns], each input's error made up for by those after it.

    Frantar et al. 2023, GPTQ, algorithm 1, the inputs that vary most first. A network that was trained on from an int8
    one differs from it by less than a step: rounded to the nearest, most of what it learnt would be lost.
    """
    order = np.argsort(-np.diag(moments), kind="stable")
    regular = moments[np.ix_(order, order)] + np.eye(len(order)) * (DAMPING * np.diag(moments).mean() + LEAST)
    spread = np.linalg.cholesky(np.linalg.inv(regular)).T
    rest, steps = weight[order].astype(np.float64), np.zeros(weight.shape, np.float32)
    for n, own in enumerate(order):
        steps[own] = np.clip(np.round(rest[n] / scale[0]), -COLUMN_STEPS, COLUMN_STEPS)
        rest[n + 1 :] -= np.outer(spread[n, n + 1 :], (rest[n] - steps[own] * scale[0]) / spread[n, n])
    return steps


def evening(largest: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the factors that divide each input and multiply its row of the weight, so that both get as large.

    They are float32 [inputs], about 1 in the geometric mean. What never shows, or counts for nothing, stays as it is.
    """
    rows = np.abs(weight).max(axis=1)
    is_used = (largest > 0) & (rows > 0)
    if not is_used.any():
        return np.ones_like(largest)
    powers = np.zeros_like(largest)
    powers[is_used] = (np.log(largest[is_used]) - np.log(rows[is_used])) / 2
    powers[is_used] -= powers[is_used].mean()
    return np.exp(np.clip(powers, -MOST_EVENING, MOST_EVENING))


def _token_product(graph: GraphBuilder, name: str, value: str, columns: _Columns, kind: _Steps) -> str:
    """Returns the product with one scale per token of the value and one per column of the weight."""
    scale, zero = kind.constants(graph)
    largest = kind.largest(graph, name, value)
    unit = graph.node("Div", [value, largest], f"{name}.unit")
    steps = graph.node("QuantizeLinear", [unit, scale, zero], f"{name}.steps")
    raw = _int8_product(graph, name, f"{name}.raw", steps, scale, zero, columns)
    return graph.node("Mul", [raw, largest], name)


def _int8_product(
    graph: GraphBuilder, name: str, output: str, steps: str, scale: str, zero: str, columns: _Columns
) -> str:
    """Multiplies uint8 steps, with their scale and zero, by int8 columns with a scale each."""
    inputs = [
        steps,
        graph.constant(f"{name}.weight", columns.steps.astype(np.int8)),
        scale,
        graph.constant(f"{name}.scale", columns.scale[0]),
        zero,
        graph.constant("column.zero", np.array(0, dtype=np.int8)),
    ]
    return graph.node("MatMulIntegerToFloat", inputs, output, CONTRIB)


def quantized(values: NDArray[np.float32], axis: int, steps: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Whole steps within +-steps, and the scale (axis kept, length 1) so that steps * scale is about the values."""
    largest = np.abs(values).max(axis=axis, keepdims=True)
    least = np.finfo(np.float32).tiny  # below, a scale has too few digits: the steps would go beyond their ends
    scale = np.where(largest == 0, np.float32(1), np.maximum(largest / np.float32(steps), least))
    return np.round(values / scale), scale
