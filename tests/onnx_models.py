"""Small ONNX models; import it where `pytest.importorskip("onnx")` has passed."""

from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper


def adder() -> bytes:
    """A model that adds two lists of floats of any length: sum = a + b."""
    shape = ["n"]
    a, b, total = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("a", "b", "sum"))
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["sum"])], "adder", [a, b], [total])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


def write_table(path: Path, rows: int, width: int = 1024) -> None:
    """Writes a model y = w[x] whose one weight is `rows` times `width` floats, in a sparse file.

    It may be larger than what onnx can hold in memory. Row n is all n where n is the first, middle or last, else 0.
    """
    x = helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", width])
    model = helper.make_model(
        helper.make_graph([helper.make_node("Gather", ["w", "x"], ["y"])], "table", [x], [y]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    size = rows * width * 4
    weight = TensorProto(dims=(rows, width), data_type=TensorProto.FLOAT, name="w").SerializeToString()
    weight += _head(TensorProto.RAW_DATA_FIELD_NUMBER, size)
    graph = model.graph.SerializeToString() + _head(GraphProto.INITIALIZER_FIELD_NUMBER, len(weight) + size) + weight
    model.ClearField("graph")
    with path.open("wb") as file:
        file.write(model.SerializeToString() + _head(ModelProto.GRAPH_FIELD_NUMBER, len(graph) + size) + graph)
        start = file.tell()
        file.truncate(start + size)
        for row in (0, rows // 2, rows - 1):
            file.seek(start + row * width * 4)
            file.write(np.full(width, row, np.float32).tobytes())


def _head(number: int, length: int) -> bytes:
    """The head of a field of `length` bytes, as protobuf writes it."""
    out = bytearray()
    for value in (number << 3 | 2, length):
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
    return bytes(out)
