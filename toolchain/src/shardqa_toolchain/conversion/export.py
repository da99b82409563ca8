"""From a trained checkpoint to the exact reader, float32, in ONNX or TorchScript.

This is the reader that the int8 one is measured against; it is four times as large and is not shipped.
"""

from pathlib import Path

import onnx

from shardqa.errors import BadData, BadModel
from shardqa.models.session import MODEL_FILE
from shardqa_toolchain.cards import CardStep
from shardqa_toolchain.conversion.builder import OPSET
from shardqa_toolchain.conversion.checked import Check, convert
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.companions import write_companions
from shardqa_toolchain.conversion.graph import FloatLayers, SpanHead
from shardqa_toolchain.conversion.heads import whole_network
from shardqa_toolchain.conversion.networks import TORCHSCRIPT_FILE
from shardqa_toolchain.conversion.verify import FLOAT, Verdict

FORMS = ("onnx", "torchscript")

MOST_BYTES = 2**31 - 1  # Protobuf's bound on a message, which an ONNX file is

AS_IT_COMES = Check()


def export(source: Path, out: Path, form: str = "onnx", check: Check = AS_IT_COMES) -> Verdict:
    """Write a checkpoint's reader to the new folder ``out``, and compare it with the checkpoint.

    Both forms take rows of any number and length. Raises BadModel for a source that is no reader and for a result
    that does not pass, BadData for an unknown form, SetupError when ``out`` can't be written.
    """
    if form not in FORMS:
        raise BadData(f"form is {form!r}, {' or '.join(FORMS)} is needed")
    checkpoint = Checkpoint.load(source)
    step = CardStep("export", {"form": form, **({"opset": OPSET} if form == "onnx" else {})})
    return convert(Path(source), out, step, lambda folder: _write(checkpoint, form, folder), FLOAT, check)


def _write(checkpoint: Checkpoint, form: str, folder: Path) -> None:
    if form == "onnx":
        write_reader(checkpoint, whole_network(checkpoint, FloatLayers()), folder)
    else:
        write_torchscript(checkpoint, folder)


def write_reader(checkpoint: Checkpoint, model: onnx.ModelProto, folder: Path) -> None:
    """Write a reader's files: network, tokenizer, the checkpoint's configuration; raises BadModel as they do."""
    if model.ByteSize() > MOST_BYTES:
        raise BadModel(f"the network takes {model.ByteSize():,} bytes, an ONNX file holds {MOST_BYTES:,}; distil it")
    onnx.checker.check_model(model)
    (folder / MODEL_FILE).write_bytes(model.SerializeToString())
    write_companions(checkpoint.folder, checkpoint.config, _vocabulary(checkpoint), folder)


def write_torchscript(checkpoint: Checkpoint, folder: Path, halves: bool = False) -> None:
    """Write a reader's files with TorchScript, in bfloat16 if ``halves``; raises BadModel as `write_reader` does."""
    from shardqa_toolchain.conversion import torchscript

    SpanHead.of(checkpoint.weights)  # refuses an encoder alone
    torchscript.write(checkpoint.folder, folder / TORCHSCRIPT_FILE, halves)
    write_companions(checkpoint.folder, checkpoint.config, _vocabulary(checkpoint), folder)


def _vocabulary(checkpoint: Checkpoint) -> int:
    return len(checkpoint.weights["bert.embeddings.word_embeddings.weight"])
