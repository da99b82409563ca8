"""BERT as an ONNX graph, written node by node from its weights, with heads that turn its output into logits.

Written rather than traced out of torch: the fused operators that onnxruntime would look for in a trace
(LayerNormalization, BiasGelu; in stock onnxruntime for CPU) are simply put down where they pay, each
matrix product goes through one function that a quantizer may replace, and nothing but numpy and onnx is needed.
`tests/quality/test_reader.py` holds the result against transformers' own BertForQuestionAnswering.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import onnx
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.reader import SPANS
from shardqa_toolchain.conversion.attention import attention, padding
from shardqa_toolchain.conversion.builder import CONTRIB, GraphBuilder, Output, model_of

Weights = Mapping[str, "NDArray[np.float32]"]  # a checkpoint's tensors by their names in transformers, float32


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes of a BERT that its weights alone do not tell.

    The rest is read off the weights, layer by layer: a pruned layer may have fewer heads and a narrower feed-forward.
    """

    layers: int
    head_size: int  # columns of one attention head
    epsilon: float  # added to the variance in layer normalisation

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Read the sizes from a ``config.json``; raises BadModel for one that is missing or impossible."""
        for name in ("hidden_size", "num_attention_heads", "num_hidden_layers"):
            if type(config.get(name)) is not int or config[name] < 1:
                raise BadModel(f"{name} is {config.get(name)!r}, a whole number above 0 is needed")
        size = config.get("head_size") or config["hidden_size"] // config["num_attention_heads"]
        if type(size) is not int or size < 1:
            raise BadModel(f"head_size is {size!r}, a whole number above 0 is needed")
        epsilon = config.get("layer_norm_eps")
        if not isinstance(epsilon, float) or not 0 < epsilon < 1:
            raise BadModel(f"layer_norm_eps is {epsilon!r}, a number between 0 and 1 is needed")
        return cls(config["num_hidden_layers"], size, epsilon)


class Layers(Protocol):
    """A way to store and compute the graph's big tables and products: float here, int8 in `int8.py`."""

    def lookup(self, graph: GraphBuilder, name: str, table: NDArray[np.float32], index: str) -> str:
        """Rows of a table [rows, width] by an int64 index; returns a float value's name."""

    def product(self, graph: GraphBuilder, name: str, value: str, weight: NDArray[np.float32]) -> str:
        """``value @ weight`` with weight [inputs, outputs], without bias; returns a float value's name."""


class FloatLayers:
    """Everything in float32: the exact reader that others are measured against."""

    def lookup(self, graph: GraphBuilder, name: str, table: NDArray[np.float32], index: str) -> str:
        return graph.node("Gather", [graph.constant(f"{name}.table", table), index], name)

    def product(self, graph: GraphBuilder, name: str, value: str, weight: NDArray[np.float32]) -> str:
        return graph.node("MatMul", [value, graph.constant(f"{name}.weight", weight)], name)


class Head(Protocol):
    """Turns the encoder's last hidden states into named outputs; one encoder may carry several."""

    def write(self, graph: GraphBuilder, hidden: str) -> list[Output]:
        """Add the head's nodes; ``hidden`` names float32 [batch, sequence, hidden size]."""


@dataclass(frozen=True, slots=True)
class SpanHead:
    """Start and end logits of each token (Devlin et al. 2019, section 4.2)."""

    weight: NDArray[np.float32]  # [2, hidden size]: starts, ends
    bias: NDArray[np.float32]  # [2]

    @classmethod
    def of(cls, weights: Weights) -> Self:
        """The span head of a checkpoint; raises BadModel when it has none."""
        if "qa_outputs.weight" not in weights:
            raise BadModel("the checkpoint has no span head (qa_outputs); train one: shardqa-models train qa")
        return cls(weights["qa_outputs.weight"], weights["qa_outputs.bias"])

    def write(self, graph: GraphBuilder, hidden: str) -> list[Output]:
        weight = graph.constant("span.weight", self.weight.T)
        bias = graph.constant("span.bias", self.bias)
        logits = graph.node("Add", [graph.node("MatMul", [hidden, weight], "span"), bias], "logits")
        last = graph.constant("last", np.array([-1], dtype=np.int64))
        for part, name in zip(graph.split(logits, ["start", "end"]), SPANS, strict=True):
            graph.node("Squeeze", [part, last], name)
        return [Output(name, ("batch", "sequence")) for name in SPANS]


def network(
    weights: Weights, shape: BertShape, layers: Layers, heads: Sequence[Head], observe: bool = False
) -> onnx.ModelProto:
    """A whole network: the encoder, once, and the heads' outputs in the order given.

    Inputs input_ids, attention_mask, token_type_ids: int64 [batch, sequence]. With ``observe`` the input of every
    product is an output too, named as the product with "?" before it, for calibration.
    """
    graph = GraphBuilder()
    hidden = _embeddings(graph, weights, shape, layers)
    mask = padding(graph, "attention_mask")
    watch = _Watched(layers)
    for number in range(shape.layers):
        hidden = _layer(graph, weights, shape, watch, number, hidden, mask)
    outputs = [output for head in heads for output in head.write(graph, hidden)]
    if observe:
        outputs += [Output(graph.node("Identity", [value], f"?{name}"), _ANY) for name, value in watch.inputs.items()]
    return model_of(graph, outputs)


_ANY = ("batch", "sequence", "width")


@dataclass(slots=True)
class _Watched:
    """Layers that note what each product is made of."""

    layers: Layers
    inputs: dict[str, str] = field(default_factory=dict)  # the value that goes into a product, by the product's name

    def lookup(self, graph: GraphBuilder, name: str, table: NDArray[np.float32], index: str) -> str:
        return self.layers.lookup(graph, name, table, index)

    def product(self, graph: GraphBuilder, name: str, value: str, weight: NDArray[np.float32]) -> str:
        self.inputs[name] = value
        return self.layers.product(graph, name, value, weight)


def _embeddings(graph: GraphBuilder, weights: Weights, shape: BertShape, layers: Layers) -> str:
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
    graph: GraphBuilder, weights: Weights, shape: BertShape, layers: Layers, number: int, hidden: str, mask: str
) -> str:
    prefix, short = f"bert.encoder.layer.{number}.", f"layer.{number}"
    context = _attention(graph, weights, shape, layers, number, hidden, mask)
    mix = layers.product(graph, f"{short}.mix", context, weights[prefix + "attention.output.dense.weight"].T)
    middle = _add_and_norm(graph, weights, shape, prefix + "attention.output", f"{short}.attended", mix, hidden)
    widen = layers.product(graph, f"{short}.widen", middle, weights[prefix + "intermediate.dense.weight"].T)
    bias = graph.constant(f"{short}.widen.bias", weights[prefix + "intermediate.dense.bias"])
    active = graph.node("BiasGelu", [widen, bias], f"{short}.active", CONTRIB)
    narrow = layers.product(graph, f"{short}.narrow", active, weights[prefix + "output.dense.weight"].T)
    return _add_and_norm(graph, weights, shape, prefix + "output", f"hidden.{number + 1}", narrow, middle)


def _attention(
    graph: GraphBuilder, weights: Weights, shape: BertShape, layers: Layers, number: int, hidden: str, mask: str
) -> str:
    """The heads' outputs side by side; query, key and value are one product."""
    short = f"layer.{number}"
    parts = [f"bert.encoder.layer.{number}.attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    projection = layers.product(graph, f"{short}.qkv", hidden, matrix)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    return attention(graph, short, projection, bias, mask, len(weights[f"{parts[0]}.weight"]) // shape.head_size)


def _add_and_norm(
    graph: GraphBuilder, weights: Weights, shape: BertShape, prefix: str, name: str, value: str, skip: str
) -> str:
    gain, shift = _norm_constants(graph, weights, f"{prefix}.LayerNorm")
    bias = graph.constant(f"{name}.bias", weights[f"{prefix}.dense.bias"])
    # Sum keeps onnxruntime from fusing this into its SkipLayerNormalization, which is five times slower on CPU.
    total = graph.node("Sum", [value, bias, skip], f"{name}.sum")
    return graph.node("LayerNormalization", [total, gain, shift], name, epsilon=shape.epsilon, axis=-1)


def _norm_constants(graph: GraphBuilder, weights: Weights, prefix: str) -> tuple[str, str]:
    return (
        graph.constant(f"{prefix}.gain", weights[f"{prefix}.weight"]),
        graph.constant(f"{prefix}.shift", weights[f"{prefix}.bias"]),
    )
