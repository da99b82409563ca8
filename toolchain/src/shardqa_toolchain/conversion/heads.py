"""Heads of a network as parts of an ONNX graph: one encoder, and an output for each thing it is asked."""

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.reader import EVIDENCE, RELEVANCE
from shardqa_toolchain.conversion.builder import GraphBuilder, Output
from shardqa_toolchain.conversion.checkpoint import SPAN_HEAD, Checkpoint
from shardqa_toolchain.conversion.graph import Head, Layers, SpanHead, Weights, network
from shardqa_toolchain.multitask.tasks import SETTING, HeadSize, TaskSet


@dataclass(frozen=True, slots=True)
class LinearHead:
    """Logits of every token, or of a row's first."""

    output: Output
    weight: NDArray[np.float32]  # [labels, hidden size]
    bias: NDArray[np.float32]  # [labels]
    at_first: bool  # whether only [CLS] is asked

    def write(self, graph: GraphBuilder, hidden: str) -> list[Output]:
        name = self.output.name
        if self.at_first:
            first = graph.constant("cls.place", np.array([0], dtype=np.int64))
            axis = graph.constant("cls.axis", np.array([1], dtype=np.int64))
            at_first = graph.node("Gather", [hidden, first], f"{name}.cls", axis=1)
            hidden = graph.node("Squeeze", [at_first, axis], f"{name}.row")
        weight = graph.constant(f"{name}.weight", self.weight.T)
        product = graph.node("MatMul", [hidden, weight], f"{name}.product")
        bias = graph.constant(f"{name}.bias", self.bias)
        if isinstance(self.output.sizes[-1], int):
            graph.node("Add", [product, bias], name)
        else:  # one label, without an axis for it
            graph.node("Add", [product, bias], f"{name}.pair")
            graph.node("Squeeze", [f"{name}.pair", graph.constant("last", np.array([-1], dtype=np.int64))], name)
        return [self.output]


def whole_network(checkpoint: Checkpoint, layers: Layers) -> onnx.ModelProto:
    """A network with the heads of its tasks, else a reader's; raises BadModel when one is missing or misshapen."""
    several = SETTING in checkpoint.config
    heads = task_heads(TaskSet.of(checkpoint.config), checkpoint.weights) if several else reader_heads(checkpoint)
    return network(checkpoint.weights, checkpoint.shape, layers, heads)


def task_heads(tasks: TaskSet, weights: Weights) -> list[Head]:
    """The heads of several tasks, in their order; raises BadModel when one is missing or misshapen."""
    return [SpanHead.of(weights) if size.tensor == SPAN_HEAD else _task_head(size, weights) for size in tasks.heads]


def _task_head(size: HeadSize, weights: Weights) -> LinearHead:
    axes = ("batch",) if size.at_first else ("batch", "sequence")
    return _linear(weights, Output(size.outputs[0], (*axes, size.width)), size.at_first, size.tensor, size.width)


def reader_heads(checkpoint: Checkpoint) -> list[Head]:
    """A reader's heads: start_logits and end_logits, and evidence and relevance where it has them.

    Raises BadModel for a checkpoint without a span head.
    """
    weights = checkpoint.weights
    heads: list[Head] = [SpanHead.of(weights)]
    if checkpoint.has_evidence:
        heads.append(_linear(weights, Output(EVIDENCE, ("batch", "sequence")), at_first=False))
        heads.append(_linear(weights, Output(RELEVANCE, ("batch",)), at_first=True))
    return heads


def _linear(weights: Weights, output: Output, at_first: bool, tensor: str = "", labels: int = 1) -> LinearHead:
    name = tensor or output.name
    try:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    except KeyError as error:
        raise BadModel(f"the checkpoint has no tensor {error}, which its outputs need; train it again") from None
    hidden = weights["bert.embeddings.word_embeddings.weight"].shape[1]
    if weight.shape != (labels, hidden) or bias.shape != (labels,):
        raise BadModel(
            f"{name} has shapes {[*weight.shape]} and {[*bias.shape]}, {[labels, hidden]} and {[labels]} are needed; "
            "do config.json and the weights belong together?"
        )
    return LinearHead(output, weight, bias, at_first)
