"""Checkpoints in and out of torch: a folder as transformers writes it becomes a network, and the other way."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.families import RELATIVE
from shardqa_toolchain.training.network import Sizes, SpanReader, load_encoder, tensors

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"


def load_reader(folder: Path, evidence: bool = False) -> SpanReader:
    """A reader with a checkpoint's weights; heads that the checkpoint lacks are fresh, as for fine-tuning.

    It has the outputs evidence and relevance where the checkpoint has them, or where ``evidence`` says so. Raises
    BadModel for a folder that is no BERT or whose tensors are missing or misshapen.
    """
    start = Checkpoint.load(folder, also=(RELATIVE,))
    network = SpanReader(Sizes.of(start.config, start.weights), evidence or start.has_evidence)
    load_encoder(network.encoder, start.weights)
    with torch.no_grad():
        for name, parameter in head_tensors(network).items():
            if name in start.weights:
                parameter.copy_(torch.from_numpy(start.weights[name]))
    return network


def head_tensors(network: SpanReader) -> dict[str, Tensor]:
    """The heads' weights by their names in a checkpoint; setting one sets the network's."""
    return {
        f"{name}.{part}": value for name, head in network.heads().items() for part, value in head.named_parameters()
    }


def write_checkpoint(network: SpanReader, source: Path, out: Path) -> None:
    """Write a reader's weights into the folder ``out``, with the tokenizer of the checkpoint that it comes from."""
    heads = {name: value.detach().cpu().clone() for name, value in head_tensors(network).items()}
    save_file({**tensors(network.encoder), **heads}, out / WEIGHTS_FILE, {"format": "pt"})
    config = {**_config(source), **config_of(network.encoder.sizes)}
    (out / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(source / TOKENIZER_FILE, out / TOKENIZER_FILE)


def _config(source: Path) -> dict[str, Any]:
    return Checkpoint.load(source, also=(RELATIVE,)).config


def config_of(sizes: Sizes) -> dict[str, Any]:
    """Returns the settings of ``config.json`` that a shape decides.

    ``head_size`` is ours: where layers differ in their number of heads, it is what a layer's own number follows from.
    """
    settings: dict[str, Any] = {
        "architectures": ["BertForQuestionAnswering"],
        "model_type": "bert",
        "hidden_size": sizes.hidden,
        "num_hidden_layers": len(sizes.layers),
        "num_attention_heads": max(layer.heads for layer in sizes.layers),
        "intermediate_size": max(layer.width for layer in sizes.layers),
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": sizes.positions,
        "type_vocab_size": sizes.types,
        "layer_norm_eps": sizes.epsilon,
    }
    if len(set(sizes.layers)) > 1 or sizes.layers[0].heads * sizes.head_size != sizes.hidden:
        settings["head_size"] = sizes.head_size
    return settings
