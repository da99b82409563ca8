"""TFLITE: models for LiteRT, where ai-edge-litert is installed."""

from collections.abc import Sequence

from ai_edge_litert.interpreter import Interpreter

from shardqa.tensors import Array
from shardqa.worker.ai.messages import ModelError
from shardqa.worker.ai.plain_model import PlainModel, refused

ERRORS = (RuntimeError, ValueError, TypeError)


class TfliteModel(PlainModel):
    errors = ERRORS
    splits = True  # a file declares no free dimension: who stores it with BATCHSIZE says so

    def __init__(self, blob: bytes, device: str, threads: int) -> None:
        """Loads the model for `threads` threads of the processor. Raises ModelError."""
        if not device.upper().startswith("CPU"):
            raise ModelError(f"ERR device {device} is not available to this worker's LiteRT; store the model on CPU")
        try:
            self._interpreter = Interpreter(model_content=blob, num_threads=threads)
            self._interpreter.allocate_tensors()
        except ERRORS as error:
            raise refused(error) from None
        self._inputs = self._interpreter.get_input_details()
        self._outputs = self._interpreter.get_output_details()
        self.inputs = [value["name"] for value in self._inputs]
        self.outputs = [value["name"] for value in self._outputs]

    def infer(self, arrays: Sequence[Array]) -> list[Array]:
        self._resize(arrays)
        for value, array in zip(self._inputs, arrays, strict=True):
            self._interpreter.set_tensor(value["index"], array)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(value["index"]) for value in self._outputs]

    def _resize(self, arrays: Sequence[Array]) -> None:
        now = [tuple(value["shape"]) for value in self._interpreter.get_input_details()]
        if now == [array.shape for array in arrays]:
            return
        for value, array in zip(self._inputs, arrays, strict=True):
            self._interpreter.resize_tensor_input(value["index"], array.shape)
        self._interpreter.allocate_tensors()
