"""Scores of the shipped reader on SQuAD 1.1 dev and SQuAD 2.0 dev, right paragraph given, and the cost of int8.

On SQuAD 2.0 answers below the shipped threshold are refused; ECE is the calibration error over 15 bins. CHECKPOINT=DIR
names the checkpoint that the reader was made of: its float32 form answers the same questions. QUESTIONS=500 takes fewer
of each set; all take about 20 minutes on two cores. Skips what is absent.
"""

import importlib.util
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import SHARED

from shardqa import machine
from shardqa.models import shipped
from shardqa.models.scoring import Scoring
from shardqa_toolchain import measure, no_answer_metrics
from shardqa_toolchain.cards import address
from shardqa_toolchain.measure import Read

READER = Path(os.environ.get("READER", shipped.folder()))
CHECKPOINT = Path(os.environ["CHECKPOINT"]) if "CHECKPOINT" in os.environ else None
SQUAD_1, SQUAD_2 = (SHARED / "data" / "squad" / f"dev-v{number}.json.gz" for number in ("1.1", "2.0"))
LIMIT = int(os.environ["QUESTIONS"]) if "QUESTIONS" in os.environ else None
WANTED = {"SQuAD 1.1": 84.5, "SQuAD 2.0": 70.0, "ECE": 0.05, "int8 loss": 0.3}


def forms(work: Path) -> dict[str, Path]:
    """The shipped reader and, where it can be made, its float32 form."""
    readers = {"int8": READER}
    if CHECKPOINT is None:
        print("  float32 skipped: CHECKPOINT does not name the reader's checkpoint")
        return readers
    absent = [] if CHECKPOINT.exists() else [f"{CHECKPOINT} is not here (name the reader's own: CHECKPOINT=DIR)"]
    if importlib.util.find_spec("onnx") is None:
        absent.append("onnx is not installed (pip install './toolchain[train]')")
    if absent:
        print(f"  float32 skipped: {', '.join(absent)}")
        return readers
    from shardqa_toolchain.conversion.export import export
    from shardqa_toolchain.ladder.run import quantized_from

    if quantized_from(READER) != address(CHECKPOINT):
        print(f"  float32 skipped: {READER.name} was not made from {CHECKPOINT}")
        return readers
    export(CHECKPOINT, work / "float32")
    return {"float32": work / "float32", **readers}


def reads(folder: Path, questions: Path, answerable: bool) -> list[Read]:
    threads = len(os.sched_getaffinity(0))
    return list(measure.read_all(folder, questions, LIMIT, threads, answerable=answerable))


def answered(name: str, answers: Sequence[Read]) -> float:
    scores = measure.scores(answers)
    milliseconds = 1e3 * scores.seconds / scores.questions
    print(
        f"  SQuAD 1.1 dev, {name:8} {scores.questions:,} questions: EM {scores.exact_match:.2f} F1 {scores.f1:.2f} "
        f"(wanted: {WANTED['SQuAD 1.1']}), {milliseconds:.1f} ms a question",
        flush=True,
    )
    return scores.f1


def refused(name: str, answers: Sequence[Read], scoring: Scoring) -> float:
    scores = no_answer_metrics.no_answer_metrics(answers, scoring)
    print(
        f"  SQuAD 2.0 dev, {name:8} {scores.questions:,} questions: EM {scores.exact_match:.2f} F1 {scores.f1:.2f} "
        f"(wanted: {WANTED['SQuAD 2.0']}), of answerable ones F1 {scores.answerable_f1:.2f}, {scores.refused:.2f} % of "
        f"the others refused, threshold {scores.threshold:.3f}, ECE {scores.calibration_error:.4f} "
        f"(wanted: {WANTED['ECE']} or less)",
        flush=True,
    )
    return scores.f1


def main() -> None:
    print(f"{READER.name}, right paragraph given, {machine.label()}")
    present = [path for path in (SQUAD_1, SQUAD_2) if path.exists()]
    for path in (SQUAD_1, SQUAD_2):
        if path not in present:
            print(f"  skipped: {path} is not here")
    if not present:
        return
    scoring = Scoring.load(READER)
    losses: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="shardqa-scores-") as work:
        for form, folder in forms(Path(work)).items():
            for path in present:
                found = reads(folder, path, answerable=path == SQUAD_1)
                f1 = answered(form, found) if path == SQUAD_1 else refused(form, found, scoring)
                losses.setdefault("SQuAD 1.1" if path == SQUAD_1 else "SQuAD 2.0", {})[form] = f1
    for name, f1s in losses.items():
        if "float32" in f1s:
            loss = f1s["float32"] - f1s["int8"]
            print(f"  int8 loses {loss:.2f} F1 on {name} (wanted: {WANTED['int8 loss']} or less)")


if __name__ == "__main__":
    main()
