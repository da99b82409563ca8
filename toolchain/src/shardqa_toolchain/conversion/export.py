"""From a trained checkpoint to the exact reader, float32, in ONNX.

This is the reader that the int8 one is measured against; it is four times as large and is not shipped.
"""

import io
import warnings
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


def write_torchscript(source: Path, file: Path) -> None:
    """Writes a checkpoint's reader as TorchScript, float32: what `AI.MODELSTORE … TORCH` takes and users move from.

    Inputs and outputs are those of the ONNX reader, by place: int64 [batch, tokens] in, start and end logits out.
    Raises BadModel for a source that is no reader, OSError.
    """
    import torch

    from shardqa_toolchain.training.saved import load_reader

    class Traced(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.reader = load_reader(source).eval().requires_grad_(False)

        def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return self.reader(*inputs).unbind(-1)  # type: ignore[no-any-return]

    example = (torch.zeros(2, 5, dtype=torch.int64), torch.ones(2, 5, dtype=torch.int64), torch.zeros(2, 5).long())
    content = io.BytesIO()  # torch's own writer reports a full disk as a RuntimeError without a cause
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.trace(Traced(), example), content)  # type: ignore[no-untyped-call]
    file.write_bytes(content.getvalue())


def write_reader(checkpoint: Checkpoint, model: onnx.ModelProto, folder: Path) -> None:
    """Write a reader's files: network, tokenizer, the checkpoint's configuration; raises BadModel as they do."""
    if model.ByteSize() > MOST_BYTES:
        raise BadModel(f"the network takes {model.ByteSize():,} bytes, an ONNX file holds {MOST_BYTES:,}; distil it")
    onnx.checker.check_model(model)
    (folder / MODEL_FILE).write_bytes(model.SerializeToString())
    words = len(checkpoint.weights["bert.embeddings.word_embeddings.weight"])
    write_companions(checkpoint.folder, checkpoint.config, words, folder)
