"""Forms of the reader, each timed in turn on this processor and its answers compared.

A form may be chosen where it gives the shipped one's logits bit by bit: integer products are exact in any order, so
scores stay equal on all shards whatever each of them runs. Others are shown, for a choice that holds for all nodes.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shardqa.models.reader import Row, join
from shardqa.models.session import Logits, ReaderSession

ROWS = (96, 112, 128, 128, 160)  # tokens of the passages of one question

# Largest difference of a logit for which another form counts as the same reader; int8 itself is 0.3 off float32.
TOLERANCE = 0.5

GAIN = 0.9  # share of the time that a form must take at most to be worth another setting


@dataclass(frozen=True, slots=True)
class ReaderForm:
    name: str
    threads: int
    read: Callable[[Sequence[Row]], list[Logits]]
    is_shipped: bool = True  # whether it runs the shipped network


@dataclass(frozen=True, slots=True)
class Tried:
    """A form's time, and how far its logits are from the first form's."""

    name: str
    threads: int
    ms: float  # of one question's rows, the median
    difference: float  # largest, of any logit, from the first form's
    is_shipped: bool

    @property
    def is_exact(self) -> bool:
        """Whether any shard may choose it for itself."""
        return self.is_shipped and self.difference == 0

    @property
    def verdict(self) -> str:
        if self.is_exact:
            return "equal"
        return "close" if self.difference <= TOLERANCE else "another reader"


def forms(folder: Path, cores: int, others: Sequence[Path] = ()) -> list[ReaderForm]:
    """The shipped network on 1, 2, 4 ... threads up to `cores`, then other networks on one; raises BadModel."""
    more = [ReaderForm(other.name, 1, ReaderSession(other, 1).read, is_shipped=False) for other in others]
    counts = sorted({1, cores, *(2**n for n in range(1, cores.bit_length()) if 2**n <= cores)})
    found = [ReaderForm(f"{folder.name}, {n} thread{'s' * (n > 1)}", n, ReaderSession(folder, n).read) for n in counts]
    return found + more


def question() -> list[Row]:
    """Rows of random wordpieces: the time does not depend on which."""
    dice = np.random.default_rng(0)
    asked = dice.integers(1_000, 30_000, 12, dtype=np.int32)
    return [join(asked, dice.integers(1_000, 30_000, tokens, dtype=np.int32)) for tokens in ROWS]


def tune(forms: Sequence[ReaderForm], seconds: float) -> list[Tried]:
    """Runs the forms in turns for so long, each once at least; the first is what the others are compared with."""
    rows = question()
    answers = [form.read(rows) for form in forms]  # warms them up
    differences = [_difference(answers[0], answer) for answer in answers]
    times: list[list[float]] = [[] for _ in forms]
    end = time.perf_counter() + seconds
    while not times[-1] or time.perf_counter() < end:
        for form, seconds_of_form in zip(forms, times, strict=True):
            start = time.perf_counter()
            form.read(rows)
            seconds_of_form.append(time.perf_counter() - start)
    return [
        Tried(form.name, form.threads, 1_000 * float(np.median(each)), difference, form.is_shipped)
        for form, each, difference in zip(forms, times, differences, strict=True)
    ]


def chosen(tried: Sequence[Tried]) -> Tried:
    """The fastest that is exact; the first, unless that gains something worth a setting."""
    best = min((one for one in tried if one.is_exact), key=lambda one: one.ms)
    return best if best.ms <= GAIN * tried[0].ms else tried[0]


def _difference(first: Sequence[Logits], second: Sequence[Logits]) -> float:
    return max(
        float(np.abs(a.astype(np.float64) - b).max())
        for one, other in zip(first, second, strict=True)
        for a, b in zip(one, other, strict=True)
    )
