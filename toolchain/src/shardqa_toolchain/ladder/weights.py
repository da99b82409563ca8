"""Random checkpoints of any size: they cost what trained ones cost, and answer nothing."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import SetupError
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE, WEIGHTS_FILE

READER, CLASSIFIER = "BertForQuestionAnswering", "BertForSequenceClassification"

LABELS = 2  # of a random classifier


@dataclass(frozen=True, slots=True)
class RandomSizes:
    layers: int
    hidden: int
    heads: int
    width: int
    # Standard deviation of the weights (Devlin et al. 2019, their published code).
    deviation: float = 0.02
    vocabulary: int = 30522
    positions: int = 512


# BERT-base, 110 million parameters (Devlin et al. 2019, section 3).
BASE = RandomSizes(layers=12, hidden=768, heads=12, width=3072)

TINY_BASE = RandomSizes(layers=2, hidden=64, heads=4, width=128, deviation=0.2)
# Small enough for a trial of seconds; wide weights, so that their logits are of some size.
TINY = RandomSizes(layers=1, hidden=32, heads=4, width=48, deviation=0.2)


def write_random(folder: Path, sizes: RandomSizes, tokenizer: Path, kind: str = READER, seed: int = 0) -> Path:
    """Write a checkpoint as transformers does, with the tokenizer of the folder ``tokenizer``; returns its folder.

    Raises SetupError when there is no room for it.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    dice = np.random.default_rng(seed)
    weights = {name: _values(dice, name, shape, sizes.deviation) for name, shape in _shapes(sizes, kind)}
    try:
        folder.mkdir(parents=True)
        save_file(weights, folder / WEIGHTS_FILE, {"format": "pt"})
        (folder / CONFIG_FILE).write_text(json.dumps(_config(sizes, kind), indent=2) + "\n", encoding="utf-8")
        shutil.copyfile(tokenizer / TOKENIZER_FILE, folder / TOKENIZER_FILE)
    except (OSError, SafetensorError) as error:
        size = sum(value.nbytes for value in weights.values()) / 1e6
        raise SetupError(
            f"{folder} can't be written: {error}; {size:.0f} MB are needed: free some space, or set TMPDIR"
        ) from None
    return folder


def _values(dice: np.random.Generator, name: str, shape: tuple[int, ...], deviation: float) -> NDArray[np.float32]:
    values = dice.standard_normal(shape, dtype=np.float32) * np.float32(deviation)
    return values + np.float32(1) if name.endswith("LayerNorm.weight") else values


def _config(sizes: RandomSizes, kind: str) -> dict[str, Any]:
    return {
        "architectures": [kind],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.width,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": sizes.positions,
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "num_labels": LABELS,
        "type_vocab_size": 2,
        "vocab_size": sizes.vocabulary,
    }


def _shapes(sizes: RandomSizes, kind: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the tensors, by transformers' names."""
    tables = {"word": sizes.vocabulary, "position": sizes.positions, "token_type": 2}
    yield from ((f"bert.embeddings.{name}_embeddings.weight", (rows, sizes.hidden)) for name, rows in tables.items())
    yield from _norm("bert.embeddings.LayerNorm", sizes.hidden)
    for number in range(sizes.layers):
        yield from _layer(f"bert.encoder.layer.{number}.", sizes.hidden, sizes.width)
    if kind == CLASSIFIER:
        yield from _dense("bert.pooler.dense", sizes.hidden, sizes.hidden)
    yield from _dense("classifier" if kind == CLASSIFIER else "qa_outputs", LABELS, sizes.hidden)


def _layer(prefix: str, hidden: int, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    for part in ("query", "key", "value"):
        yield from _dense(f"{prefix}attention.self.{part}", hidden, hidden)
    yield from _dense(f"{prefix}attention.output.dense", hidden, hidden)
    yield from _norm(f"{prefix}attention.output.LayerNorm", hidden)
    yield from _dense(f"{prefix}intermediate.dense", width, hidden)
    yield from _dense(f"{prefix}output.dense", hidden, width)
    yield from _norm(f"{prefix}output.LayerNorm", hidden)


def _dense(name: str, outputs: int, inputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _norm(name: str, hidden: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (hidden,)
    yield f"{name}.bias", (hidden,)
