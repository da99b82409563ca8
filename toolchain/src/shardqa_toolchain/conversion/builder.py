"""A graph of ONNX as it grows: nodes and constants, and the model that they become."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17  # first opset with LayerNormalization

CONTRIB = "com.microsoft"  # the domain of onnxruntime's own operators


@dataclass(slots=True)
class GraphBuilder:
    """Nodes and constants as they pile up."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def node(self, operator: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return the output's name."""
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, name=output, **attributes))
        return output

    def split(self, value: str, outputs: list[str], sizes: Sequence[int] = ()) -> list[str]:
        """Cut a value along its last axis into parts of these sizes, equal ones unless given."""
        inputs = [value]
        if sizes:
            inputs.append(self.constant(f"{outputs[0]}.sizes", np.array(sizes, dtype=np.int64)))
        self.nodes.append(helper.make_node("Split", inputs, outputs, name=outputs[0], axis=-1))
        return outputs

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant, and return its name; the same name twice is the same constant."""
        if name not in self._names:
            self._names.add(name)
            self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the network, or an input."""

    name: str
    sizes: tuple[str | int, ...]  # such as ("batch", "sequence")
    type: int = TensorProto.FLOAT


# A whole network's inputs.
TOKENS_IN = tuple(
    Output(name, ("batch", "sequence"), TensorProto.INT64) for name in ("input_ids", "attention_mask", "token_type_ids")
)


def model_of(graph: GraphBuilder, outputs: Sequence[Output]) -> onnx.ModelProto:
    """A model of what has piled up, with `network`'s inputs."""
    graph_inputs = [helper.make_tensor_value_info(one.name, one.type, one.sizes) for one in TOKENS_IN]
    results = [helper.make_tensor_value_info(one.name, one.type, one.sizes) for one in outputs]
    body = helper.make_graph(graph.nodes, "reader", graph_inputs, results, graph.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    # IR 8 goes with opset 17, so that every onnxruntime since 1.12 reads the file.
    return helper.make_model(body, opset_imports=opsets, ir_version=8, producer_name="shardqa")
