"""From the runs of a step to its figures: medians over the rounds, and each step's share of what was gained."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from shardqa_toolchain.ladder.processes import Ran
from shardqa_toolchain.ladder.steps import LadderStep
from shardqa_toolchain.ladder.worker import ScoreShares

WANTED_GAIN = 30.0  # times the throughput of the first step, without the cache


@dataclass(frozen=True, slots=True)
class Figures:
    """Measurements of a step, medians over the rounds."""

    throughput: float  # questions a second, of all processes together
    p50: float | None  # latency of a question, milliseconds; None where questions are answered all at once
    p99: float | None
    memory: float  # of one process, resident at the end, MB
    together: float  # of all processes, what they share counted once, MB
    start: float  # from the process's start to its first answer, seconds


@dataclass(frozen=True, slots=True)
class Rung:
    """A step with what came of it."""

    name: str
    what: str
    counted: bool
    processes: int
    threads: int  # of each process
    file: float  # the network's, MB
    figures: Figures | None = None  # None when a process died
    fault: str = ""
    scored: ScoreShares | None = None
    refusing: ScoreShares | None = None  # with questions that have no answer among them
    unscored: str = ""  # why there is no score
    gain: float | None = None  # times the throughput of the counted step before
    share: float | None = None  # of the whole gain, by logarithms: the shares of all counted steps add up to 1


@dataclass(frozen=True, slots=True)
class Ladder:
    machine: str
    inputs: str
    rounds: int
    rungs: tuple[Rung, ...]
    tiny: bool = False  # whether the networks are tiny random ones: a trial

    @property
    def faults(self) -> list[str]:
        """The last words of processes that died."""
        return [rung.fault for rung in self.rungs if rung.fault]

    @property
    def gain(self) -> float | None:
        """Times the first step's throughput that the last one has; None when either died."""
        counted = [rung.figures for rung in self.rungs if rung.counted]
        first, last = counted[0], counted[-1]
        return last.throughput / first.throughput if first and last else None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "gain": self.gain, "wanted_gain": WANTED_GAIN}


def figures(rounds: Sequence[Sequence[Ran]]) -> Figures:
    """Sums up a step; ``rounds`` has one round at least, each the processes that ran side by side."""
    times = [[one for ran in together for one in ran.timed.times] for together in rounds]
    alone = [percentiles(found) for found in times if found]
    return Figures(
        throughput=median(sum(ran.timed.questions / ran.timed.seconds for ran in together) for together in rounds),
        p50=median(p50 for p50, _ in alone) if alone else None,
        p99=median(p99 for _, p99 in alone) if alone else None,
        memory=median(ran.timed.memory for together in rounds for ran in together) / 1e6,
        together=median(sum(ran.timed.proportional for ran in together) for together in rounds) / 1e6,
        start=median(ran.start for together in rounds for ran in together),
    )


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Returns p50 and p99 in milliseconds of times in seconds, interpolated between the two nearest."""
    p50, p99 = np.percentile(np.asarray(seconds) * 1e3, [50, 99])
    return float(p50), float(p99)


def rung(step: LadderStep) -> Rung:
    return Rung(
        step.name,
        step.what,
        step.counted,
        len(step.jobs),
        step.jobs[0].threads,
        step.file.stat().st_size / 1e6,
        unscored=step.unscored,
    )


def with_shares(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """Each counted step's gain over the one before, and its share of the whole."""
    measured = [rung for rung in rungs if rung.counted and rung.figures]
    throughputs = [rung.figures.throughput for rung in measured if rung.figures]
    gains = [later / earlier for earlier, later in pairwise(throughputs)]
    known = {
        rung.name: replace(rung, gain=gain, share=share)
        for rung, gain, share in zip(measured[1:], gains, shares(throughputs), strict=True)
    }
    return tuple(known.get(rung.name, rung) for rung in rungs)


def shares(throughputs: Sequence[float]) -> list[float | None]:
    """Returns log(gain of a step) / log(gain of all) of each step after the first; None where nothing was gained."""
    logs = [math.log(one) for one in throughputs]
    steps = list(pairwise(logs))
    whole = logs[-1] - logs[0] if logs else 0.0
    return [(later - earlier) / whole if whole else None for earlier, later in steps]
