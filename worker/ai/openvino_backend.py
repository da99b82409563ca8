"""OPENVINO: ONNX files run by openvino, where it is installed."""

from collections.abc import Sequence

import numpy as np
import openvino

from shardqa.tensors import Array
from shardqa.worker.ai.messages import ModelError
from shardqa.worker.ai.plain_model import PlainModel, refused

ERRORS = (RuntimeError, ValueError, TypeError, OSError)


class OpenvinoModel(PlainModel):
    errors = ERRORS

    def __init__(self, blob: bytes, device: str, threads: int) -> None:
        """Loads the model for `threads` threads of the processor. Raises ModelError."""
        if not device.upper().startswith("CPU"):
            raise ModelError(f"ERR device {device} is not available to this worker's openvino; store the model on CPU")
        core = openvino.Core()
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        try:
            self._model = core.compile_model(core.read_model(blob), "CPU", settings)
        except ERRORS as error:
            raise refused(error) from None
        values = [*self._model.inputs, *self._model.outputs]
        self.inputs = [value.get_any_name() for value in self._model.inputs]
        self.outputs = [value.get_any_name() for value in self._model.outputs]
        shapes = [value.get_partial_shape() for value in values]
        self.splits = all(len(shape) > 0 and shape[0].is_dynamic for shape in shapes)

    def infer(self, arrays: Sequence[Array]) -> list[Array]:
        results = self._model.create_infer_request().infer(dict(enumerate(arrays)))
        return [np.array(results[output]) for output in self._model.outputs]
