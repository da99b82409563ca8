"""From a trained checkpoint to a smaller reader: int8 in ONNX, or bfloat16 in TorchScript.

The shipped reader is the form "dynamic"; `int8.py` says what that computes. onnxruntime has no bfloat16 products on
CPUs, torch has: on processors with AMX or AVX-512 BF16 they take less than half of float32's time.
"""

import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from shardqa.errors import BadData, SetupError
from shardqa_toolchain.cards import CardStep, Json
from shardqa_toolchain.conversion.checked import Check, convert
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.export import AS_IT_COMES, write_reader, write_torchscript
from shardqa_toolchain.conversion.graph import Layers
from shardqa_toolchain.conversion.heads import whole_network
from shardqa_toolchain.conversion.int8 import StaticLayers, TokenLayers
from shardqa_toolchain.conversion.ranges import PERCENTILE, SAMPLES, measure_largest, measure_moments, measure_ranges
from shardqa_toolchain.conversion.verify import QUANTIZED, Verdict

FORMS = ("dynamic", "static", "bf16")

LEAST_GAIN = 1.1  # times as fast as float32 that bfloat16 must be to pay

TIMED_TOKENS, TIMED_ROUNDS = 128, 9


@dataclass(frozen=True, slots=True)
class Calibration:
    """Questions that static ranges are measured on."""

    questions: Path  # SQuAD file
    samples: int = SAMPLES  # questions drawn from it
    percentile: float = PERCENTILE  # percent of the activations within the range; 100 for all


def quantize(
    source: Path,
    out: Path,
    form: str = "dynamic",
    calibration: Calibration | None = None,
    check: Check = AS_IT_COMES,
) -> Verdict:
    """Write a checkpoint's reader with fewer bits to the new folder ``out``, and compare it with the checkpoint.

    Forms: "dynamic", int8 with a scale per token; "static", int8 with ranges from ``calibration``; "bf16", TorchScript.
    Raises BadModel for a source that is no reader and for a result that does not pass, BadData for settings or
    calibration data that can't be used, SetupError when ``out`` can't be written or bfloat16 does not pay here.
    """
    if form not in FORMS:
        raise BadData(f"form is {form!r}, {', '.join(FORMS[:-1])} or {FORMS[-1]} is needed")
    if (form == "static") != (calibration is not None):
        raise BadData(f"form is {form!r}: calibration data goes with static, and only with it")
    checkpoint = Checkpoint.load(source)
    settings: Json = {"form": form}
    if form == "bf16":
        settings |= {"times_as_fast": check_bf16_pays(checkpoint)}
        return _convert(checkpoint, out, settings, check)
    layers: Layers
    if calibration is None:
        largest, measured_on = measure_largest(checkpoint)
        layers = TokenLayers(largest, measure_moments(checkpoint))
        settings |= {"evened_on": measured_on}
    else:
        ranges = measure_ranges(checkpoint, calibration.questions, calibration.samples, calibration.percentile)
        layers = StaticLayers(ranges)
        settings |= {**asdict(calibration), "questions": calibration.questions.name}
    return _convert(checkpoint, out, settings, check, layers)


def _convert(checkpoint: Checkpoint, out: Path, settings: Json, check: Check, layers: Layers | None = None) -> Verdict:
    def write(folder: Path) -> None:
        if layers is None:
            write_torchscript(checkpoint, folder, halves=True)
        else:
            write_reader(checkpoint, whole_network(checkpoint, layers), folder)

    return convert(checkpoint.folder, out, CardStep("quantize", settings), write, QUANTIZED, check)


def check_bf16_pays(checkpoint: Checkpoint) -> float:
    """Returns the times by which bfloat16 is faster than float32, on one row; raises SetupError when they are few."""
    gain = bf16_gain(checkpoint)
    if gain < LEAST_GAIN:
        raise SetupError(
            f"bfloat16 is {gain:.2f} times as fast as float32 on this processor, {LEAST_GAIN} times is needed to pay "
            "(AMX or AVX-512 BF16 give that); quantize to int8: --form dynamic"
        )
    return round(gain, 2)


def bf16_gain(checkpoint: Checkpoint) -> float:
    """Returns the time of float32 over that of bfloat16, medians of both in turn on one thread."""
    import torch

    from shardqa_toolchain.conversion.torchscript import TracedReader

    readers = {kind: TracedReader(checkpoint.folder).to(kind) for kind in (torch.float32, torch.bfloat16)}
    tokens = min(TIMED_TOKENS, len(checkpoint.weights["bert.embeddings.position_embeddings.weight"]))
    row = torch.ones(1, tokens, dtype=torch.int64)
    times: dict[torch.dtype, list[float]] = {kind: [] for kind in readers}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _ in range(TIMED_ROUNDS):
            for kind, reader in readers.items():
                began = time.perf_counter()
                with torch.no_grad():
                    reader(row, row, torch.zeros_like(row))
                times[kind].append(time.perf_counter() - began)
    finally:
        torch.set_num_threads(threads)
    return statistics.median(times[torch.float32]) / statistics.median(times[torch.bfloat16])
