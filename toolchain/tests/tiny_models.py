"""Small random BERTs as folders, written without torch; layers may differ in size, as pruned ones do."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa.models import shipped
from shardqa.models.reader import Batch

Weights = dict[str, NDArray[np.float32]]

HIDDEN, HEAD_SIZE, VOCABULARY, POSITIONS = 32, 8, 1200, 304

LAYERS = ((4, 64), (2, 40), (1, 7))  # heads and columns of the feed-forward of each layer

DEVIATION = 0.3  # of the weights: ten times BERT's, so that a random network's logits are of some size


def tiny_config(layers: Sequence[tuple[int, int]] = LAYERS, **changes: Any) -> dict[str, Any]:
    return {
        "architectures": ["BertForQuestionAnswering"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "head_size": HEAD_SIZE,
        "num_attention_heads": HIDDEN // HEAD_SIZE,
        "num_hidden_layers": len(layers),
        "layer_norm_eps": 1e-12,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        **changes,
    }


def tiny_weights(
    layers: Sequence[tuple[int, int]] = LAYERS,
    seed: int = 0,
    vocabulary: int = VOCABULARY,
    positions: int = POSITIONS,
    deviation: float = DEVIATION,
) -> Weights:
    shapes: dict[str, tuple[int, ...]] = {
        "bert.embeddings.word_embeddings.weight": (vocabulary, HIDDEN),
        "bert.embeddings.position_embeddings.weight": (positions, HIDDEN),
        "bert.embeddings.token_type_embeddings.weight": (2, HIDDEN),
        **norm("bert.embeddings.LayerNorm"),
        **dense("qa_outputs", 2, HIDDEN),
    }
    for number, (heads, width) in enumerate(layers):
        prefix = f"bert.encoder.layer.{number}."
        for part in ("query", "key", "value"):
            shapes |= dense(f"{prefix}attention.self.{part}", heads * HEAD_SIZE, HIDDEN)
        shapes |= dense(prefix + "attention.output.dense", HIDDEN, heads * HEAD_SIZE)
        shapes |= dense(prefix + "intermediate.dense", width, HIDDEN)
        shapes |= dense(prefix + "output.dense", HIDDEN, width)
        shapes |= {**norm(prefix + "attention.output.LayerNorm"), **norm(prefix + "output.LayerNorm")}
    dice = np.random.default_rng(seed)
    weights = {name: dice.normal(0, deviation, shape).astype(np.float32) for name, shape in shapes.items()}
    return {name: value + ("LayerNorm.weight" in name) for name, value in weights.items()}


def evidence_heads(seed: int = 0, deviation: float = DEVIATION) -> Weights:
    """The tensors that give a reader the outputs evidence and relevance."""
    dice = np.random.default_rng((seed, 1))
    shapes = {**dense("evidence", 1, HIDDEN), **dense("relevance", 1, HIDDEN)}
    return {name: dice.normal(0, deviation, shape).astype(np.float32) for name, shape in shapes.items()}


def dense(name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (HIDDEN,), f"{name}.bias": (HIDDEN,)}


def write_tiny(
    folder: Path, weights: Weights | None = None, config: dict[str, Any] | None = None, tokenizer: bool = True
) -> Path:
    """Write a checkpoint's folder: a random one's unless given."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(tiny_weights() if weights is None else weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(tiny_config() if config is None else config))
    if tokenizer:
        (folder / "tokenizer.json").write_text(json.dumps(small_tokenizer()))
    return folder


def small_tokenizer() -> dict[str, Any]:
    """The shipped reader's tokenizer with the first VOCABULARY words of its vocabulary."""
    found: dict[str, Any] = json.loads((shipped.folder() / "tokenizer.json").read_text())
    words = found["model"]["vocab"]
    found["model"]["vocab"] = {word: number for word, number in words.items() if number < VOCABULARY}
    return found


def tiny_batch(tokens: int = 24, real: int = 17) -> Batch:
    """Two rows, the second padded after ``real`` tokens."""
    mask = np.ones((2, tokens), dtype=np.int64)
    mask[1, real:] = 0
    types = np.zeros((2, tokens), dtype=np.int64)
    types[:, 9:] = 1
    return Batch((0, 1), np.random.default_rng(1).integers(1, VOCABULARY, (2, tokens)) * mask, mask, types)
