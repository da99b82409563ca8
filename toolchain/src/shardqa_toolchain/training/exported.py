"""BERT encoders that torch wrote as float ONNX files, as checkpoints: some are shared in no other form.

torch keeps the names of tables, biases and gains; a product's weight loses its own and is told by the node that uses
it, such as "/encoder/layer.3/output/dense/MatMul".
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper
from safetensors.numpy import save_file

from shardqa.errors import BadModel
from shardqa.models.reader import batches
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE, WEIGHTS_FILE, Checkpoint
from shardqa_toolchain.conversion.networks import OnnxNetwork, read_onnx
from shardqa_toolchain.conversion.ranges import probe_rows
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.training.saved import load_reader

HEAD_SIZE = 32  # columns of an attention head in MiniLMs, which the file does not tell

LEAST_COSINE = 0.999  # of a row's mean states, in the file and in the checkpoint

STATES = "last_hidden_state"


def adopt_exported(source: Path, words: Path, out: Path) -> None:
    """Write the encoder in an ONNX file to ``out`` as a checkpoint with the tokenizer of ``words``.

    Raises BadModel for a file that is no such encoder and where the vectors of both differ, BadData and SetupError as
    `folders.written_atomically` does.
    """
    weights = _weights(read_onnx(source))
    layers = {int(found[1]) for name in weights if (found := re.match(r"encoder\.layer\.(\d+)\.", name))}
    table, widen = "embeddings.word_embeddings.weight", "encoder.layer.0.intermediate.dense.weight"
    if missing := {table, widen} - weights.keys():
        raise BadModel(f"{source} has no {missing.pop()}; torch's exports of encoders with BERT's names are read")
    hidden = weights[table].shape[1]
    settings = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": hidden,
        "num_hidden_layers": len(layers),
        "num_attention_heads": hidden // HEAD_SIZE,
        "intermediate_size": len(weights[widen]),
        "layer_norm_eps": 1e-12,
        "vocab_size": len(weights[table]),
        "max_position_embeddings": len(weights["embeddings.position_embeddings.weight"]),
        "type_vocab_size": len(weights["embeddings.token_type_embeddings.weight"]),
    }
    with written_atomically(out) as folder:
        save_file(weights, folder / WEIGHTS_FILE, {"format": "pt"})
        (folder / CONFIG_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        shutil.copyfile(words / TOKENIZER_FILE, folder / TOKENIZER_FILE)
        least = _least_cosine(source, folder)
        if least < LEAST_COSINE:
            raise BadModel(f"vectors of {source} and of the checkpoint made of it have cosines of {least:.4f} only")
        step = cards.CardStep("adopt", {"words": sha256(words / TOKENIZER_FILE)}, {"least_cosine": round(least, 6)})
        cards.derive(source, folder, step, out.name)


def _weights(model: ModelProto) -> dict[str, NDArray[np.float32]]:
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    weights = {
        name: value for name, value in constants.items() if name.startswith(("embeddings.", "encoder."))
        and value.dtype == np.float32
    }  # fmt: skip
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in constants:
            name = node.name.removeprefix("/").removesuffix("/MatMul").replace("/", ".")
            weights[f"{name}.weight"] = np.ascontiguousarray(constants[node.input[1]].T)
    return weights


def _least_cosine(file: Path, folder: Path) -> float:
    exported, network = OnnxNetwork(file), load_reader(folder).eval().encoder
    least = 1.0
    for batch in batches(probe_rows(Checkpoint.load(folder)), max_rows=1):
        feeds = batch.feeds()
        theirs = torch.from_numpy(exported.outputs(batch)[STATES]).mean(1)
        with torch.no_grad():
            ours = network(*(torch.from_numpy(feeds[name]) for name in ("input_ids", "attention_mask",
                                                                        "token_type_ids")))[-1].mean(1)  # fmt: skip
        least = min(least, float(torch.cosine_similarity(ours, theirs).min()))
    return least
