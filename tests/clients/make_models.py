"""`make_models.py FOLDER`: models for TF, TFLITE and OPENVINO, which test_backends.py runs.

It runs in the environment of the backends.
"""

import sys
from pathlib import Path

import tensorflow as tf

from tests.onnx_models import adder

v1 = tf.compat.v1


def graph() -> bytes:
    """Two ends and two middles: mul = a * b, [n, 2]; said = words."""
    with tf.Graph().as_default() as graph:
        a, b = (v1.placeholder(tf.float32, [None, 2], name=name) for name in ("a", "b"))
        tf.multiply(a, b, name="mul")
        tf.identity(v1.placeholder(tf.string, [None], name="words"), name="said")
        tf.identity(v1.placeholder(tf.bfloat16, [None], name="brains"), name="same")
    return bytes(graph.as_graph_def().SerializeToString())


def lite() -> bytes:
    """Twice its input, [n, 2]."""
    double = tf.function(lambda x: 2.0 * x, input_signature=[tf.TensorSpec([1, 2], tf.float32)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([double.get_concrete_function()])
    return bytes(converter.convert())


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "graph.pb").write_bytes(graph())
    (folder / "double.tflite").write_bytes(lite())
    (folder / "adder.onnx").write_bytes(adder())
