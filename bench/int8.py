"""The cost of int8: EM and F1 of a checkpoint in int8 and float32, same questions of SQuAD 1.1 dev, paragraph given.

Two threads, 2,000 questions drawn with a fixed seed; QUESTIONS=10570 takes all (about 10 minutes on two cores). Skips
where the checkpoint, the questions or the package onnx (extra `models`, writes the float32 network) is absent.
"""

import importlib.util
import os
import tempfile
from pathlib import Path

from common import SHARED

from shardqa import machine
from shardqa_toolchain.measure import Scores, measure

CHECKPOINT = Path(os.environ.get("CHECKPOINT", SHARED / "models" / "reader-v0"))
QUESTIONS = SHARED / "data" / "squad" / "dev-v1.1.json.gz"
LIMIT = int(os.environ.get("QUESTIONS", "2000"))
THREADS = 2


def line(name: str, scores: Scores) -> str:
    milliseconds = scores.seconds / scores.questions * 1e3
    return f"  {name:8}  EM {scores.exact_match:.2f}  F1 {scores.f1:.2f}  {milliseconds:.1f} ms a question"


def main() -> None:
    absent = [str(path) for path in (CHECKPOINT, QUESTIONS) if not path.exists()]
    if importlib.util.find_spec("onnx") is None:
        absent.append("the package onnx (pip install './toolchain')")
    if absent:
        print(f"skipped: {', '.join(absent)} not here")
        return
    from shardqa_toolchain.conversion.export import export
    from shardqa_toolchain.conversion.quantize import quantize

    with tempfile.TemporaryDirectory(prefix="shardqa-int8-") as folder:
        export(CHECKPOINT, Path(folder) / "float32")
        quantize(CHECKPOINT, Path(folder) / "int8")
        float32 = measure(Path(folder) / "float32", QUESTIONS, LIMIT, THREADS)
        int8 = measure(Path(folder) / "int8", QUESTIONS, LIMIT, THREADS)
    print(f"{int8.questions:,} questions of SQuAD 1.1 dev, right paragraph given, {THREADS} threads, {machine.label()}")
    print(f"  {CHECKPOINT.name}")
    print(line("float32", float32))
    print(line("int8", int8))
    print(f"  int8 loses {float32.f1 - int8.f1:.2f} F1 (wanted <= 0.5)")


if __name__ == "__main__":
    main()
