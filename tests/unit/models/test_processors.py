"""The shipped reader computes the same on every processor: shards of one cluster need not be alike."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from shardqa.models import shipped
from shardqa.models.session import MODEL_FILE

pytest.importorskip("onnx", reason="needs onnx (pip install './toolchain[train]')")

import onnx
from onnx import TensorProto, helper, numpy_helper

CONTRIB = "com.microsoft"
ZERO = 128  # what stands for zero in the activations' uint8
LARGEST_INT16 = 2**15 - 1


def weights() -> dict[str, NDArray[np.int8]]:
    """The int8 weights of the shipped reader's products, [inputs, outputs]."""
    model = onnx.load(shipped.folder() / MODEL_FILE)
    used = {node.input[1] for node in model.graph.node if node.op_type == "MatMulIntegerToFloat"}
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer if one.name in used}


def product(weight: NDArray[np.int8], steps: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The product as the reader's own operator computes it, with scales of 1: whole numbers."""
    constants: dict[str, NDArray[Any]] = {
        "weight": weight,
        "unit": np.array(1, np.float32),
        "units": np.ones(weight.shape[1], np.float32),
        "zero": np.array(ZERO, np.uint8),
        "none": np.array(0, np.int8),
    }
    node = helper.make_node(
        "MatMulIntegerToFloat", ["steps", "weight", "unit", "units", "zero", "none"], ["sums"], domain=CONTRIB
    )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("steps", TensorProto.UINT8, ["rows", len(weight)])],
        [helper.make_tensor_value_info("sums", TensorProto.FLOAT, ["rows", weight.shape[1]])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    sums: NDArray[np.float32] = session.run(["sums"], {"steps": steps})[0]
    return sums


def steps_for(weight: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Activations, uint8 [9, inputs]: all at the top, those that make four columns' sums largest, some at random."""
    largest = np.where(weight[:, :4].T > 0, 255, 0)
    drawn = np.random.default_rng(7).integers(0, 256, (4, len(weight)))
    return np.concatenate([np.full((1, len(weight)), 255), largest, drawn]).astype(np.uint8)


def test_no_two_products_together_leave_16_bits() -> None:
    """The instruction vpmaddubsw, for processors without VNNI, adds neighbours in 16 bits and saturates."""
    sizes = {name: np.abs(weight.astype(np.int64)) for name, weight in weights().items()}
    worst = {name: 255 * int((size[0::2] + size[1::2]).max()) for name, size in sizes.items()}
    assert {name: sums for name, sums in worst.items() if sums > LARGEST_INT16} == {}


def test_the_integer_products_of_this_processor_are_numpys_bit_for_bit() -> None:
    for name, weight in weights().items():
        steps = steps_for(weight)
        exact = (steps.astype(np.int64) - ZERO) @ weight.astype(np.int64)
        np.testing.assert_array_equal(product(weight, steps), exact, name)
