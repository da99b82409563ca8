"""An encoder small enough for tests: a text's vector is the sum of its words' random ones, so that what shares words is
near, and texts that differ have vectors that differ."""

import json
import shutil
from pathlib import Path

import numpy as np

from shardqa.models import shipped
from shardqa.models.embedding import WIDTH
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.conversion.builder import GraphBuilder, model_of
from shardqa_toolchain.conversion.embedding import EmbeddingHead

WORDS = 997  # vectors; words share them


def write_tiny_encoder(folder: Path, seed: int = 0) -> Path:
    """Writes the files of an encoder; another seed is another one."""
    folder.mkdir()
    graph = GraphBuilder()
    table = np.random.default_rng(seed).normal(size=(WORDS, WIDTH)).astype(np.float32)
    number = graph.node("Mod", ["input_ids", graph.constant("words", np.array(WORDS, np.int64))], "number")
    outputs = EmbeddingHead().write(graph, graph.node("Gather", [graph.constant("table", table), number], "hidden"))
    (folder / "model.onnx").write_bytes(model_of(graph, outputs).SerializeToString())
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 512}))
    shutil.copyfile(shipped.folder() / TOKENIZER_FILE, folder / TOKENIZER_FILE)
    shipped.write_checksums(folder)
    return folder
