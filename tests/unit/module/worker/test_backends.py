"""Backends of packages that are extras: run where they are installed."""

import numpy as np
import pytest

from shardqa.module.worker.ai.messages import ModelError

ONES = np.ones(3, np.float32)


def test_openvino_runs_an_onnx_file() -> None:
    pytest.importorskip("openvino", reason="extra openvino")
    pytest.importorskip("onnx", reason="the model of this test is made with onnx")
    from shardqa.module.worker.ai.openvino_backend import OpenvinoModel
    from tests.onnx_models import adder

    model = OpenvinoModel(adder(), "CPU", 1)
    assert (model.inputs, model.outputs, model.splits) == (["a", "b"], ["sum"], True)
    assert model.run([ONES, ONES], None)[0].tolist() == [2, 2, 2]
    with pytest.raises(ModelError):
        model.run([ONES], None)
    with pytest.raises(ModelError):
        OpenvinoModel(b"no model", "CPU", 1)
    with pytest.raises(ModelError, match="is not available"):
        OpenvinoModel(adder(), "GPU", 1)


def test_tflite_refuses_what_is_no_model() -> None:
    pytest.importorskip("ai_edge_litert", reason="extra tflite")
    from shardqa.module.worker.ai.tflite_backend import TfliteModel

    with pytest.raises(ModelError):
        TfliteModel(b"no model", "CPU", 1)
    with pytest.raises(ModelError, match="is not available"):
        TfliteModel(b"", "GPU", 1)
