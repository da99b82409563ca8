"""What runs a model: ONNX Runtime. onnxruntime is imported by the first model, so a worker without models starts fast.

A loaded model is used by one thread at a time (ai/batching.py); runs release the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any, Protocol

from shardqa.module.worker.ai.tensors import Array

NOWHERE = "/nonexistent"  # where a model's external data would be looked for: models come whole, as one blob


class ModelError(Exception):
    """A model that can't be loaded, or a run of it that failed. Its text is an error reply."""


class Model(Protocol):
    inputs: Sequence[str]
    outputs: Sequence[str]

    def run(self, arrays: Sequence[Array], options: Any) -> list[Array]:
        """One run; inputs in the order of `inputs`. Raises ModelError."""
        ...

    def options(self) -> Any:
        """A handle for one run; `terminate(options)` stops the run from another thread."""
        ...

    def terminate(self, options: Any) -> None: ...


class OnnxModel:
    def __init__(self, blob: bytes, device: str, threads: int) -> None:
        """Raises ModelError."""
        import onnxruntime as ort

        self._ort = ort
        self._errors = _errors(ort)
        self._session = self._load(blob, _providers(ort, device), threads)
        self._run = self._session._sess.run  # its own `run` first checks names, which hold here: 20 us beside a run
        self.inputs: Sequence[str] = [value.name for value in self._session.get_inputs()]
        self.outputs: Sequence[str] = [value.name for value in self._session.get_outputs()]

    def _load(self, blob: bytes, providers: list[Any], threads: int) -> Any:
        settings = self._ort.SessionOptions()
        settings.intra_op_num_threads = threads
        settings.inter_op_num_threads = 1
        settings.execution_mode = self._ort.ExecutionMode.ORT_SEQUENTIAL
        settings.log_severity_level = 3  # errors come as exceptions; warnings would fill the Redis log
        settings.add_session_config_entry("session.model_external_initializers_file_folder_path", NOWHERE)
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")  # cores belong to Redis too
        try:
            session = self._ort.InferenceSession(blob, settings, providers=providers)
        except self._errors as error:
            if NOWHERE in str(error):
                raise ModelError("ERR Initializer tensors with external data is not allowed.") from None
            raise ModelError(f"ERR {_line(error)}") from None
        session._model_bytes = None  # kept to change providers later, which is not done here: a second copy of the file
        return session

    def run(self, arrays: Sequence[Array], options: Any) -> list[Array]:
        if len(arrays) != len(self.inputs):
            raise ModelError("ERR Number of keys given as INPUTS here does not match model definition")
        try:
            outputs: list[Array] = self._run(self.outputs, dict(zip(self.inputs, arrays, strict=True)), options)
            return outputs
        except self._errors as error:
            raise ModelError(f"ERR {_line(error)}") from None

    def options(self) -> Any:
        return self._ort.RunOptions()

    def terminate(self, options: Any) -> None:
        options.terminate = True


def load(backend: str, device: str, blob: bytes, threads: int) -> Model:
    """Raises ModelError."""
    if backend != "ONNX":
        raise ModelError(f"ERR Could not load backend: {backend} is not supported here; convert the model to ONNX")
    return OnnxModel(blob, device, threads)


def versions() -> list[str]:
    """name=version of every backend that is installed."""
    try:
        return [f"onnxruntime={metadata.version('onnxruntime')}"]
    except metadata.PackageNotFoundError:
        return []


def _providers(ort: Any, device: str) -> list[Any]:
    if device.upper().startswith("CPU"):
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        raise ModelError(f"ERR device {device} is not available to this worker's onnxruntime; store the model on CPU")
    number = device.partition(":")[2] or "0"
    return [("CUDAExecutionProvider", {"device_id": number}), "CPUExecutionProvider"]


def _errors(ort: Any) -> tuple[type[Exception], ...]:
    """All that onnxruntime raises: its own classes have no common base."""
    state = ort.capi.onnxruntime_pybind11_state
    own = [c for c in vars(state).values() if isinstance(c, type) and issubclass(c, Exception)]
    return (*own, RuntimeError, ValueError, TypeError, MemoryError)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:600] or type(error).__name__
