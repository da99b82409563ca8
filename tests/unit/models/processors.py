"""Computes as the shipped reader does on this processor: `python -m tests.unit.models.processors OUT`.

Run twice by test_processors.py, the second time on an emulated processor.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from shardqa.models import shipped
from shardqa.models.reader import join
from shardqa.models.session import MODEL_FILE, ReaderSession
from shardqa.models.tokenizer import Tokenizer

ROOT = Path(__file__).parents[3]
CONTRIB = "com.microsoft"
ZERO = 128  # what stands for zero in the activations' uint8


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


def wrong_sums() -> int:
    """Sums of the reader's products that are not numpy's."""
    wrong = 0
    for weight in weights().values():
        steps = steps_for(weight)
        wrong += int((product(weight, steps) != (steps.astype(np.int64) - ZERO) @ weight.astype(np.int64)).sum())
    return wrong


def logits() -> NDArray[np.float32]:
    """Start and end logits of the first questions of the seeds over the beginnings of their documents, end to end."""
    tokenizer = Tokenizer.load(shipped.folder())
    texts = [path.read_text() for path in sorted((ROOT / "seeds" / "documents").rglob("*.md"))]
    asked = [json.loads(line)["question"] for line in (ROOT / "seeds" / "questions.jsonl").open()]
    rows = [
        join(tokenizer.question(question), tokenizer.passage(text).ids[:length])
        for question, text, length in zip(asked, texts, (33, 36, 97, 128), strict=False)
    ]
    assert len(rows) == 4, "seeds/ has fewer documents than there were"
    return np.concatenate([np.concatenate(one) for one in ReaderSession(shipped.folder()).read(rows)])


if __name__ == "__main__":
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    np.savez(sys.argv[1], wrong=wrong_sums(), logits=logits(), avx2=features["AVX2"], avx512=features["AVX512F"])
