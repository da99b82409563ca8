"""From a fine-tuned checkpoint to the exact reader in ONNX, float32.

    python -m shardqa.models.conversion.export --source ../shared/models/reader-v0 --out /tmp/reader-v0

This is the reader that the int8 one is measured against; it is four times as large and is not shipped.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated

import onnx
import typer

from shardqa.models.conversion.checkpoint import Checkpoint
from shardqa.models.conversion.graph import FloatLayers, bert_reader
from shardqa.models.session import MODEL_FILE
from shardqa.models.shipped import write_checksums
from shardqa.models.tokenizer import TOKENIZER_FILE

CONFIG_FILE = "config.json"


def write_reader(checkpoint: Checkpoint, model: onnx.ModelProto, out: Path) -> None:
    """Write a reader's folder: network, tokenizer, the checkpoint's configuration, checksums."""
    onnx.checker.check_model(model)
    out.mkdir(parents=True, exist_ok=True)
    onnx.save(model, out / MODEL_FILE)
    shutil.copyfile(checkpoint.folder / TOKENIZER_FILE, out / TOKENIZER_FILE)
    (out / CONFIG_FILE).write_text(json.dumps(checkpoint.config, indent=2) + "\n", encoding="utf-8")
    write_checksums(out)


def export(
    source: Annotated[Path, typer.Option(help="Folder of the checkpoint.")],
    out: Annotated[Path, typer.Option(help="Folder to write the reader to.")],
) -> None:
    """Export a checkpoint to ONNX in float32.

    Example: python -m shardqa.models.conversion.export --source ../shared/models/reader-v0 --out /tmp/reader-v0
    """
    checkpoint = Checkpoint.load(source)
    write_reader(checkpoint, bert_reader(checkpoint.weights, checkpoint.shape, FloatLayers()), out)


if __name__ == "__main__":
    typer.run(export)
