"""One step's process (``python -m shardqa_toolchain.ladder.worker JOB``): its own memory, start and threads.

stdout: ``{"first_answer": ..}``, the monotonic clock's time of it, then a line for each line of stdin, which names a
file of questions, the seconds to answer them for, and the tokens of every row. Libraries are imported where they are
used: a process pays for what its step needs alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shardqa.models.reader import Batch, batches
from shardqa_toolchain.measure import Read, read, readings

if TYPE_CHECKING:
    from shardqa.models.session import Logits
    from shardqa_toolchain.measure import QuestionRows

TORCH, ONNX = "torch", "onnx"
WARM_UP = 4  # questions answered before timing begins


@dataclass(frozen=True, slots=True)
class Job:
    """A process's work; JSON values only, since it travels so."""

    backend: str  # TORCH, with transformers' own network, or ONNX
    folder: str
    threads: int
    questions: str  # SQuAD file, whose first question is the first answered
    padded_to: int = 0  # tokens of every row; 0: as many as it has
    core: int | None = None  # the one that its process is held to


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    job = Job(**json.loads(sys.argv[1]))
    run = opened(job)
    rows_of = {job.questions: readings(Path(job.folder), Path(job.questions))}
    answered(run, rows_of[job.questions][0], job.padded_to)
    say(out, {"first_answer": time.monotonic()})
    for line in sys.stdin:
        questions, seconds, padded_to = json.loads(line)
        if questions not in rows_of:
            rows_of[questions] = readings(Path(job.folder), Path(questions))
        say(out, timed(run, rows_of[questions], padded_to, seconds))


def say(out: Any, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def opened(job: Job) -> Callable[[Batch], Logits]:
    """Returns what gives a batch's start and end logits; raises BadModel for a folder that is no reader."""
    if job.backend == ONNX:
        from shardqa.models.session import ReaderSession

        return ReaderSession(job.folder, job.threads).logits
    import torch
    import transformers

    torch.set_num_threads(job.threads)
    network: Any = transformers.AutoModelForQuestionAnswering.from_pretrained(job.folder, dtype=torch.float32).eval()

    def run(batch: Batch) -> Logits:
        with torch.inference_mode():
            outputs = network(**{name: torch.from_numpy(value) for name, value in batch.feeds().items()})
        return outputs.start_logits.numpy(), outputs.end_logits.numpy()

    return run


def timed(
    run: Callable[[Batch], Logits], questions: Sequence[QuestionRows], padded_to: int, seconds: float
) -> dict[str, Any]:
    """Answers one question after another, in whole passes until the time is over."""
    for one in questions[:WARM_UP]:
        answered(run, one, padded_to)
    reads: list[Read] = []
    began = time.perf_counter()
    while not reads or time.perf_counter() - began < seconds:
        reads += [answered(run, one, padded_to) for one in questions]
    passed = time.perf_counter() - began
    f1 = 100 * sum(one.f1 for one in reads) / len(reads)
    return {"seconds": passed, "times": [one.seconds for one in reads], "memory": resident(), "f1": f1}


def answered(run: Callable[[Batch], Logits], reading: QuestionRows, padded_to: int) -> Read:
    """The best span of a question's windows, and the seconds that it took."""
    began = time.perf_counter()
    rows = [row for _, row in reading.windows]
    logits: dict[int, Logits] = {}
    for batch in batches(rows):
        starts, ends = run(padded(batch, padded_to))
        for line, number in enumerate(batch.rows):
            logits[number] = starts[line, : len(rows[number])], ends[line, : len(rows[number])]
    return read(reading, [logits[number] for number in range(len(rows))], time.perf_counter() - began)


def padded(batch: Batch, tokens: int) -> Batch:
    """A batch whose rows have ``tokens`` tokens at least."""
    missing = max(0, tokens - batch.input_ids.shape[1])
    arrays = (batch.input_ids, batch.attention_mask, batch.token_type_ids)
    return Batch(batch.rows, *(np.pad(value, ((0, 0), (0, missing))) for value in arrays))


def resident() -> int:
    """Bytes of this process that lie in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


if __name__ == "__main__":
    main()
