"""Naive serving (torch and transformers, a BERT-base for each of three tasks) against the shipped reader, side by side.

The three networks are a span reader and two classifiers (answerable or not, kind of question), with random weights:
they cost what trained ones cost. A row has 128 tokens; naive asks all three networks about it, the shipped reader is
one pass. Memory is what of the process is resident once it has answered; start is from the process's beginning to its
first answer, with the files in the page cache already. QUICK=1 takes tiny networks: a trial that the bench runs.

Serving each task from a process of its own, as teams do, is shown too: three processes of a span reader (a classifier
differs by some thousand weights of 110 million), memory of all three with what they share counted once, start of the
last. They contend for the cores, so that their latency is left out.
"""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

from shardqa import machine
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.ladder import inputs, weights
from shardqa_toolchain.ladder.job import ONNX, TRANSFORMERS, Job
from shardqa_toolchain.ladder.processes import Ran, time_step
from shardqa_toolchain.ladder.results import Figures, figures

TOKENS = 128
ROWS = 4  # different ones, read again and again
ROUNDS, SECONDS = 3, 4.0
WANTED = 15
PER_TASK = "naive, a process per task"
QUICK = bool(os.environ.get("QUICK"))


def long_enough(tokenizer: Tokenizer) -> list[inputs.LadderQuestion]:
    """Questions whose paragraphs fill a row."""
    asked = inputs.draw(None, 10_000)
    return [
        one
        for one in asked
        if len(tokenizer.question(one.question.text)) + len(tokenizer.passage(one.text)) + 3 >= TOKENS
    ][:ROWS]


def jobs(work: Path) -> dict[str, list[Job]]:
    """Naive and shipped, on all threads and on one."""
    inputs.save(long_enough(Tokenizer.load(shipped.folder())), work / "rows.json")
    sizes = weights.TINY_BASE if QUICK else weights.BASE
    kinds = {"spans": weights.READER, "answerable": weights.CLASSIFIER, "kind": weights.CLASSIFIER}
    folders = tuple(
        str(weights.write_random(work / name, sizes, shipped.folder(), kind, seed))
        for seed, (name, kind) in enumerate(kinds.items())
    )
    cores = len(os.sched_getaffinity(0))
    naive = Job(TRANSFORMERS, folders, str(work / "rows.json"), cores, TOKENS, 0 if QUICK else SECONDS, exact=True)
    own = replace(naive, backend=ONNX, folders=(str(shipped.checked_folder()),))
    named = {}
    for threads in dict.fromkeys((cores, 1)):
        named[f"naive, threads: {threads}"] = [replace(naive, threads=threads)]
        named[f"shipped, threads: {threads}"] = [replace(own, threads=threads)]
    named[PER_TASK] = [replace(naive, folders=folders[:1])] * len(folders)
    return named


def measured(work: Path) -> dict[str, Figures]:
    """Medians of rounds in which the processes take turns."""
    runs: dict[str, list[list[Ran]]] = {}
    work_of = jobs(work)
    for number in range(1 if QUICK else ROUNDS):
        for name in list(work_of)[:: -1 if number % 2 else 1]:
            runs.setdefault(name, []).append(time_step(name, work_of[name]))
    table = {name: figures(runs[name]) for name in work_of}
    last = median(max(ran.start for ran in together) for together in runs[PER_TASK])
    table[PER_TASK] = replace(table[PER_TASK], memory=table[PER_TASK].together, start=last, p50=None, p99=None)
    return table


def line(name: str, row: Figures) -> str:
    latencies = " ".join(f"{'' if value is None else f'{value:.2f}':>9}" for value in (row.p50, row.p99))
    return f"  {name:28} {row.memory:>9.0f} {row.start:>8.2f} {latencies}"


def ratios(naive: Figures, own: Figures) -> str:
    found = {"memory": naive.memory / own.memory, "start": naive.start / own.start}
    if naive.p50 is not None and own.p50 is not None:
        found["inference, 1 x 128 tokens"] = naive.p50 / own.p50
    return ", ".join(f"{what} {ratio:.1f}x" for what, ratio in found.items())


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="shardqa-naive-") as work:
        table = measured(Path(work))
    size = "tiny" if QUICK else "BERT-base"
    print(f"naive: torch + transformers, 3 networks, {size}, random weights; {machine.label()}")
    print(f"  {'':28} memory MB  start s    p50 ms    p99 ms")
    for name, one in table.items():
        print(line(name, one))
    print(f"  naive / shipped (wanted: {WANTED}x each)")
    best = next(row for name, row in table.items() if "shipped" in name)
    for name in (name for name in table if name.startswith("naive")):
        print(f"    {name:26} {ratios(table[name], table.get(name.replace('naive', 'shipped'), best))}")


if __name__ == "__main__":
    main()
