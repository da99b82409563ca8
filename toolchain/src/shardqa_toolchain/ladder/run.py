"""Climbing: every step is measured in turn for several rounds, so that what slows the machine slows none alone."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from shardqa import machine
from shardqa_toolchain.ladder import cache, servers
from shardqa_toolchain.ladder.steps import Networks, Step, cores, draw, networks, steps, words_of
from shardqa_toolchain.ladder.worker import Job
from shardqa_toolchain.measure import readings
from shardqa_toolchain.picture import Panel, bars
from shardqa_toolchain.processes import Process

WANTED = 30.0  # times the first step's throughput, without the cache

Report = Callable[[str], None]  # is told what is being done


@dataclass(frozen=True, slots=True)
class Settings:
    checkpoint: Path | None = None  # trained; the reader's weights taken back to float32 unless given
    reader: Path | None = None  # in int8; made from the checkpoint, or the shipped one
    base: Path | None = None  # checkpoint of the naive step; random weights of BERT-base's shape unless given
    questions: Path | None = None  # SQuAD file; ``seeds/`` unless given
    count: int = 50  # questions that are timed
    scored: int = 500  # questions that are scored
    rounds: int = 3
    seconds: float = 4.0  # of a step in a round, at least
    quick: bool = False  # tiny random networks: a trial


@dataclass(frozen=True, slots=True)
class Rung:
    """A step with what was measured, medians over the rounds."""

    name: str
    what: str
    throughput: float  # questions a second of all processes together
    p50: float  # milliseconds of a question
    p99: float
    memory: float | None = None  # of one process, resident, MB
    start: float | None = None  # seconds from a process's start to its first answer
    file: float | None = None  # MB
    f1: float | None = None  # percent; None where the weights are random
    factor: float | None = None  # of the throughput, against the step before


@dataclass(frozen=True, slots=True)
class Ladder:
    machine: str
    inputs: str
    rounds: int
    rungs: tuple[Rung, ...]
    cached: Rung  # beside the ladder
    servers: tuple[servers.ServerFigures, ...]  # naive, then ours
    account: Mapping[str, float]  # MB that each part of our server takes

    @property
    def gain(self) -> float:
        """Times the first step's throughput that the last has."""
        return self.rungs[-1].throughput / self.rungs[0].throughput

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "gain": self.gain, "wanted": WANTED}


def climb(settings: Settings, work: Path, report: Report = lambda news: None) -> Ladder:
    """Measures all steps; ``work`` is an empty folder for networks and questions, some 2 GB.

    Raises BadModel for networks, BadData for questions that can't be used, SetupError where a process dies.
    """
    report("making the networks that are not given")
    made = networks(work, settings.checkpoint, settings.reader, settings.base, settings.quick)
    timed = draw(settings.questions, settings.count, work / "timed.json")
    rungs = _measured(steps(made, timed, cores()), timed, settings, report)
    if made.trained:
        scored = draw(settings.questions, settings.scored, work / "scored.json")
        rungs = [
            _scored(rung, step, scored, report) for rung, step in zip(rungs, steps(made, timed, cores()), strict=True)
        ]
    report("beside it: answers from the cache, and three models in one web process")
    found = cache.times(timed, settings.rounds)
    cached = _rung("cache", "answers that Redis remembers, one client", [[{"times": found, "seconds": sum(found)}]])
    compared, account = servers.compare(made, work, timed, settings.rounds, settings.quick)
    return Ladder(
        machine.label(), _described(settings, made, timed), settings.rounds, _factors(rungs), cached, compared, account
    )


def _measured(ladder: Sequence[Step], timed: Path, settings: Settings, report: Report) -> list[Rung]:
    rounds: dict[str, list[list[dict[str, Any]]]] = {step.name: [] for step in ladder}
    for number in range(settings.rounds):
        with ExitStack() as stack:
            begun: dict[tuple[Job, ...], list[Process]] = {}
            for jobs in {_unpadded(step) for step in ladder} if settings.quick else ():  # torch takes seconds to load
                begun[jobs] = _begun(jobs, stack)
            for step in ladder[:: -1 if number % 2 else 1]:
                report(f"round {number + 1} of {settings.rounds}: {step.name}")
                with ExitStack() as alone:
                    processes = begun.get(_unpadded(step)) or _begun(step.jobs, alone)
                    rounds[step.name].append(_run(processes, timed, settings.seconds, step.jobs[0].padded_to))
    return [
        replace(_rung(step.name, step.what, rounds[step.name]), file=step.file.stat().st_size / 1e6) for step in ladder
    ]


def _unpadded(step: Step) -> tuple[Job, ...]:
    return tuple(replace(job, padded_to=0) for job in step.jobs)


def _begun(jobs: Sequence[Job], stack: ExitStack) -> list[Process]:
    return [stack.enter_context(Process.of_module(words_of(job), job.threads, job.core)) for job in jobs]


def _run(processes: Sequence[Process], questions: Path, seconds: float, padded_to: int) -> list[dict[str, Any]]:
    """Returns the reports of a step's processes, all having answered at once."""
    starts = [process.first_answer for process in processes]
    for process in processes:
        process.tell([str(questions), seconds, padded_to])
    return [{**process.message(), "start": start} for process, start in zip(processes, starts, strict=True)]


def _rung(name: str, what: str, rounds: Sequence[Sequence[Mapping[str, Any]]]) -> Rung:
    every = [process for together in rounds for process in together]
    throughput = median(sum(len(one["times"]) / one["seconds"] for one in together) for together in rounds)
    p50, p99 = (
        median(float(np.percentile([time for one in together for time in one["times"]], share)) for together in rounds)
        for share in (50, 99)
    )
    rung = Rung(name, what, throughput, 1e3 * p50, 1e3 * p99)
    if "memory" not in every[0]:
        return rung
    return replace(
        rung, memory=median(one["memory"] for one in every) / 1e6, start=median(one["start"] for one in every)
    )


def _scored(rung: Rung, step: Step, questions: Path, report: Report) -> Rung:
    if not step.trained:
        return rung
    report(f"scoring: {step.name}")
    with ExitStack() as stack:
        one = _begun(step.jobs[:1], stack)
        return replace(rung, f1=_run(one, questions, 0.0, step.jobs[0].padded_to)[0]["f1"])


def _factors(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    later = [replace(rung, factor=rung.throughput / before.throughput) for before, rung in itertools.pairwise(rungs)]
    return (rungs[0], *later)


def _described(settings: Settings, made: Networks, timed: Path) -> str:
    lengths = [len(row) for one in readings(made.checkpoint, timed) for _, row in one.windows]
    source = settings.questions.name if settings.questions else "seeds"
    return f"{settings.count} questions of {source}, rows of {np.mean(lengths):.0f} tokens ({max(lengths)} at most)"


def drawn(ladder: Ladder) -> str:
    """The ladder as SVG."""
    rungs = [*ladder.rungs, ladder.cached]
    factors = [f" ({rung.factor:.2f}x)" if rung.factor else "" for rung in rungs]
    title = f"{ladder.gain:.1f} times the throughput without the cache; {ladder.inputs}; {ladder.machine}"
    panels = [
        Panel(
            "questions/s (step's factor)",
            [rung.throughput for rung in rungs],
            [f"{number(rung.throughput)}{factor}" for rung, factor in zip(rungs, factors, strict=True)],
            logarithmic=True,
        ),
        Panel(
            "p50, p99 (ms)",
            [rung.p50 for rung in rungs],
            [f"{number(rung.p50)}, {number(rung.p99)}" for rung in rungs],
            logarithmic=True,
        ),
        *(
            Panel(name, values, ["" if value is None else number(value) for value in values])
            for name, values in (
                ("memory of a process (MB)", [rung.memory for rung in rungs]),
                ("file (MB)", [rung.file for rung in rungs]),
                ("F1", [rung.f1 for rung in rungs]),
            )
        ),
    ]
    return bars(title, [rung.name for rung in rungs], panels)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
