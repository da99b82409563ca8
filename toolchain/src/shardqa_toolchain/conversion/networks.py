"""A model's folder or file as something to run, whatever its form: so that any two can be compared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.reader import EVIDENCE, MAX_ROW_TOKENS, RELEVANCE, SPANS, Batch
from shardqa.models.session import LOAD_FAULTS, MODEL_FILE
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE, SPAN_HEAD, WEIGHTS_FILE, Checkpoint
from shardqa_toolchain.conversion.heads import task_heads
from shardqa_toolchain.conversion.reference import Outputs, Reference
from shardqa_toolchain.multitask.tasks import SETTING, TaskSet

# What onnx raises for a file that is none; protobuf comes with it, without types.
DecodeError: Any = import_module("google.protobuf.message").DecodeError


SAFE_VOCABULARY = 1_000  # where nothing says how many words there are, ids below this are in any BERT's table


class Network(Protocol):
    """Anything that turns a batch into named outputs."""

    def outputs(self, batch: Batch) -> Outputs:
        """Returns the outputs for a batch by name. Raises BadModel when the network can't be run on it."""


@dataclass(frozen=True, slots=True)
class OpenNetwork:
    """A network and what its folder says about it."""

    path: Path
    network: Network
    tokenizer: Path | None
    vocabulary: int  # ids below this may be fed
    positions: int  # tokens of the longest row


def open_network(path: Path, threads: int = 1) -> OpenNetwork:
    """Open a checkpoint's or ONNX folder, or an ONNX file; raises BadModel when it is none of them."""
    path = Path(path)
    file = _network_file(path)
    folder = file.parent
    vocabulary, positions = _sizes(folder / CONFIG_FILE)
    network = _opened(file, threads)
    tokenizer = folder / TOKENIZER_FILE
    return OpenNetwork(path, network, tokenizer if tokenizer.is_file() else None, vocabulary, positions)


def is_quantized(path: Path) -> bool:
    """Whether the network holds a matrix of 8 bits; raises BadModel when it can't be read."""
    file = _network_file(Path(path))
    if file.name == WEIGHTS_FILE:
        return False
    tensors = read_onnx(file).graph.initializer
    eight_bits = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    return any(tensor.data_type in eight_bits and len(tensor.dims) > 1 for tensor in tensors)


def read_onnx(file: Path) -> onnx.ModelProto:
    """The network of an ONNX file, without data that it keeps in other files; raises BadModel when it is none."""
    try:
        return onnx.load(file, load_external_data=False)
    except (OSError, DecodeError) as error:
        raise BadModel(f"{file} is not an ONNX file: {error or 'it is cut short'}; export it again") from None


def _network_file(path: Path) -> Path:
    if path.is_file():
        return path
    for name in (MODEL_FILE, WEIGHTS_FILE):
        if (path / name).is_file():
            return path / name
    raise BadModel(f"{path} is no model: name an ONNX file, or a folder with {MODEL_FILE} or {WEIGHTS_FILE}")


def _opened(file: Path, threads: int) -> Network:
    if file.name == WEIGHTS_FILE:
        checkpoint = Checkpoint.load(file.parent)
        return TaskNetwork.of(checkpoint) if SETTING in checkpoint.config else CheckpointNetwork.of(checkpoint)
    return OnnxNetwork(file, threads)


def _sizes(config: Path) -> tuple[int, int]:
    """Vocabulary and positions, as the folder's settings tell them."""
    try:
        settings = json.loads(config.read_text(encoding="utf-8")) if config.exists() else {}
    except (OSError, ValueError) as error:
        raise BadModel(f"{config} can't be read: {error}; correct it or take it away") from None
    sizes = [
        settings.get("vocab_size", SAFE_VOCABULARY),
        min(MAX_ROW_TOKENS, settings.get("max_position_embeddings", MAX_ROW_TOKENS)),
    ]
    return sizes[0], sizes[1]


@dataclass(frozen=True, slots=True)
class CheckpointNetwork:
    """A checkpoint, computed in numpy."""

    reference: Reference
    has_evidence: bool = False

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """Makes the network of a checkpoint. Raises BadModel where it has no span head."""
        if not checkpoint.has_span_head:
            raise BadModel(f"{checkpoint.folder} has no span head ({SPAN_HEAD}); train one: shardqa-models train qa")
        return cls(Reference(checkpoint.weights, checkpoint.shape), checkpoint.has_evidence)

    def outputs(self, batch: Batch) -> Outputs:
        hidden = self.reference.hidden(batch)
        logits = self.reference.dense(SPAN_HEAD, hidden)
        outputs = {name: logits[..., number] for number, name in enumerate(SPANS)}
        if self.has_evidence:
            outputs[EVIDENCE] = self.reference.dense(EVIDENCE, hidden)[..., 0]
            outputs[RELEVANCE] = self.reference.dense(RELEVANCE, hidden[:, 0])[..., 0]
        return outputs


@dataclass(frozen=True, slots=True)
class TaskNetwork:
    """A checkpoint of several tasks, computed in numpy."""

    reference: Reference
    tasks: TaskSet

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """Makes the network of a checkpoint; raises BadModel where a head is missing or misshapen."""
        tasks = TaskSet.of(checkpoint.config)
        task_heads(tasks, checkpoint.weights)
        return cls(Reference(checkpoint.weights, checkpoint.shape), tasks)

    def outputs(self, batch: Batch) -> Outputs:
        hidden = self.reference.hidden(batch)
        outputs: Outputs = {}
        for size in self.tasks.heads:
            logits = self.reference.dense(size.tensor, hidden[:, 0] if size.at_first else hidden)
            parts = np.moveaxis(logits, -1, 0) if len(size.outputs) > 1 else (logits,)
            outputs |= zip(size.outputs, parts, strict=True)
        return outputs


class OnnxNetwork:
    """An ONNX file in onnxruntime."""

    def __init__(self, file: Path, threads: int = 1) -> None:
        """Loads a file. Raises BadModel where onnxruntime can't, or the network wants inputs that rows do not have."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except LOAD_FAULTS as error:
            raise BadModel(f"{file} can't be loaded: {error}; export it again") from None
        self._file = file
        self._types = {port.name: port.type for port in self._session.get_inputs()}
        self._names = [port.name for port in self._session.get_outputs() if "float" in port.type]

    def outputs(self, batch: Batch) -> Outputs:
        values = self._session_run(self._feeds(batch.feeds()))
        return {name: value.astype(np.float32) for name, value in zip(self._names, values, strict=True)}

    def _feeds(self, feeds: Mapping[str, NDArray[np.int64]]) -> dict[str, Any]:
        unknown = set(self._types) - set(feeds)
        if unknown:
            raise BadModel(f"{self._file} wants {', '.join(sorted(unknown))}; only {', '.join(feeds)} can be fed")
        kinds = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
        return {name: feeds[name].astype(kinds.get(kind, np.int64)) for name, kind in self._types.items()}

    def _session_run(self, feeds: dict[str, Any]) -> list[Any]:
        try:
            return list(self._session.run(self._names, feeds))
        except LOAD_FAULTS as error:
            raise BadModel(f"{self._file} can't be run: {error}; export it again, with dynamic axes") from None
