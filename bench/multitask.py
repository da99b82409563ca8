"""Five tasks in one pass against five single models: time, and each task's score.

    python bench/multitask.py --work /tmp/multitask

Six trainings from one start, on the same rows: the joint model's every row has all five labels. A single model goes
through them once; the joint one, which stands for five, may do so more often (``--joint-passes``). An interrupted run
goes on where it stopped; what is in ``--work`` already is not made again.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from common import SHARED

from shardqa import machine
from shardqa_toolchain.cards import Card
from shardqa_toolchain.multitask.session import MultitaskSession
from shardqa_toolchain.training import loop, multitask
from shardqa_toolchain.training.multitask_recipe import MultitaskRecipe, TaskEntry

KINDS = {"qa": "span", "said": "answerable", "topic": "sequence", "capitals": "tokens", "quantities": "tokens"}
SCHEMES = {"capitals": "plain"}
# The metric that a task is judged by.
MAIN = {"qa": "F1", "said": "accuracy", "topic": "accuracy", "capitals": "word accuracy", "quantities": "entity F1"}

JOINT = "joint"
# Of the joint losses. With equal ones the others hardly learn: at the start the gradient of spans has the norm 24, the
# others' have 0.6 to 2.3.
WEIGHTS = {"qa": 0.3, "said": 3.0, "topic": 4.0, "capitals": 8.0, "quantities": 150.0}
# Of the joint recipe: spans, which the start knows, are held to what it says while the other heads begin.
FRESH_RATE, KEEP = 30.0, 8.0
TIMED_ROWS, ROUNDS = 64, 7
LEAST_RATIO, MOST_LOSS = 4.0, 0.5


def entry(task: str, data: Path, weight: float) -> TaskEntry:
    train, dev = ((str(data / f"{task}-{part}.jsonl"),) for part in ("train", "dev"))
    return TaskEntry(task, KINDS[task], train, dev, weight, scheme=SCHEMES.get(task, "bio"))


def recipe(tasks: Sequence[str], start: Path, data: Path, passes: float) -> MultitaskRecipe:
    schedule = loop.Schedule(passes=passes, tokens=4096, rate=1e-4, save_seconds=150)
    if len(tasks) == 1:
        return MultitaskRecipe(start=str(start), task=(entry(tasks[0], data, 1.0),), schedule=schedule)
    entries = tuple(entry(task, data, WEIGHTS[task]) for task in tasks)
    return MultitaskRecipe(start=str(start), fresh_rate=FRESH_RATE, keep=KEEP, task=entries, schedule=schedule)


def trained(name: str, tasks: Sequence[str], start: Path, work: Path, passes: float, threads: int) -> Path:
    """The int8 folder of a model of these tasks, made unless it is there."""
    out = work / name
    if not out.exists():
        began = time.monotonic()
        made = recipe(tasks, start, work / "data", passes)
        multitask.train(made, out, work / f"{name}.work", _said(name), precisions=(multitask.INT8,), threads=threads)
        typer.echo(f"{name}: {time.monotonic() - began:.0f} s", err=True)
    return out / multitask.INT8


def _said(name: str) -> Callable[[loop.Progress], None]:
    def report(progress: loop.Progress) -> None:
        speed = progress.rows / progress.seconds
        line = f"{name}: step {progress.step}/{progress.steps} loss {progress.loss:.3f} {speed:.0f} rows/s"
        typer.echo(line, err=True)

    return report


def scores(folder: Path) -> dict[str, float]:
    """Each task's main score, from the model's card."""
    found = {(one.set.removesuffix(" dev"), one.metric): one.value for one in Card.load(folder).scores}
    return {task: found[task, metric] for task, metric in MAIN.items() if (task, metric) in found}


def timed(joint: Path, singles: Sequence[Path], texts: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """Seconds that all tasks of these texts take in one model and in five, one thread each, medians of both in turn."""
    one, five = MultitaskSession(joint), [MultitaskSession(folder) for folder in singles]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for sessions, found in zip(([one], five), times, strict=True):
            began = time.perf_counter()
            for session in sessions:
                session.read_all(texts)
            found.append(time.perf_counter() - began)
    return statistics.median(times[0]), statistics.median(times[1])


def timed_rows(data: Path) -> list[tuple[str, str]]:
    lines = (data / "topic-dev.jsonl").read_text(encoding="utf-8").splitlines()[:TIMED_ROWS]
    return [(line["text"], line["question"]) for line in map(json.loads, lines)]


def print_scores(joint: dict[str, float], single: dict[str, float]) -> None:
    typer.echo(f"{'task':12} {'metric':14} {'single':>7} {'joint':>7} {'gain':>6}")
    for task, metric in MAIN.items():
        gain = joint[task] - single[task]
        mark = "" if gain >= -MOST_LOSS else "  lost more than wanted"
        typer.echo(f"{task:12} {metric:14} {single[task]:7.2f} {joint[task]:7.2f} {gain:+6.2f}{mark}")


def print_times(joint: Path, singles: Sequence[Path], data: Path) -> None:
    asked = timed_rows(data)
    for what, chunks in (("batched", [asked]), ("one at a time", [[one] for one in asked[:16]])):
        pairs = [timed(joint, singles, chunk) for chunk in chunks]
        one, five = (sum(pair[which] for pair in pairs) for which in (0, 1))
        texts = sum(map(len, chunks))
        typer.echo(
            f"five tasks, {what}: one pass {texts / one:.1f} texts/s, five models {texts / five:.1f} texts/s, "
            f"ratio {five / one:.2f}x (wanted {LEAST_RATIO:.0f}x)"
        )


def main(
    work: Annotated[Path, typer.Option(help="Folder for data, models and what resuming needs.")] = Path(
        "/tmp/shardqa-multitask"
    ),
    shared: Annotated[Path, typer.Option(help="Folder with data/squad and models/.")] = SHARED,
    start: Annotated[Path | None, typer.Option(help="Checkpoint to start from; reader-v0 unless given.")] = None,
    rows: Annotated[int, typer.Option(help="Rows to learn from.")] = 10_000,
    passes: Annotated[float, typer.Option(help="Times that a single model goes through them.")] = 1.0,
    joint_passes: Annotated[float, typer.Option(help="Times that the joint model does.")] = 6.0,
    threads: Annotated[int, typer.Option(help="Threads that measure scores.")] = 2,
) -> None:
    """Train, measure and compare."""
    start = start or shared / "models" / "reader-v0"
    if not (work / "data").exists():
        make = [sys.executable, str(Path(__file__).with_name("multitask_data.py")), "--tokenizer", str(start)]
        options = ["--shared", str(shared), "--rows", str(rows), "--out", str(work / "data.unfinished")]
        subprocess.run([*make, *options], check=True)
        (work / "data.unfinished").rename(work / "data")
    joint = trained(JOINT, list(KINDS), start, work, joint_passes, threads)
    singles = [trained(task, [task], start, work, passes, threads) for task in KINDS]
    typer.echo(machine.label())
    print_scores(scores(joint), {task: value for folder in singles for task, value in scores(folder).items()})
    print_times(joint, singles, work / "data")


if __name__ == "__main__":
    typer.run(main)
