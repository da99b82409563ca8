"""A trained BERT as transformers saves it: ``config.json``, ``model.safetensors``, ``tokenizer.json``."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from shardqa.errors import BadModel
from shardqa.models.reader import EVIDENCE, RELEVANCE
from shardqa_toolchain.conversion.families import MPNET, RELATIVE, RELATIVE_TABLE, bert_name, bert_settings
from shardqa_toolchain.conversion.graph import BertShape, Weights

CONFIG_FILE = "config.json"

WEIGHTS_FILE = "model.safetensors"

SPAN_HEAD = "qa_outputs"  # the span head's tensors begin so

# The tensors of a reader's two other heads begin so, and its outputs are named so; it has both or none.
EVIDENCE_HEADS = (EVIDENCE, RELEVANCE)

_FLOATS: dict[str, Any] = {"F16": np.float16, "F32": np.float32, "F64": np.float64}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The settings and weights of a trained BERT."""

    folder: Path
    config: dict[str, Any]  # in BERT's words, whatever the family was
    weights: Weights  # by BERT's names, float32
    shape: BertShape

    @classmethod
    def load(cls, folder: Path, also: Collection[str] = ()) -> Self:
        """Load a BERT, DistilBERT or ELECTRA, with a span head or without one; ``also`` as in `bert_settings`.

        Weights may be float16, bfloat16, float32 or float64. Raises BadModel, which names the file and what is wrong
        with it, for a folder that is no such checkpoint, a file cut short, a tensor that is missing, of another shape
        or not finite.
        """
        folder = Path(folder)
        settings = _config(folder / CONFIG_FILE)
        try:
            config = bert_settings(settings, also)
            shape = BertShape.of(config)
        except BadModel as error:
            raise BadModel(f"{folder / CONFIG_FILE}: {error}") from None
        weights = _weights(folder / WEIGHTS_FILE, settings.get("model_type", "bert"), shape)
        try:
            _check_shapes(weights, config, shape)
        except BadModel as error:
            raise BadModel(f"{folder / WEIGHTS_FILE}: {error}") from None
        return cls(folder, config, weights, shape)

    @property
    def has_span_head(self) -> bool:
        """Whether it can point at answers; an encoder alone can only be trained on."""
        return f"{SPAN_HEAD}.weight" in self.weights

    @property
    def has_evidence(self) -> bool:
        """Whether it has the outputs evidence and relevance."""
        return f"{EVIDENCE}.weight" in self.weights


def _config(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadModel(f"{path.parent} is not a checkpoint: {error}") from None
    if not isinstance(settings, dict):
        raise BadModel(f"{path} is {type(settings).__name__}, an object is needed; save the checkpoint again")
    return settings


def _weights(path: Path, family: str, shape: BertShape) -> dict[str, NDArray[np.float32]]:
    try:
        tensors = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except FileNotFoundError:
        raise BadModel(
            f"{path.parent} is not a checkpoint: {path.name} is missing; save it with save_pretrained of transformers"
        ) from None
    except (OSError, SafetensorError) as error:
        raise BadModel(f"{path} can't be read: {error}; copy or save it again") from None
    weights = {}
    for name, tensor in tensors:
        if tensor["dtype"].startswith(("I", "U")):
            continue  # numbers of positions, which older files of transformers hold
        value = _float32(path, name, tensor)
        if not np.isfinite(value).all():
            raise BadModel(f"{path}: {name} holds NaN or infinity; take an earlier checkpoint of the training")
        weights[bert_name(name, family)] = value
    if family in ("distilbert", MPNET) and "bert.embeddings.word_embeddings.weight" in weights:
        hidden = weights["bert.embeddings.word_embeddings.weight"].shape[-1]
        weights["bert.embeddings.token_type_embeddings.weight"] = np.zeros((2, hidden), np.float32)
    return weights


def _float32(path: Path, name: str, tensor: Mapping[str, Any]) -> NDArray[np.float32]:
    kind, data, shape = tensor["dtype"], tensor["data"], tensor["shape"]
    if kind == "BF16":
        # The upper half of a float32, which numpy has no type for.
        bits = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32).reshape(shape)
    if kind not in _FLOATS:
        raise BadModel(f"{path}: {name} is {kind}; F16, BF16, F32 or F64 is needed: save it before quantizing")
    return np.frombuffer(data, _FLOATS[kind]).astype(np.float32).reshape(shape)


def _check_shapes(weights: Weights, config: Mapping[str, Any], shape: BertShape) -> None:
    """Raise BadModel for the first tensor that is missing or not as its neighbours and the settings want it."""
    tables = "bert.embeddings."
    hidden = config.get("hidden_size", _tensor(weights, tables + "word_embeddings.weight").shape[-1])
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        _want(weights, f"{tables}{name}.weight", [None, hidden])
    _want_norm(weights, tables + "LayerNorm", hidden)
    if config.get("position_embedding_type") == RELATIVE:
        _want(weights, RELATIVE_TABLE, [None, config["num_attention_heads"]])
    for number in range(shape.layers):
        _check_layer(weights, f"bert.encoder.layer.{number}.", hidden, shape.head_size)
    if f"bert.encoder.layer.{shape.layers}.attention.self.query.weight" in weights:
        raise BadModel(f"it holds more than the {shape.layers} layers of {CONFIG_FILE}; correct num_hidden_layers")
    if f"{SPAN_HEAD}.weight" in weights:
        _want(weights, f"{SPAN_HEAD}.weight", [2, hidden])
        _want(weights, f"{SPAN_HEAD}.bias", [2])
    if any(f"{name}.weight" in weights for name in EVIDENCE_HEADS):
        for name in EVIDENCE_HEADS:
            _want_dense(weights, name, 1, hidden)


def _check_layer(weights: Weights, prefix: str, hidden: int, head_size: int) -> None:
    inner = len(_tensor(weights, prefix + "attention.self.query.weight"))
    if inner == 0 or inner % head_size:
        raise BadModel(
            f"{prefix}attention.self.query.weight has {inner} rows, a multiple of the head size {head_size} is needed; "
            f"correct head_size or num_attention_heads in {CONFIG_FILE}"
        )
    width = len(_tensor(weights, prefix + "intermediate.dense.weight"))
    if width == 0:
        raise BadModel(f"{prefix}intermediate.dense.weight has no rows; one at least must be left")
    for part in ("query", "key", "value"):
        _want_dense(weights, f"{prefix}attention.self.{part}", inner, hidden)
    _want_dense(weights, prefix + "attention.output.dense", hidden, inner)
    _want_dense(weights, prefix + "intermediate.dense", width, hidden)
    _want_dense(weights, prefix + "output.dense", hidden, width)
    _want_norm(weights, prefix + "attention.output.LayerNorm", hidden)
    _want_norm(weights, prefix + "output.LayerNorm", hidden)


def _want_dense(weights: Weights, name: str, outputs: int, inputs: int) -> None:
    _want(weights, f"{name}.weight", [outputs, inputs])
    _want(weights, f"{name}.bias", [outputs])


def _want_norm(weights: Weights, name: str, hidden: int) -> None:
    _want(weights, f"{name}.weight", [hidden])
    _want(weights, f"{name}.bias", [hidden])


def _want(weights: Weights, name: str, needed: list[int | None]) -> None:
    """Raises BadModel for a tensor of another shape; ``None`` stands for any size but 0."""
    shape = list(_tensor(weights, name).shape)
    fits = len(shape) == len(needed) and all(a == b or (b is None and a) for a, b in zip(shape, needed, strict=True))
    if not fits:
        sizes = ["any" if size is None else size for size in needed]
        raise BadModel(f"{name} has shape {shape}, {sizes} is needed; does {CONFIG_FILE} belong to these weights?")


def _tensor(weights: Weights, name: str) -> NDArray[np.float32]:
    if name not in weights:
        raise BadModel(f"{name} is missing; is this a whole checkpoint?")
    return weights[name]
