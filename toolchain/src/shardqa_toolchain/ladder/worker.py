"""A step in a process of its own (``python -m shardqa_toolchain.ladder.worker``): its own memory and start.

stdin: a `job.Job` as a line of JSON; later an empty line, at which timing begins (several processes begin together);
its end, at which the process goes (what it shares with the others is shared until all have measured it).
stdout: ``{"first_answer": ..}``, the monotonic clock's time of it, then a `Timed` or a `Scored`. What goes wrong is
told on stderr, and the exit code is not 0.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.ladder import inputs
from shardqa_toolchain.ladder.job import CACHE, Job, LadderServer
from shardqa_toolchain.ladder.serving import opened
from shardqa_toolchain.measure import QuestionRows, Read

WARM_UP = 4  # questions answered before timing begins

CHUNK_QUESTIONS = 64  # questions whose rows are batched together for scoring; bounds memory


@dataclass(frozen=True, slots=True)
class Timed:
    questions: int  # answered
    seconds: float
    times: list[float]  # seconds of each question; empty where they were answered all at once
    memory: int  # bytes of the process that lay in memory at the end (RSS)
    proportional: int  # the same, with what n processes share counted as one n-th (PSS)


@dataclass(frozen=True, slots=True)
class ScoreShares:
    """Scores of a process's answers, percent."""

    questions: int
    exact_match: float
    f1: float


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    found = json.loads(sys.stdin.readline())
    do(Job(**{**found, "folders": tuple(found["folders"])}), sys.stdin, out)


def do(job: Job, control: TextIO, out: TextIO) -> None:
    """Do a job; raises what it went wrong with."""
    if job.core is not None:
        os.sched_setaffinity(0, {job.core})
    questions = inputs.load(Path(job.inputs))
    tokenizer = Tokenizer.load(job.folders[0])
    with opened(job) as server:
        server.answers(list(inputs.readings(questions[:1], tokenizer, job.longest, job.exact)))
        _say(out, {"first_answer": time.monotonic()})
        readings = list(inputs.readings(questions, tokenizer, job.longest, job.exact))
        _say(out, asdict(_scored(server, readings, job) if job.scored else _timed(server, readings, job, control)))
        control.read()


def _say(out: TextIO, message: dict[str, object]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _timed(server: LadderServer, readings: Sequence[QuestionRows], job: Job, control: TextIO) -> Timed:
    # One by one: more at once would take memory that the timed way does not need.
    for one in readings if job.backend == CACHE else readings[:WARM_UP]:
        server.answers([one])
    control.readline()
    groups = [readings] if job.batched else [[one] for one in readings]
    times: list[float] = []
    began = time.perf_counter()
    while (passed := time.perf_counter() - began) < job.seconds or not times:
        for group in groups:
            since = time.perf_counter()
            server.answers(group)
            times.append(time.perf_counter() - since)
    questions = len(times) * len(groups[0])
    return Timed(questions, passed, [] if job.batched else times, memory("Rss"), memory("Pss"))


def _scored(server: LadderServer, readings: Sequence[QuestionRows], job: Job) -> ScoreShares:
    chunks = (readings[first : first + CHUNK_QUESTIONS] for first in range(0, len(readings), CHUNK_QUESTIONS))
    reads = [one for chunk in chunks for one in server.answers(chunk)]
    return _refusing(reads, Path(job.scoring)) if job.scoring else _answering(reads)


def _answering(reads: Sequence[Read]) -> ScoreShares:
    percent = 100 / len(reads)
    return ScoreShares(
        len(reads), percent * sum(one.exact_match for one in reads), percent * sum(one.f1 for one in reads)
    )


def _refusing(reads: Sequence[Read], scoring: Path) -> ScoreShares:
    from shardqa.models.scoring import Scoring
    from shardqa_toolchain.no_answer_metrics import no_answer_metrics

    found = no_answer_metrics(reads, Scoring.load(scoring))
    return ScoreShares(found.questions, found.exact_match, found.f1)


def memory(kind: str) -> int:
    """Bytes of this process that lie in memory: "Rss" or "Pss", as Linux counts them."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{kind}:"):
            return 1024 * int(line.split()[1])
    raise AssertionError(f"a process has an {kind}")


if __name__ == "__main__":
    main()
