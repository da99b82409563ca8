"""Small ONNX models; import it where `pytest.importorskip("onnx")` has passed."""

from onnx import TensorProto, helper


def adder() -> bytes:
    """sum = a + b of floats, any number of rows."""
    shape = ["n"]
    a, b, total = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("a", "b", "sum"))
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["sum"])], "adder", [a, b], [total])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())
