"""The checker finds each kind of violation in a history made by hand, and none in a right one."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.checker import Kind, check, largest_lag
from tests.faults.history import Event, Look, Reply, Span, Write

ONE = "The mill was built by Ada Lund."
TWO = "The old mill was built by Bruno Berg."


def put(version: int, text: str | None, begin: float, end: float | None) -> Write:
    return Write("mill", version, text, begin, end)


def answered(answer: str, text: str, begin: float, end: float, about: str | None = None) -> Reply:
    start = text.index(answer)
    return Reply("who?", about, (Span("mill", start, start + len(answer), answer),), begin, end)


def nothing(begin: float, end: float, partial: bool = False) -> Reply:
    return Reply("who?", "mill", (), begin, end, partial)


def looked(text: str | None, begin: float, end: float) -> Look:
    return Look("mill", text, begin, end)


BAD: dict[str, tuple[Kind, list[Event]]] = {
    "an acknowledged put is gone": ("lost", [put(1, ONE, 0, 1), looked(None, 2, 3)]),
    "an acknowledged put after a delete is gone": (
        "lost",
        [put(1, ONE, 0, 1), put(2, None, 2, 3), put(3, TWO, 4, 5), looked(None, 6, 7)],
    ),
    "a deleted document is there": ("resurrected", [put(1, ONE, 0, 1), put(2, None, 2, 3), looked(ONE, 4, 5)]),
    "a deleted document is answered from": (
        "resurrected",
        [put(1, ONE, 0, 1), put(2, None, 2, 3), answered("Ada Lund", ONE, 4, 5)],
    ),
    "a replaced text is there": ("stale", [put(1, ONE, 0, 1), put(2, TWO, 2, 3), looked(ONE, 4, 5)]),
    "a replaced text is answered from": (
        "stale",
        [put(1, ONE, 0, 1), put(2, TWO, 2, 3), answered("Ada Lund", ONE, 4, 5)],
    ),
    "an unacknowledged text comes back after it was seen and replaced": (
        "stale",
        [put(1, ONE, 0, None), looked(ONE, 1, 2), put(2, TWO, 3, 4), looked(ONE, 5, 6)],
    ),
    "words that nobody wrote": ("unknown", [put(1, ONE, 0, 1), answered("Bruno Berg", TWO, 2, 3)]),
    "the right words one character off": (
        "unknown",
        [put(1, ONE, 0, 1), Reply("who?", None, (Span("mill", 1, 9, "Ada Lund"),), 2, 3)],
    ),
    "an empty answer": ("unknown", [put(1, ONE, 0, 1), Reply("who?", None, (Span("mill", 3, 3, ""),), 2, 3)]),
    "a document that nobody wrote": ("unknown", [looked(ONE, 0, 1)]),
    "a text before it was written": ("early", [looked(ONE, 0, 1), put(1, ONE, 2, 3)]),
    "a document is not among the candidates of its question": ("missed", [put(1, ONE, 0, 1), nothing(2, 3)]),
}

GOOD: dict[str, list[Event]] = {
    "an answer of the current version": [put(1, ONE, 0, 1), answered("Ada Lund", ONE, 2, 3)],
    "an answer of the new version while it is written": [put(1, ONE, 0, 3), answered("Ada Lund", ONE, 1, 2)],
    "an answer of the old version while the new one is written": [
        put(1, ONE, 0, 1),
        put(2, TWO, 2, 5),
        answered("Ada Lund", ONE, 3, 4),
    ],
    "an answer of a version that was replaced while it was asked": [
        put(1, ONE, 0, 1),
        answered("Ada Lund", ONE, 2, 5),
        put(2, TWO, 3, 4),
    ],
    "an answer of a document that was deleted while it was asked": [
        put(1, ONE, 0, 1),
        answered("Ada Lund", ONE, 2, 5),
        put(2, None, 3, 4),
    ],
    "an unacknowledged write that never came": [put(1, ONE, 0, 1), put(2, TWO, 2, None), looked(ONE, 9, 10)],
    "an unacknowledged write that came late": [
        put(1, ONE, 0, 1),
        put(2, TWO, 2, None),
        put(3, None, 3, 4),
        looked(TWO, 9, 10),
    ],
    "an unacknowledged delete": [put(1, ONE, 0, 1), put(2, None, 2, None), looked(None, 3, 4)],
    "what an unreplicated write had replaced is back": [
        put(1, ONE, 0, 1),
        put(2, TWO, 2, None),
        looked(TWO, 3, 4),
        looked(ONE, 5, 6),
    ],
    "of two writes at once either may stay": [put(1, ONE, 0, 3), put(2, TWO, 1, 2), looked(ONE, 4, 5)],
    "a partial answer may lack any document": [put(1, ONE, 0, 1), nothing(2, 3, partial=True)],
    "nothing is found while nothing is there": [nothing(0, 1), put(1, ONE, 2, 3)],
}


@pytest.mark.parametrize("name", BAD)
def test_a_violation_is_found(name: str) -> None:
    kind, history = BAD[name]
    assert [violation.kind for violation in check(history)] == [kind]


@pytest.mark.parametrize("name", GOOD)
def test_a_right_history_passes(name: str) -> None:
    assert check(GOOD[name]) == []


NOISE: list[Event] = [put(90, "Once there was a forge.", -9, -8), looked("Once there was a forge.", -7, -6)]
OTHERS: list[Event] = [Write(f"other {n}", n, ONE, n, n + 1) for n in range(50)]


@pytest.mark.parametrize("name", BAD)
def test_of_a_long_history_only_what_shows_the_violation_is_told(name: str) -> None:
    kind, history = BAD[name]
    (violation,) = check([*NOISE, *OTHERS, *history])
    assert [found.kind for found in check(violation.history)] == [kind]
    if kind != "unknown":  # there the last text that was written is told, too
        for event in violation.history:
            assert check([other for other in violation.history if other is not event]) != [violation]
            assert event not in NOISE


def test_a_printed_violation_names_what_is_wrong_and_each_step() -> None:
    (violation,) = check(BAD["a replaced text is answered from"][1])
    assert str(violation).splitlines() == [
        "stale: a text that was replaced is there",
        "    0.000 .. 1.000  put 'mill', version 1: 'The mill was built by Ada Lund.'",
        "    2.000 .. 3.000  put 'mill', version 2: 'The old mill was built by Bruno Berg.'",
        "    4.000 .. 5.000  engine asked 'who?': 'Ada Lund' at 22..30 of 'mill'",
    ]


def test_only_a_kept_answer_may_be_behind_and_by_no_more_than_is_allowed() -> None:
    late = answered("Ada Lund", ONE, 3.5, 4)
    from_cache, writes = replace(late, cached=True), [put(1, ONE, 0, 1), put(2, TWO, 2, 3)]
    assert check([*writes, from_cache], lag=0.6) == []
    assert largest_lag([*writes, from_cache]) == 0.5
    assert [found.kind for found in check([*writes, from_cache], lag=0.4)] == ["stale"]
    assert [found.kind for found in check([*writes, late], lag=0.6)] == ["stale"]
    assert [
        found.kind for found in check([*writes, replace(from_cache, spans=(Span("mill", 0, 2, "no"),))], lag=9)
    ] == ["unknown"]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(1, 9), st.integers(0, 9)), max_size=30))
def test_whatever_one_client_does_in_turn_to_a_register_is_a_right_history(
    steps: Sequence[tuple[int, bool, int, int]],
) -> None:
    """A register of its own, in which unacknowledged writes take effect or not."""
    now, current, history = 0.0, None, list[Event]()
    for version, (choice, happens, lasts, pause) in enumerate(steps):
        begin, now = now, now + lasts
        if choice < 2:
            text = None if choice == 0 else f"{ONE} {version}"
            is_acknowledged = happens and pause % 2 == 0
            history.append(put(version, text, begin, now if is_acknowledged else None))
            current = text if happens else current
        else:
            history.append(looked(current, begin, now))
        now += pause + 0.5
    assert check(history) == []
