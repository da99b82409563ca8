"""int8: how tables and products are stored and computed.

Every weight matrix is stored in int8 with one scale per output column, the word table with one per row. The products
run as plain int8 products. What differs is where the scale of the activations comes from:

* `TokenLayers` takes it from each token's own largest activation, so that no calibration data is needed and nothing in
  a row depends on the row beside it. onnxruntime's usual dynamic quantisation takes one range for the whole batch
  instead; that costs 1.1 to 1.5 F1 and makes an answer depend on what it happened to be batched with. The narrowing
  half of the feed-forward sums over many activations of which a few are large: there every group of 384 inputs has a
  scale per token of its own.
* `StaticLayers` has it fixed, from ranges measured on data: fewer operations, twice the error. The narrowing half is
  left to `TokenLayers`; with a fixed range there, too, reader-v0 does not pass the check.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from shardqa.models.conversion.graph import CONTRIB, Graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE_STEPS = 127
"""Steps each side of zero in a table's int8."""

COLUMN_STEPS = 100
"""Steps each side of zero in a product's int8 weights. Before VNNI, x86-64 adds two products in 16 bits and saturates
(vpmaddubsw); keeping weights to 100 makes that rare, where 127 would double the error on such processors. With VNNI or
AMX 127 takes a fiftieth off the logits' error, not more."""

TOKEN_STEPS, TOKEN_ZERO = 127, 128
"""Steps each side of zero in an activation's uint8, and what stands for zero there."""

GROUP_INPUTS = 384
"""Inputs that share a scale per token in a product named SENSITIVE."""

SENSITIVE = "narrow"
"""Products whose names end so have their inputs in groups."""

LEAST = 1e-30
"""Stands for the largest activation of a group that is all zero, which a feed-forward's may be."""

STATIC_STEPS = 255
"""Steps of a static range, from its lower to its upper end."""


class _Tables:
    """The word table in int8, in either way."""

    def lookup(self, graph: Graph, name: str, table: NDArray[np.float32], index: str) -> str:
        steps, scale = quantised(table, axis=1, steps=TABLE_STEPS)
        rows = graph.node("Gather", [graph.constant(f"{name}.table", steps.astype(np.int8)), index], f"{name}.steps")
        scales = graph.node("Gather", [graph.constant(f"{name}.scale", scale), index], f"{name}.scales")
        floats = graph.node("Cast", [rows], f"{name}.float", to=TensorProto.FLOAT)
        return graph.node("Mul", [floats, scales], name)


@dataclass(frozen=True, slots=True)
class TokenLayers(_Tables):
    """A scale per token, for the sensitive products one per token and group of inputs."""

    group_inputs: int = GROUP_INPUTS
    """About so many inputs share a scale."""

    def product(self, graph: Graph, name: str, value: str, weight: NDArray[np.float32]) -> str:
        groups = max(1, round(len(weight) / self.group_inputs)) if name.endswith(SENSITIVE) else 1
        if groups == 1:
            return _token_product(graph, name, value, weight)
        parts = np.array_split(weight, groups)
        names = [f"{name}.{number}" for number in range(groups)]
        values = graph.split(value, [f"{one}.inputs" for one in names], [len(part) for part in parts])
        products = [_token_product(graph, *one) for one in zip(names, values, parts, strict=True)]
        return graph.node("Sum", products, name)


def _token_product(graph: Graph, name: str, value: str, weight: NDArray[np.float32]) -> str:
    """One scale per token of the value and one per column of the weight."""
    unit_scale = graph.constant("unit.scale", np.array(1 / TOKEN_STEPS, dtype=np.float32))
    unit_zero = graph.constant("unit.zero", np.array(TOKEN_ZERO, dtype=np.uint8))
    least = graph.constant("least", np.array(LEAST, dtype=np.float32))
    largest = graph.node("ReduceMax", [graph.node("Abs", [value], f"{name}.abs")], f"{name}.top", axes=[-1])
    largest = graph.node("Max", [largest, least], f"{name}.largest")
    unit = graph.node("Div", [value, largest], f"{name}.unit")
    steps = graph.node("QuantizeLinear", [unit, unit_scale, unit_zero], f"{name}.steps")
    raw = _int8_product(graph, name, f"{name}.raw", steps, unit_scale, unit_zero, weight)
    return graph.node("Mul", [raw, largest], name)


def _int8_product(
    graph: Graph, name: str, output: str, steps: str, scale: str, zero: str, weight: NDArray[np.float32]
) -> str:
    """uint8 steps with their scale and zero, times int8 columns with a scale each."""
    columns, scales = quantised(weight, axis=0, steps=COLUMN_STEPS)
    inputs = [
        steps,
        graph.constant(f"{name}.weight", columns.astype(np.int8)),
        scale,
        graph.constant(f"{name}.scale", scales[0]),
        zero,
        graph.constant("column.zero", np.array(0, dtype=np.int8)),
    ]
    return graph.node("MatMulIntegerToFloat", inputs, output, CONTRIB)


@dataclass(frozen=True, slots=True)
class Range:
    """The activations that a product is made of lie mostly between these."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class StaticLayers(_Tables):
    """A scale and a zero per product, fixed; for the sensitive products as `TokenLayers`."""

    ranges: Mapping[str, Range]
    """By product."""

    def product(self, graph: Graph, name: str, value: str, weight: NDArray[np.float32]) -> str:
        if name.endswith(SENSITIVE):
            return TokenLayers().product(graph, name, value, weight)
        unit, centre = static_scale(self.ranges[name])
        scale, zero = graph.constant(f"{name}.unit", unit), graph.constant(f"{name}.zero", centre)
        steps = graph.node("QuantizeLinear", [value, scale, zero], f"{name}.steps")
        return _int8_product(graph, name, name, steps, scale, zero, weight)


def static_scale(found: Range) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Scale and zero so that uint8 covers a range and 0 itself, which is exact."""
    low, high = min(found.low, 0.0), max(found.high, 0.0)
    scale = max((high - low) / STATIC_STEPS, LEAST)
    return np.array(scale, dtype=np.float32), np.array(round(-low / scale), dtype=np.uint8)


def quantised(values: NDArray[np.float32], axis: int, steps: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Whole steps within +-steps, and the scale (axis kept, length 1) so that steps * scale is about the values."""
    largest = np.abs(values).max(axis=axis, keepdims=True)
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(steps)).astype(np.float32)
    return np.round(values / scale), scale
