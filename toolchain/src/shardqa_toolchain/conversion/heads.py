"""Heads of several tasks as parts of an ONNX graph: one encoder, and an output for each thing it is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import onnx
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.reader import EVIDENCE, RELEVANCE, Batch
from shardqa_toolchain.conversion.builder import GraphBuilder, Output
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.graph import Head, Layers, SpanHead, Weights, network
from shardqa_toolchain.conversion.reference import Outputs, Reference
from shardqa_toolchain.multitask.tasks import (
    ANSWERABLE,
    CONTROL,
    CONTROL_OUTPUT,
    SEQUENCE,
    SETTING,
    SPAN,
    Task,
    TaskSet,
)

# The token classifier of the control form, as transformers' BertForTokenClassification names it.
CLASSIFIER = "classifier"


def head_tensor(task: Task) -> str:
    """Returns what the names of a task's tensors in a checkpoint begin with."""
    return "qa_outputs" if task.kind == SPAN else f"heads.{task.name}"


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
        is_single = isinstance(self.output.sizes[-1], str)  # no axis of labels
        graph.node("Add", [product, bias], f"{name}.pair" if is_single else name)
        if is_single:
            graph.node("Squeeze", [f"{name}.pair", graph.constant("last", np.array([-1], dtype=np.int64))], name)
        return [self.output]


def whole_network(checkpoint: Checkpoint, layers: Layers, observe: bool = False) -> onnx.ModelProto:
    """The network of a checkpoint: with the outputs of TaskSet.outputs where it was trained for several tasks, else a
    reader's, and with ``observe`` those of `network`; raises BadModel when a head is missing or misshapen."""
    weights = checkpoint.weights
    found = heads(TaskSet.of(checkpoint.config), weights) if SETTING in checkpoint.config else reader_heads(checkpoint)
    return network(weights, checkpoint.shape, layers, found, observe)


def reader_heads(checkpoint: Checkpoint) -> list[Head]:
    """A reader's heads: start_logits and end_logits, and evidence and relevance where it has them.

    Raises BadModel for a checkpoint without a span head.
    """
    weights = checkpoint.weights
    heads_of_reader: list[Head] = [SpanHead.of(weights)]
    if checkpoint.has_evidence:
        evidence, relevance = Output(EVIDENCE, ("batch", "sequence")), Output(RELEVANCE, ("batch",))
        heads_of_reader.append(_linear(weights, EVIDENCE, evidence, 1, at_first=False))
        heads_of_reader.append(_linear(weights, RELEVANCE, relevance, 1, at_first=True))
    return heads_of_reader


def heads(tasks: TaskSet, weights: Weights) -> Sequence[Head]:
    """The heads of a checkpoint, in the order of the tasks; raises BadModel when one is missing or misshapen."""
    if tasks.form == CONTROL:
        output = Output(CONTROL_OUTPUT, ("batch", "sequence", len(tasks.union)))
        return [_linear(weights, CLASSIFIER, output, len(tasks.union), at_first=False)]
    return [_head(task, weights) for task in tasks.tasks]


def _head(task: Task, weights: Weights) -> Head:
    if task.kind == SPAN:
        return SpanHead.of(weights)
    name = head_tensor(task)
    if task.kind == ANSWERABLE:
        return _linear(weights, name, Output(task.outputs[0], ("batch",)), 1, at_first=True)
    is_sequence = task.kind == SEQUENCE
    axes: tuple[str | int, ...] = ("batch",) if is_sequence else ("batch", "sequence")
    output = Output(task.outputs[0], (*axes, len(task.labels)))
    return _linear(weights, name, output, len(task.labels), at_first=is_sequence)


def _linear(weights: Weights, name: str, output: Output, labels: int, at_first: bool) -> LinearHead:
    try:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    except KeyError as error:
        raise BadModel(f"the checkpoint has no tensor {error}, which its tasks need; train it again") from None
    hidden = weights["bert.embeddings.word_embeddings.weight"].shape[1]
    if weight.shape != (labels, hidden) or bias.shape != (labels,):
        raise BadModel(
            f"{name} has shapes {[*weight.shape]} and {[*bias.shape]}, {[labels, hidden]} and {[labels]} are needed; "
            "do config.json and the weights belong together?"
        )
    return LinearHead(output, weight, bias, at_first)


@dataclass(frozen=True, slots=True)
class MultitaskReference:
    """A checkpoint of several tasks, computed in numpy: the witness that its conversions are checked against."""

    reference: Reference
    tasks: TaskSet

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """Raises BadModel for a checkpoint without tasks, or whose heads are missing or misshapen."""
        tasks = TaskSet.of(checkpoint.config)
        heads(tasks, checkpoint.weights)
        return cls(Reference(checkpoint.weights, checkpoint.shape), tasks)

    def outputs(self, batch: Batch) -> Outputs:
        hidden = self.reference.hidden(batch)
        if self.tasks.form == CONTROL:
            return {CONTROL_OUTPUT: self.reference.dense(CLASSIFIER, hidden)}
        found: Outputs = {}
        for task in self.tasks.tasks:
            at_first = task.kind in (ANSWERABLE, SEQUENCE)
            logits = self.reference.dense(head_tensor(task), hidden[:, 0] if at_first else hidden)
            if task.kind in (SPAN, ANSWERABLE):
                found |= {name: logits[..., place] for place, name in enumerate(task.outputs)}
            else:
                found[task.outputs[0]] = logits
        return found
