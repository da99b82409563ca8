"""From a trained checkpoint to the reader that is shipped, in int8; `int8.py` says what that computes."""

from pathlib import Path

from shardqa_toolchain.cards import CardStep
from shardqa_toolchain.conversion.checked import Check, convert
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.export import AS_IT_COMES, write_reader
from shardqa_toolchain.conversion.heads import whole_network
from shardqa_toolchain.conversion.int8 import TokenLayers
from shardqa_toolchain.conversion.ranges import measure_inputs
from shardqa_toolchain.conversion.verify import QUANTIZED, Verdict


def quantize(source: Path, out: Path, check: Check = AS_IT_COMES) -> Verdict:
    """Write a checkpoint's reader in int8 to the new folder ``out``, and compare it with the checkpoint.

    Raises BadModel for a source that is no reader and for a result that does not pass, SetupError when ``out`` can't be
    written.
    """
    checkpoint = Checkpoint.load(source)
    inputs = measure_inputs(checkpoint)
    model = whole_network(checkpoint, TokenLayers(inputs.largest, inputs.moments))
    step = CardStep("quantize", {"form": "dynamic", "evened_on": inputs.rows})
    return convert(source, out, step, lambda folder: write_reader(checkpoint, model, folder), QUANTIZED, check)
