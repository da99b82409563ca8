"""The rounds, and what is told of them."""

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import dumps, files, frames, vectors  # noqa: TID251 (this package is tests/module)
from .pair import Fault, Pair  # noqa: TID251

Play = Callable[[Pair, random.Random, int], int]


@dataclass(frozen=True, slots=True)
class Fuzzer:
    what: str  # its steps are
    play: Play  # about so many steps; how many there were
    steps: int  # of a round
    short: int  # of a round in `make test`


FUZZERS = {
    "vectors": Fuzzer("random commands", vectors.play, 100_000, 20_000),
    "frames": Fuzzer("frames of a hostile worker", frames.play, 10_000, 3_000),
    "dumps": Fuzzer("damaged dumps, used", dumps.play, 1_500, 400),
    "files": Fuzzer("damaged RDB files, loaded", files.play, 10, 6),
}


@dataclass(slots=True)
class Counts:
    steps: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FUZZERS, 0))
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(FUZZERS, 0.0))  # without comparing
    found: list[str] = field(default_factory=list)


@contextmanager
def running(folder: Path) -> Iterator[Pair]:
    pair = Pair(folder)
    try:
        yield pair
    finally:
        pair.stop()


def play(pair: Pair, name: str, seed: int, counts: Counts, steps: int = 0) -> None:
    """One round; what it finds is named by its fuzzer and seed before it leaves."""
    fuzzer = FUZZERS[name]
    started = time.monotonic()
    try:
        counts.steps[name] += fuzzer.play(pair, random.Random(f"{name} {seed}"), steps or fuzzer.steps)
        counts.seconds[name] += time.monotonic() - started
        pair.check()
    except BaseException as error:
        error = cause(pair, error)
        counts.found.append(f"{name} {seed}: {error}")
        print(f"found by the round: {name} {seed}", file=sys.stderr, flush=True)
        raise error


def cause(pair: Pair, error: BaseException) -> BaseException:
    """A server that has ended, or a sanitizer's report, rather than what came of it."""
    time.sleep(1)  # a server that is about to end
    try:
        pair.healthy()
    except Fault as found:
        return found
    return error


def crashes(counts: Counts) -> tuple[int, int]:
    """Counts crashes of the server, and reports of sanitizers."""
    reports = sum("Sanitizer" in found or "runtime error" in found for found in counts.found)
    return sum("ended:" in found or "BUG REPORT" in found for found in counts.found), reports


def report(pair: Pair, counts: Counts, wall: float) -> str:
    lines = []
    for name, fuzzer in FUZZERS.items():
        seconds = counts.seconds[name]
        rate = f"{counts.steps[name] / seconds:,.0f} a second" if seconds else "not played"
        lines.append(f"{name:<8} {counts.steps[name]:>12,} {fuzzer.what}, {rate}")
    deaths = pair.deaths
    if pair.master.process is not None and pair.master.process.poll() is None:
        deaths += pair.master.info()["worker_restarts"]
    ended, reports = crashes(counts)
    other = len(counts.found) - max(ended, reports)
    lines.append(f"crashes {ended}, reports of sanitizers {reports}, other faults {other}")
    lines.append(f"digests compared and equal {pair.compared:,}, workers killed {deaths:,}, {wall / 60:.1f} minutes")
    return "\n".join(lines)


__all__ = ["FUZZERS", "Counts", "Fault", "play", "report", "running"]
