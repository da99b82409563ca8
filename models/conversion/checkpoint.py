"""A fine-tuned BERT as transformers saves it: ``config.json``, ``model.safetensors``, ``tokenizer.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from shardqa.errors import BadModel
from shardqa.models.conversion.graph import BertShape, Weights

ARCHITECTURE = "BertForQuestionAnswering"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a reader is exported from."""

    folder: Path
    config: dict[str, Any]
    weights: Weights
    shape: BertShape

    @classmethod
    def load(cls, folder: Path) -> Checkpoint:
        """Load a folder, weights cast to float32; raises BadModel when it is not such a checkpoint."""
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            tensors = load_file(folder / "model.safetensors")
        except (OSError, ValueError, SafetensorError) as error:
            raise BadModel(f"{folder} is not a checkpoint: {error}") from None
        wrong = _mismatch(config)
        if wrong:
            raise BadModel(f"{folder}/config.json: {wrong}; only {ARCHITECTURE} checkpoints can be exported")
        weights = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
        return cls(folder, config, weights, BertShape.of(config))


def _mismatch(config: dict[str, Any]) -> str | None:
    """The first setting under which the graph of `graph.py` would compute something else than transformers."""
    wanted = {
        "architectures": [ARCHITECTURE],
        "model_type": "bert",
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
    }
    for name, value in wanted.items():
        if config.get(name, value) != value:
            return f"{name} is {config[name]!r}, {value!r} is needed"
    missing = [name for name in ("num_hidden_layers", "num_attention_heads", "layer_norm_eps") if name not in config]
    return f"{missing[0]} is missing" if missing else None
