"""TF: frozen graphs, where tensorflow is installed. AI.MODELSTORE names inputs and outputs: a GraphDef does not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from shardqa.tensors import BFLOAT16, Array
from shardqa.worker.ai.messages import ModelError
from shardqa.worker.ai.plain_model import PlainModel, refused

ERRORS = (tf.errors.OpError, RuntimeError, ValueError, TypeError, KeyError)


class TensorflowModel(PlainModel):
    errors = ERRORS

    def __init__(self, blob: bytes, device: str, inputs: Sequence[str], outputs: Sequence[str], threads: int) -> None:
        """Loads a frozen graph, with the names of its inputs and outputs. Raises ModelError."""
        place = _place(device)
        _bound_threads(threads)
        graph = _imported(blob, place)
        ends = [_tensor(graph, name, "Input") for name in inputs], [_tensor(graph, name, "Output") for name in outputs]
        try:
            self._function = graph.prune(*ends)
        except ERRORS as error:
            raise refused(error) from None
        self._types = [tensor.dtype for tensor in ends[0]]
        self._place = place
        self.inputs = inputs
        self.outputs = outputs
        self.splits = not any(_has_fixed_rows(tensor.shape) for tensor in (*ends[0], *ends[1]))

    def infer(self, arrays: Sequence[Array]) -> list[Array]:
        with tf.device(self._place):
            inputs = [_given(array, dtype) for array, dtype in zip(arrays, self._types, strict=True)]
            return [_taken(output) for output in self._function(*inputs)]


def _place(device: str) -> str:
    """Returns Tensorflow's name of a device. Raises ModelError."""
    kind, _, number = device.upper().partition(":")
    if kind == "CPU":
        return "/CPU:0"  # all are the same processor
    devices = tf.config.list_physical_devices(kind)
    if int(number or "0") >= len(devices):
        raise ModelError(f"ERR device {device} is not available to this worker's tensorflow; store the model on CPU")
    return f"/{kind}:{number or 0}"


def _bound_threads(threads: int) -> None:
    """Bounds the threads of the whole process; later models find them set."""
    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)


def _imported(blob: bytes, place: str) -> Any:
    """Returns the whole graph as a function that can be cut to some inputs and outputs. Raises ModelError."""
    definition = tf.compat.v1.GraphDef()
    try:
        definition.ParseFromString(blob)
    except DecodeError:
        raise ModelError("ERR Invalid GraphDef") from None
    if not definition.node:
        raise ModelError("ERR Invalid GraphDef")

    def build() -> None:
        with tf.device(place):
            tf.import_graph_def(definition, name="")

    try:
        return tf.compat.v1.wrap_function(build, [])
    except ERRORS as error:
        raise refused(error) from None


def _tensor(function: Any, name: str, kind: str) -> Any:
    """Returns the tensor named `operation:n`, or the first one of an operation, as in RedisAI. Raises ModelError."""
    try:
        return function.graph.as_graph_element(name if ":" in name else f"{name}:0")
    except ERRORS:
        raise ModelError(f'ERR {kind} node named "{name}" not found in TF graph.') from None


def _given(array: Array, dtype: Any) -> Any:
    if array.dtype == BFLOAT16:
        return tf.bitcast(tf.constant(array.view(np.uint16)), tf.bfloat16)
    return tf.constant(array, dtype if dtype == tf.string else None)  # it converts no other type, nor do we


def _taken(output: Any) -> Array:
    if output.dtype == tf.bfloat16:
        return np.asarray(tf.bitcast(output, tf.uint16).numpy()).view(BFLOAT16)
    return np.asarray(output.numpy())


def _has_fixed_rows(shape: Any) -> bool:
    return shape.rank is not None and (shape.rank == 0 or shape[0] is not None)
