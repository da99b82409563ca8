"""Questions and lines that can't be learnt from: refused with the first ones named, or left out and reported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadData, BadDocument, QuestionTooLong

Example = TypeVar("Example")

MAX_SHOWN = 5  # faults that an error spells out; it counts the others

Pieces = tuple[int, int]  # first and last wordpiece within a passage


class Faulty(ValueError):
    """A question or a line that can't be learnt from; says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A question or a line that can't be learnt from, with its place."""

    where: str  # the question's id, or file and line
    what: str


def attempted(where: str, make: Callable[..., Example], *arguments: object) -> Example | Fault:
    """Returns the example that ``make`` makes, or its fault."""
    try:
        return make(*arguments)
    except (Faulty, QuestionTooLong, BadDocument, BadData) as error:
        return Fault(where, str(error))


def parted(outcomes: Sequence[Example | Fault], skip: bool, message: str) -> tuple[list[Example], list[Fault]]:
    """Returns examples and faults apart; unless faults are to be skipped, raises BadData with the first of them.

    ``message`` begins the error and has {} for their number.
    """
    faults = [outcome for outcome in outcomes if isinstance(outcome, Fault)]
    if faults and not skip:
        first = "; ".join(f"{fault.where}: {fault.what}" for fault in faults[:MAX_SHOWN])
        more = f"; and {len(faults) - MAX_SHOWN} more" if len(faults) > MAX_SHOWN else ""
        count = message.replace("{}", str(len(faults)))
        raise BadData(f"{count}: {first}{more}; correct the file, or leave them out with --skip-faulty")
    return [outcome for outcome in outcomes if not isinstance(outcome, Fault)], faults


def answer_pieces(text: str, offsets: NDArray[np.int32], start: int, answer: str) -> Pieces:
    """Returns the first and last wordpiece of an answer; raises Faulty when it does not stand at its place."""
    there = text[start : start + len(answer)] if start >= 0 else ""
    if there != answer:
        raise Faulty(f"at character {start} stands {there!r}, its answer is {answer!r}")
    pieces = align(offsets, start, start + len(answer))
    if pieces is None:
        raise Faulty(f"its answer {answer!r} has no wordpiece")
    return pieces


def align(offsets: NDArray[np.int32], start: int, end: int) -> Pieces | None:
    """Returns the first and last wordpiece that share a character with text[start:end]; None when none does.

    ``offsets`` is int32 [n, 2], each piece's first character and one past its last, in reading order.
    """
    touching = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > start))
    return (int(touching[0]), int(touching[-1])) if len(touching) else None
