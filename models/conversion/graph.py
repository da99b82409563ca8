"""BERT for question answering as an ONNX graph, written node by node from its weights.

Written rather than traced out of torch: the fused operators that onnxruntime would look for in a trace
(SkipLayerNormalization, BiasGelu, MultiHeadAttention; all in stock onnxruntime for CPU) are simply put down, each
matrix product goes through one function that a quantiser may replace, and nothing but numpy and onnx is needed.
`tests/quality/test_reader.py` holds the result against transformers' own BertForQuestionAnswering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPSET = 17
"""First opset with LayerNormalization."""

CONTRIB = "com.microsoft"
"""The domain of onnxruntime's own operators."""

Weights = Mapping[str, "NDArray[np.float32]"]
"""A checkpoint's tensors by their names in transformers, float32."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes of a BERT that its weights alone do not tell."""

    layers: int
    heads: int
    epsilon: float
    """Added to the variance in layer normalisation."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> BertShape:
        """Read the sizes from a checkpoint's ``config.json``; raises KeyError when one is missing."""
        return cls(config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"])


@dataclass(slots=True)
class Graph:
    """Nodes and constants as they pile up."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def node(self, operator: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return the output's name."""
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, name=output, **attributes))
        return output

    def split(self, value: str, outputs: list[str], axis: int) -> list[str]:
        """Cut a value into equal parts along an axis."""
        self.nodes.append(helper.make_node("Split", [value], outputs, name=outputs[0], axis=axis))
        return outputs

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant, and return its name; the same name twice is the same constant."""
        if name not in self._names:
            self._names.add(name)
            self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name


class Layers(Protocol):
    """How the graph's big tables and products are stored and computed; float here, int8 in `quantise.py`."""

    def lookup(self, graph: Graph, name: str, table: NDArray[np.float32], index: str) -> str:
        """Rows of a table [rows, width] by an int64 index; returns a float value's name."""

    def product(self, graph: Graph, name: str, value: str, weight: NDArray[np.float32]) -> str:
        """``value @ weight`` with weight [inputs, outputs], without bias; returns a float value's name."""


class FloatLayers:
    """Everything in float32: the exact reader that others are measured against."""

    def lookup(self, graph: Graph, name: str, table: NDArray[np.float32], index: str) -> str:
        return graph.node("Gather", [graph.constant(f"{name}.table", table), index], name)

    def product(self, graph: Graph, name: str, value: str, weight: NDArray[np.float32]) -> str:
        return graph.node("MatMul", [value, graph.constant(f"{name}.weight", weight)], name)


def bert_reader(weights: Weights, shape: BertShape, layers: Layers, observe: bool = False) -> onnx.ModelProto:
    """The whole reader.

    Inputs input_ids, attention_mask, token_type_ids: int64 [batch, sequence]. Outputs start_logits, end_logits:
    float32 [batch, sequence]. With ``observe`` the input of every product is an output too, for calibration.
    """
    graph = Graph()
    hidden = _embeddings(graph, weights, shape, layers)
    mask = graph.node("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    observed: list[str] = []
    for number in range(shape.layers):
        hidden = _layer(graph, weights, shape, layers, number, hidden, mask, observed)
    _span_head(graph, weights, hidden)
    return _model(graph, observed if observe else [])


def _embeddings(graph: Graph, weights: Weights, shape: BertShape, layers: Layers) -> str:
    tables = "bert.embeddings."
    words = layers.lookup(graph, "words", weights[tables + "word_embeddings.weight"], "input_ids")
    # A Slice, not a Gather over a Range: onnxruntime's fusion of those two loses a dimension and fails.
    positions = graph.constant("places.table", weights[tables + "position_embeddings.weight"])
    length = graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    zero = graph.constant("zero", np.array([0], dtype=np.int64))
    places = graph.node("Slice", [positions, zero, length], "places")
    types = FloatLayers().lookup(graph, "types", weights[tables + "token_type_embeddings.weight"], "token_type_ids")
    total = graph.node("Add", [graph.node("Add", [words, types], "words+types"), places], "embeddings")
    gain, shift = _norm_constants(graph, weights, tables + "LayerNorm")
    return graph.node("LayerNormalization", [total, gain, shift], "hidden.0", epsilon=shape.epsilon, axis=-1)


def _layer(
    graph: Graph,
    weights: Weights,
    shape: BertShape,
    layers: Layers,
    number: int,
    hidden: str,
    mask: str,
    observed: list[str],
) -> str:
    prefix, short = f"bert.encoder.layer.{number}.", f"layer.{number}"
    qkv = [prefix + f"attention.self.{part}" for part in ("query", "key", "value")]
    packed = np.concatenate([weights[f"{part}.weight"].T for part in qkv], axis=1)
    projected = layers.product(graph, f"{short}.qkv", hidden, packed)
    query, key, value = graph.split(projected, [f"{short}.{part}" for part in "qkv"], axis=-1)
    bias = graph.constant(f"{short}.qkv.bias", np.concatenate([weights[f"{part}.bias"] for part in qkv]))
    context = graph.node(
        "MultiHeadAttention", [query, key, value, bias, mask], f"{short}.context", CONTRIB, num_heads=shape.heads
    )
    mixed = layers.product(graph, f"{short}.mix", context, weights[prefix + "attention.output.dense.weight"].T)
    attended = _add_and_norm(graph, weights, shape, prefix + "attention.output", f"{short}.attended", mixed, hidden)
    widened = layers.product(graph, f"{short}.widen", attended, weights[prefix + "intermediate.dense.weight"].T)
    bias = graph.constant(f"{short}.widen.bias", weights[prefix + "intermediate.dense.bias"])
    active = graph.node("BiasGelu", [widened, bias], f"{short}.active", CONTRIB)
    narrowed = layers.product(graph, f"{short}.narrow", active, weights[prefix + "output.dense.weight"].T)
    observed += [hidden, context, attended, active]
    return _add_and_norm(graph, weights, shape, prefix + "output", f"hidden.{number + 1}", narrowed, attended)


def _add_and_norm(
    graph: Graph, weights: Weights, shape: BertShape, prefix: str, name: str, value: str, skip: str
) -> str:
    gain, shift = _norm_constants(graph, weights, f"{prefix}.LayerNorm")
    bias = graph.constant(f"{name}.bias", weights[f"{prefix}.dense.bias"])
    # Sum keeps onnxruntime from fusing this into its SkipLayerNormalization, which is five times slower on CPU.
    total = graph.node("Sum", [value, bias, skip], f"{name}.sum")
    return graph.node("LayerNormalization", [total, gain, shift], name, epsilon=shape.epsilon, axis=-1)


def _span_head(graph: Graph, weights: Weights, hidden: str) -> None:
    weight = graph.constant("span.weight", weights["qa_outputs.weight"].T)
    bias = graph.constant("span.bias", weights["qa_outputs.bias"])
    logits = graph.node("Add", [graph.node("MatMul", [hidden, weight], "span"), bias], "logits")
    last = graph.constant("last", np.array([-1], dtype=np.int64))
    for part, output in zip(
        graph.split(logits, ["start", "end"], axis=-1), ["start_logits", "end_logits"], strict=True
    ):
        graph.node("Squeeze", [part, last], output)


def _norm_constants(graph: Graph, weights: Weights, prefix: str) -> tuple[str, str]:
    return (
        graph.constant(f"{prefix}.gain", weights[f"{prefix}.weight"]),
        graph.constant(f"{prefix}.shift", weights[f"{prefix}.bias"]),
    )


def _model(graph: Graph, observed: list[str]) -> onnx.ModelProto:
    def ports(names: list[str], kind: int, sizes: list[str]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, kind, sizes) for name in names]

    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    outputs = ports(["start_logits", "end_logits"], TensorProto.FLOAT, ["batch", "sequence"])
    outputs += ports(observed, TensorProto.FLOAT, ["batch", "sequence", "width"])
    body = helper.make_graph(
        graph.nodes,
        "reader",
        ports(inputs, TensorProto.INT64, ["batch", "sequence"]),
        outputs,
        graph.constants,
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    # IR 8 goes with opset 17, so that every onnxruntime since 1.12 reads the file.
    return helper.make_model(body, opset_imports=opsets, ir_version=8, producer_name="shardqa")
