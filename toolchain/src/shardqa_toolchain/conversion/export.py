"""From a trained checkpoint to the exact reader, float32, in ONNX.

This is the reader that the int8 one is measured against; it is four times as large and is not shipped.
"""

from pathlib import Path

import onnx

from shardqa.errors import BadModel
from shardqa.models.session import MODEL_FILE
from shardqa_toolchain.cards import CardStep
from shardqa_toolchain.conversion.builder import OPSET
from shardqa_toolchain.conversion.checked import Check, convert
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.companions import write_companions
from shardqa_toolchain.conversion.graph import FloatLayers
from shardqa_toolchain.conversion.heads import whole_network
from shardqa_toolchain.conversion.verify import FLOAT, Verdict

MOST_BYTES = 2**31 - 1  # Protobuf's bound on a message, which an ONNX file is

AS_IT_COMES = Check()


def export(source: Path, out: Path, check: Check = AS_IT_COMES) -> Verdict:
    """Write a checkpoint's reader to the new folder ``out``, and compare it with the checkpoint.

    It takes rows of any number and length. Raises BadModel for a source that is no reader and for a result that does
    not pass, SetupError when ``out`` can't be written.
    """
    checkpoint = Checkpoint.load(source)
    model = whole_network(checkpoint, FloatLayers())
    step = CardStep("export", {"form": "onnx", "opset": OPSET})
    return convert(source, out, step, lambda folder: write_reader(checkpoint, model, folder), FLOAT, check)


def write_reader(checkpoint: Checkpoint, model: onnx.ModelProto, folder: Path) -> None:
    """Write a reader's files: network, tokenizer, the checkpoint's configuration; raises BadModel as they do."""
    if model.ByteSize() > MOST_BYTES:
        raise BadModel(f"the network takes {model.ByteSize():,} bytes, an ONNX file holds {MOST_BYTES:,}; distil it")
    onnx.checker.check_model(model)
    (folder / MODEL_FILE).write_bytes(model.SerializeToString())
    words = len(checkpoint.weights["bert.embeddings.word_embeddings.weight"])
    write_companions(checkpoint.folder, checkpoint.config, words, folder)
