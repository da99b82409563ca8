"""One network for five tasks against five networks of one task each, int8, trained alike on the same small real sets.

span: SQuAD 1.1 (CC BY-SA 4.0). answerable, evidence (tokens) and kind (of a question, by its wording): SelQA
(Apache-2.0). level (of a text, three): OneStopQA (CC BY-SA 4.0). EXAMPLES=300 of each are learnt from, the start is the
shipped reader. Texts a second are of all five tasks, one text after another on one thread, both ways in turns. Skips
what is absent.
"""

import gzip
import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from common import SHARED

from shardqa import machine
from shardqa.models import shipped
from shardqa.models.session import MODEL_FILE, open_session
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.conversion.checked import Check
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.dequantize import dequantize
from shardqa_toolchain.conversion.heads import whole_network
from shardqa_toolchain.conversion.int8 import TokenLayers
from shardqa_toolchain.multitask.rows import task_rows
from shardqa_toolchain.multitask.tasks import HEADS, Task, TaskSet
from shardqa_toolchain.training import loop, multitask

EXAMPLES, DEV = int(os.environ.get("EXAMPLES", "300")), 400
PASSES, LONGEST = float(os.environ.get("PASSES", "2")), 1_100  # characters of a text
KINDS = {"span": "span", "answerable": "answerable", "evidence": "tokens", "kind": "text", "level": "text"}
LABELS = ("a", "b", "c")
ROUNDS, TIMED = 5, 10  # of the comparison of speeds; texts of a round


def evidence(name: str) -> list[dict[str, Any]]:
    with gzip.open(SHARED / "data" / "evidence" / f"{name}.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if len(line["context"]) < LONGEST]


def line_of(task: str, entry: dict[str, Any]) -> dict[str, Any]:
    text = {"text": entry["context"]} | ({} if task == "level" else {"question": entry["question"]})
    return (
        text
        | {
            "answerable": {"label": entry["answerable"]},
            "evidence": {"spans": [[*span, "EVIDENCE"] for span in entry["spans"]]},
            "kind": {"label": entry["kind"]},
            "level": {"label": str(entry.get("level"))},
        }[task]
    )


def lines(task: str, part: str) -> list[dict[str, Any]]:
    """Lines of a task's examples, always the same."""
    count = EXAMPLES if part == "train" else DEV
    if task == "span":
        content = squad.read(SHARED / "data" / "squad" / f"{part}-v1.1.json.gz")
        texts = {paragraph.id: paragraph.text for paragraph in content.paragraphs}
        found = [
            {"text": texts[one.document or ""], "question": one.text, "answer": [start, start + len(one.answers[0])]}
            for one in content.questions
            for start in one.starts[:1]
            if len(texts[one.document or ""]) < LONGEST
        ]
    else:
        entries = evidence("onestopqa" if task == "level" else "selqa")
        found = [line_of(task, one) for one in entries if one["split"] == part and one["kind"] != "keyword"]
    return random.Random(0).sample(found, min(count, len(found)))


def recipe_of(work: Path, tasks: Sequence[str]) -> multitask.MultitaskRecipe:
    entries = [
        multitask.TaskEntry(task, KINDS[task], (str(work / f"{task}-train.jsonl"),), (str(work / f"{task}-dev.jsonl"),))
        for task in tasks
    ]
    schedule = loop.Schedule(passes=PASSES, rate=1e-4, tokens=2048)
    return multitask.MultitaskRecipe(str(work / "start"), task=tuple(entries), schedule=schedule)


def untrained(work: Path, name: str, tasks: Sequence[str]) -> Path:
    """A network of these tasks in int8, rounded without data: it costs what a trained one costs."""
    start = Checkpoint.load(work / "start")
    several = TaskSet(HEADS, tuple(Task(task, KINDS[task], () if task == "span" else LABELS) for task in tasks))
    folder = work / f"{name}-int8"
    multitask.write_network(multitask.load_network(start, several), start, folder)
    model = whole_network(Checkpoint.load(folder), TokenLayers())
    (folder / MODEL_FILE).write_bytes(model.SerializeToString())
    return folder


def speed(folders: Sequence[Path], work: Path) -> float:
    """Texts a second, each read by all networks of these folders."""
    sessions = [open_session(folder, 1) for folder in folders]
    tokenizer, tasks = Tokenizer.load(folders[0]), TaskSet.load(folders[0])
    entries = [json.loads(line) for line in (work / "span-dev.jsonl").read_text().splitlines()[:TIMED]]
    rows = [row for one in entries for row in task_rows(tasks, one["text"], one["question"], {}, tokenizer, 384)]
    began = time.perf_counter()
    for row in rows:
        for session in sessions:
            session.run(None, row.row.feeds())
    return len(entries) / (time.perf_counter() - began)


def compare_speed(work: Path) -> None:
    """One network of all tasks against five of one task, all of whose weights are the same, which costs no less."""
    joint, alone = untrained(work, "together", list(KINDS)), [untrained(work, "alone", ["level"])] * len(KINDS)
    pairs = [(speed([joint], work), speed(alone, work)) for _ in range(ROUNDS)]
    ratio = median(one / five for one, five in pairs)
    print(f"one network for five tasks: {ratio:.2f} times the texts a second of five networks (wanted: 4)", flush=True)


def compare_scores(work: Path) -> None:
    scores = {}
    for tasks in (list(KINDS), *([task] for task in KINDS)):
        name = "-".join(tasks)
        scores[name] = multitask.train(recipe_of(work, tasks), work / name, work / f"{name}.work").scores
    print(f"{EXAMPLES} examples of each, {PASSES:g} passes; at most 0.5 points less than alone is wanted")
    for task in KINDS:
        print(f"  {task:12} together {scores['-'.join(KINDS)][task]:6.2f}, alone {scores[task][task]:6.2f}")


def main() -> None:
    if not (SHARED / "data" / "evidence").is_dir():
        print(f"skipped: {SHARED}/data is not here")
        return
    with tempfile.TemporaryDirectory(prefix="shardqa-multitask-") as folder:
        work = Path(folder)
        dequantize(shipped.folder(), work / "start", Check(limit=4))
        for task in KINDS:
            for part in ("train", "dev"):
                text = "".join(json.dumps(line) + "\n" for line in lines(task, part))
                (work / f"{task}-{part}.jsonl").write_text(text)
        print(machine.label())
        compare_speed(work)
        compare_scores(work)


if __name__ == "__main__":
    main()
