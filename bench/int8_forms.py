"""How far int8 moves the logits: evened inputs, groups of the sensitive product, static ranges and clipping.

100 questions of SQuAD 1.1 dev through each network and its float32 one; QUESTIONS=500 takes more. Errors are in
spreads, as `shardqa models verify` tells them. Skips where checkpoint, questions or the package onnx are absent.
"""

import importlib.util
import os
import tempfile
from pathlib import Path

from common import SHARED

CHECKPOINT = SHARED / "models" / "reader-v0"
SQUAD = SHARED / "data" / "squad"
DEV, TRAIN = SQUAD / "dev-v1.1.json.gz", SQUAD / "train-v1.1.json.gz"
LIMIT = int(os.environ.get("QUESTIONS", "100"))
GROUPS = (1536, 768, 384, 256)
PERCENTILES = (100.0, 99.999)
SAMPLES = 64


def main() -> None:
    absent = [str(path) for path in (CHECKPOINT, DEV, TRAIN) if not path.exists()]
    if importlib.util.find_spec("onnx") is None:
        absent.append("the package onnx (pip install 'shardqa[models]')")
    if absent:
        print(f"skipped: {', '.join(absent)} not here")
        return
    compare_forms()


def compare_forms() -> None:
    from shardqa.models.tokenizer import TOKENIZER_FILE
    from shardqa.models.toolchain.conversion.checkpoint import Checkpoint
    from shardqa.models.toolchain.conversion.graph import FloatLayers, Layers, bert_reader
    from shardqa.models.toolchain.conversion.int8 import StaticLayers, TokenLayers
    from shardqa.models.toolchain.conversion.networks import OnnxNetwork, OpenNetwork
    from shardqa.models.toolchain.conversion.probes import probe
    from shardqa.models.toolchain.conversion.ranges import measure_largest, measure_ranges
    from shardqa.models.toolchain.conversion.verify import QUANTIZED, compare

    checkpoint = Checkpoint.load(CHECKPOINT)
    inputs = probe(CHECKPOINT / TOKENIZER_FILE, 30_522, 512, DEV, LIMIT)

    def opened(layers: Layers) -> OpenNetwork:
        with tempfile.TemporaryDirectory(prefix="shardqa-int8-") as folder:
            file = Path(folder) / "model.onnx"
            file.write_bytes(bert_reader(checkpoint.weights, checkpoint.shape, layers).SerializeToString())
            return OpenNetwork(file, OnnxNetwork(file), None, 30_522, 512)

    largest, _ = measure_largest(checkpoint)
    forms: dict[str, Layers] = {"inputs not evened out": TokenLayers()}
    forms |= {f"a scale per token and {size} inputs": TokenLayers(largest, size) for size in GROUPS}
    for percentile in PERCENTILES:
        ranges = measure_ranges(checkpoint, TRAIN, SAMPLES, percentile)
        forms[f"static ranges, {percentile:g} % within"] = StaticLayers(ranges)
    exact = opened(FloatLayers())
    print(f"{inputs.inputs}; error and largest difference in spreads")
    for name, layers in forms.items():
        found = compare(exact, opened(layers), inputs, QUANTIZED)
        print(
            f"  {name:36}  error {found.error:.4f}  largest {found.largest_difference / found.spread:.2f}", flush=True
        )


if __name__ == "__main__":
    main()
