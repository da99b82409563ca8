"""The libraries that run models. The first model that needs one imports it: a worker without starts fast.

A loaded model is used by one thread at a time (ai/batching.py); runs release the interpreter's lock.
"""

import ctypes
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from shardqa.tensors import NOTHING, Array
from shardqa.worker.ai.mapped_onnx import without_weights
from shardqa.worker.ai.messages import ModelError as ModelError  # its users take it from here
from shardqa.worker.ai.protobuf import BadProtobuf
from shardqa.worker.ai.scripts import Reach

NAMES_OF_TYPES = "float double float16 bool string int8 int16 int32 int64 uint8 uint16 uint32 uint64"
ONNX_TYPES = frozenset(f"tensor({name})" for name in NAMES_OF_TYPES.split())
LIBRARIES_OF_TENSORFLOW = (
    "libtensorflow_framework.so.2",
    "libtensorflow_cc.so.2",
    "python/lib_pywrap_tensorflow_common.so",
)
NOWHERE = "/nonexistent"  # where a model's external data would be looked for: models come whole, as one blob


@dataclass(frozen=True, slots=True)
class File:
    """A model as it is stored."""

    backend: str
    device: str  # CPU, CPU:n, GPU or GPU:n, in any case
    blob: bytes  # none where it lies in a file; with `path`: all but the weights that lie there
    path: Path | None = None  # of a file that other workers of this host have, too
    padded: Sequence[str] = ()  # inputs whose dimension 1 may be filled up
    inputs: Sequence[str] = ()  # of TF, whose graphs don't say them; of a script: its entry points
    outputs: Sequence[str] = ()


class Model(Protocol):
    inputs: Sequence[str]
    outputs: Sequence[str]
    splits: bool  # rows of all outputs follow those of the inputs, so that requests may share a run
    concurrent: bool  # several threads may run it at once

    def run(self, arrays: Sequence[Array], options: Any) -> list[Array]:
        """Runs the model once; inputs and outputs are in the order of `inputs` and `outputs`. Raises ModelError."""

    def sequence_cuts(self, names: frozenset[str]) -> Sequence[Sequence[int] | None]:
        """Returns for each output its dimensions that are as long as these inputs' dimension 1; None: it does not say.

        Raises ModelError for an input that can't be padded.
        """

    def options(self) -> Any:
        """Returns a handle for one run: `terminate(options)` stops that run from another thread."""

    def terminate(self, options: Any) -> None: ...


class OnnxModel:
    concurrent = True

    def __init__(self, file: File, threads: int) -> None:
        """Loads the file for `threads` threads. Raises ModelError for a file, a device or types that can't be run."""
        import onnxruntime as ort

        self._ort = ort
        self._errors = _errors(ort)
        self._session = self._load(file, _providers(ort, file.device), threads)
        self._run = self._session._sess.run  # its own `run` first checks names, which hold here: 20 us beside a run
        inputs = self._session.get_inputs()
        outputs = self._session.get_outputs()
        tensor_outputs = [output for output in outputs if output.type.startswith("tensor(")]
        _check_types("input", inputs)
        _check_types("output", tensor_outputs)
        if not tensor_outputs:
            raise ModelError("ERR the model gives no tensor, but sequences or maps; export it with a tensor as output")
        self.inputs: Sequence[str] = [value.name for value in inputs]
        self.outputs: Sequence[str] = [value.name for value in outputs]
        self._tensor_names = [value.name for value in tensor_outputs]
        self._others = [place for place, value in enumerate(outputs) if value not in tensor_outputs]
        self.splits = all(_has_free_rows(value) for value in (*inputs, *tensor_outputs))
        self.input_shapes: Mapping[str, Sequence[Any]] = {value.name: value.shape for value in inputs}
        self.output_shapes: Sequence[Sequence[Any]] = [
            value.shape if value in tensor_outputs else () for value in outputs
        ]

    def _load(self, file: File, providers: list[Any], threads: int) -> Any:
        settings = self._ort.SessionOptions()
        settings.intra_op_num_threads = threads
        settings.inter_op_num_threads = 1
        settings.execution_mode = self._ort.ExecutionMode.ORT_SEQUENTIAL
        settings.log_severity_level = 3  # errors come as exceptions; warnings would fill the Redis log
        folder = str(file.path.parent) if file.path else NOWHERE
        settings.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        if file.path:  # what onnxruntime rearranges is a copy of this process' own
            settings.add_session_config_entry("session.disable_prepacking", "1")
            settings.graph_optimization_level = self._ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")  # cores belong to Redis too
        try:
            session = self._ort.InferenceSession(file.blob, settings, providers=providers)
        except self._errors as error:
            if NOWHERE in str(error) or "external tensors" in str(error):
                raise ModelError("ERR Initializer tensors with external data is not allowed.") from None
            raise ModelError(f"ERR {_line(error)}") from None
        if session.get_providers()[0] != _name(providers[0]):  # onnxruntime goes on without it and says so in its log
            raise ModelError(
                f"ERR device {file.device} can't be used: onnxruntime has the provider, but not its driver"
            )
        session._model_bytes = None  # kept to change providers later, which is not done here: a second copy of the file
        return session

    def run(self, arrays: Sequence[Array], options: Any) -> list[Array]:
        if len(arrays) != len(self.inputs):
            raise ModelError("ERR Number of keys given as INPUTS here does not match model definition")
        try:
            outputs: list[Array] = self._run(self._tensor_names, dict(zip(self.inputs, arrays, strict=True)), options)
        except self._errors as error:
            raise ModelError(f"ERR {_line(error)}") from None
        for place in self._others:  # maps and sequences, as scikit-learn's ZipMap gives: of as many rows
            outputs.insert(place, np.empty(outputs[0].shape[:1] or (1,), NOTHING))
        return outputs

    def sequence_cuts(self, names: frozenset[str]) -> Sequence[Sequence[int] | None]:
        return sequence_cuts(names, self.input_shapes, self.output_shapes)

    def notes(self) -> dict[str, str]:
        """Returns what the file says of itself by name (ONNX: `metadata_props`)."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    def options(self) -> Any:
        return self._ort.RunOptions()

    def terminate(self, options: Any) -> None:
        options.terminate = True


PACKAGES = {
    "ONNX": "onnxruntime",
    "TORCH": "torch",
    "SCRIPT": "torch",
    "TFLITE": "ai-edge-litert",
    "TF": "tensorflow",
    "OPENVINO": "openvino",
}
OTHER_BUILDS = {"tensorflow": ("tensorflow-cpu",)}  # the same library in packages of other names


def load(file: File, threads: int, reach: Reach) -> Model:
    """Loads a model or script with the library of its backend; `reach` is what a script may call. Raises ModelError."""
    package = PACKAGES[file.backend]
    try:
        if file.backend == "ONNX":
            return _load_onnx(file, threads)
        if package == "torch":
            _load_without_lock("torch", ["lib/libtorch_python.so"], os.RTLD_GLOBAL)
            from shardqa.worker.ai.torch_backend import TorchModel, TorchScript

            if file.backend == "TORCH":
                return TorchModel(_content(file), file.device, threads)
            return TorchScript(file.blob, file.device, file.inputs, threads, reach)
        if file.backend == "OPENVINO":
            sys.modules.setdefault("openvino_telemetry", cast(Any, None))  # calls home; openvino goes on without it
            from shardqa.worker.ai.openvino_backend import OpenvinoModel

            return OpenvinoModel(_content(file), file.device, threads)
        if file.backend == "TFLITE":
            from shardqa.worker.ai.tflite_backend import TfliteModel

            return TfliteModel(_content(file), file.device, threads)
        _import_tensorflow()
        from shardqa.worker.ai.tensorflow_backend import TensorflowModel

        return TensorflowModel(_content(file), file.device, file.inputs, file.outputs, threads)
    except ImportError as error:
        reason = f"it needs {package}, which can't be imported in the worker's environment"
        print(f"could not load backend {file.backend}: {reason}: {error}", file=sys.stderr)
        raise ModelError(f"ERR Could not load backend {file.backend}: {reason}") from None


def _load_onnx(file: File, threads: int) -> Model:
    try:
        content = without_weights(file.path) if file.path else file.blob
    except (OSError, BadProtobuf) as error:
        raise ModelError(f"ERR the model's file can't be read: {_line(error)}") from None
    return OnnxModel(replace(file, blob=content), threads)


def _content(file: File) -> bytes:
    """Returns the model's file, read where the blob does not have it. Raises ModelError."""
    try:
        return file.path.read_bytes() if file.path else file.blob
    except OSError as error:
        raise ModelError(f"ERR the model's file can't be read: {_line(error)}") from None


def _load_without_lock(package: str, libraries: Sequence[str], scope: int) -> None:
    """Loads a package's libraries before its import, which would keep the interpreter's lock for a second or more.

    The worker would seem to hang meanwhile.
    """
    spec = importlib.util.find_spec(package)
    if spec is not None and spec.origin is not None:
        for library in libraries:  # unlike CDLL(library), without the lock
            ctypes.CDLL(None).dlopen(bytes(Path(spec.origin).parent / library), os.RTLD_NOW | scope)


def _import_tensorflow() -> None:
    """Imports tensorflow without the folders that it, and what it draws with, would write to: a worker has none."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors come as exceptions
    tempfile.tempdir = tempfile.tempdir or NOWHERE
    _load_without_lock("tensorflow", LIBRARIES_OF_TENSORFLOW, os.RTLD_LOCAL)
    drawing = "matplotlib" not in sys.modules
    if drawing:
        sys.modules["matplotlib"] = cast(Any, None)  # keras goes on without it
    try:
        importlib.import_module("tensorflow")
    finally:
        if drawing:
            del sys.modules["matplotlib"]


def versions() -> list[str]:
    """Returns name=version of every backend's package that is installed."""
    lines: list[str] = []
    for package in dict.fromkeys(PACKAGES.values()):
        for name in (package, *OTHER_BUILDS.get(package, ())):
            try:
                lines.append(f"{package}={metadata.version(name)}")
                break
            except metadata.PackageNotFoundError:
                continue
    return lines


def _providers(ort: Any, device: str) -> list[Any]:
    if device.upper().startswith("CPU"):
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        raise ModelError(f"ERR device {device} is not available to this worker's onnxruntime; store the model on CPU")
    number = device.partition(":")[2] or "0"
    return [("CUDAExecutionProvider", {"device_id": number}), "CPUExecutionProvider"]


def _name(provider: Any) -> Any:
    return provider[0] if isinstance(provider, tuple) else provider


def _errors(ort: Any) -> tuple[type[Exception], ...]:
    """Returns all classes that onnxruntime raises: its own have no common base."""
    state = ort.capi.onnxruntime_pybind11_state
    own = [c for c in vars(state).values() if isinstance(c, type) and issubclass(c, Exception)]
    return (*own, RuntimeError, ValueError, TypeError, MemoryError)


PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")  # of Python's; RedisAI's users know the rest


def _line(error: Exception) -> str:
    """Returns an error's text as one line, with a space for each line's end, as RedisAI's users know these texts."""
    text = PREFIX.sub("", str(error).strip().replace("\n", " "))
    return text.replace("the inputs/outputs or", "the inputs or")[:600] or type(error).__name__


def _check_types(what: str, values: Sequence[Any]) -> None:
    """Raises ModelError for a type that no AI.TENSORSET could give or AI.TENSORGET show."""
    for value in values:
        if value.type not in ONNX_TYPES:
            raise ModelError(
                f"ERR {what} {value.name} of the model is a {value.type}, which is no tensor of Redis; cast it"
            )


def _has_free_rows(value: Any) -> bool:
    """Returns whether a first dimension is declared, without a size."""
    return len(value.shape) > 0 and not isinstance(value.shape[0], int)


def sequence_cuts(
    inputs_padded: frozenset[str], inputs: Mapping[str, Sequence[Any]], outputs: Sequence[Sequence[Any]]
) -> Sequence[Sequence[int] | None]:
    """Returns the cuts of a Model (`Model.sequence_cuts`) by the shapes that it declares. Raises ModelError."""
    for name in inputs_padded:
        shape = inputs[name]
        if len(shape) < 2 or isinstance(shape[1], int):
            raise ModelError(f"ERR PADDED names {name}, whose second dimension is not free: its shape is {shape}")
    names = {inputs[name][1] for name in inputs_padded}
    others = {size for shape in inputs.values() for size in shape} - names
    return [_cuts(shape, names, others) for shape in outputs]


def _cuts(shape: Sequence[Any], names: set[Any], others: set[Any]) -> Sequence[int] | None:
    """Returns the dimensions of an output that bear one of `names`; None where one has a name that no input has."""
    if any(size is None or (isinstance(size, str) and size not in names | others) for size in shape[1:]):
        return None
    return [axis for axis in range(1, len(shape)) if shape[axis] in names]
