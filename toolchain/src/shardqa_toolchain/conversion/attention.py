"""Attention as ONNX nodes whose results are the same bits on every x86-64 processor with AVX2, with padding or without.

onnxruntime's MultiHeadAttention and Softmax add up the exponentials in as many lanes as the processor has, so that the
last bits differ from one kind to the next; int8 rounding makes tenths of a logit of that. Products of matrices add
along their inner axis in one order whatever the processor, so that the sum is taken by the product that weighs the
values, as one more column of ones (ReduceSum's order depends on the length, padding included). Dividing by it
afterwards takes one pass less over the weights, which makes up for the operators being several.
"""

import math

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from shardqa_toolchain.conversion.builder import GraphBuilder

MASKED = -10_000.0  # added to the attention logits of padding: e^-10000 is 0 in float32


def padding(graph: GraphBuilder, mask: str) -> str:
    """Returns what is added to the attention logits, float32 [batch, 1, 1, sequence]; ``mask`` is 0 for padding."""
    absent = graph.node("Sub", [graph.constant("one", np.array(1, np.int64)), mask], "absent")
    floats = graph.node("Cast", [absent], "absent.float", to=TensorProto.FLOAT)
    penalty = graph.node("Mul", [floats, graph.constant("masked", np.array(MASKED, np.float32))], "penalty")
    return graph.node("Unsqueeze", [penalty, graph.constant("middle", np.array([1, 2], np.int64))], "padding")


def attention(
    graph: GraphBuilder, name: str, projected: str, bias: NDArray[np.float32], padding: str, heads: int
) -> str:
    """Returns the heads' outputs side by side, [batch, sequence, heads * head size] (Vaswani et al. 2017, section 3.2).

    ``projected`` holds query, key and value without ``bias``, [batch, sequence, 3 * heads * head size].
    """
    size = len(bias) // 3 // heads
    total = graph.node("Add", [projected, graph.constant(f"{name}.qkv.bias", bias)], f"{name}.qkv.biased")
    query, key, value = graph.split(total, [f"{name}.{part}" for part in "qkv"])
    scale = graph.constant("attention.scale", np.array(1 / math.sqrt(size), np.float32))
    query_rows = graph.node("Mul", [query, scale], f"{name}.q.scaled")
    rows = _by_head(graph, f"{name}.q", query_rows, heads, size, (0, 2, 1, 3))
    columns = _by_head(graph, f"{name}.k", key, heads, size, (0, 2, 3, 1))
    values = _by_head(graph, f"{name}.v", value, heads, size, (0, 2, 1, 3))
    alike = graph.node("MatMul", [rows, columns], f"{name}.alike")
    logits = graph.node("Add", [alike, padding], f"{name}.logits")
    highest = graph.node("ReduceMax", [logits], f"{name}.highest", axes=[-1])
    powers = graph.node("Exp", [graph.node("Sub", [logits, highest], f"{name}.below")], f"{name}.powers")
    one_more = graph.constant("one column", np.array([0, 0, 0, 0, 0, 0, 0, 1], np.int64))
    with_ones = graph.node(
        "Pad", [values, one_more, graph.constant("one.float", np.array(1, np.float32))], f"{name}.counted"
    )
    both = graph.node("MatMul", [powers, with_ones], f"{name}.summed")
    totals, sums = graph.split(both, [f"{name}.weighed", f"{name}.sums"], [size, 1])
    mix = graph.node("Div", [totals, sums], f"{name}.mixed")
    back = graph.node("Transpose", [mix], f"{name}.tokens", perm=[0, 2, 1, 3])
    shape = graph.constant(f"side by side.{heads * size}", np.array([0, 0, heads * size], np.int64))
    return graph.node("Reshape", [back, shape], f"{name}.context")


def _by_head(graph: GraphBuilder, name: str, value: str, heads: int, size: int, order: tuple[int, ...]) -> str:
    """Returns [batch, sequence, heads * size] as [batch, sequence, heads, size], with its axes in this order."""
    shape = graph.constant(f"by head.{heads}.{size}", np.array([0, 0, heads, size], np.int64))
    return graph.node(
        "Transpose", [graph.node("Reshape", [value, shape], f"{name}.heads")], f"{name}.turned", perm=order
    )
