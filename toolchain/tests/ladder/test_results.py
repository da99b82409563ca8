"""The ladder's figures: medians, percentiles, and shares of the gain that add up."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shardqa_toolchain.ladder.processes import Ran
from shardqa_toolchain.ladder.results import Figures, Ladder, Rung, figures, percentiles, shares, with_shares
from shardqa_toolchain.ladder.worker import Timed

THROUGHPUTS = st.lists(st.floats(0.01, 1e5), min_size=2, max_size=9)


def ran(*times: float, start: float = 1.0, memory: int = 100_000_000) -> Ran:
    return Ran(start, Timed(len(times), sum(times), list(times), memory, memory // 2))


def rung(name: str, throughput: float | None, counted: bool = True) -> Rung:
    known = None if throughput is None else Figures(throughput, 1.0, 2.0, 100.0, 100.0, 0.5)
    return Rung(name, "", counted, 1, 1, 1.0, known, "" if known else "it died")


def ladder(*rungs: Rung) -> Ladder:
    return Ladder("a machine", "questions", 1, with_shares(rungs))


@given(THROUGHPUTS)
def test_the_shares_of_all_steps_add_up_to_1(throughputs: list[float]) -> None:
    assume(abs(math.log(throughputs[-1] / throughputs[0])) > 1e-3)
    found = shares(throughputs)
    assert len(found) == len(throughputs) - 1
    assert math.fsum(share for share in found if share is not None) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("throughputs", "logarithmic"),
    [([1, 2, 8], [1 / 3, 2 / 3]), ([1, 8, 4], [1.5, -0.5]), ([3, 5, 3], [None, None]), ([3], [])],
    ids=["twice has half of four times", "a loss is negative", "nothing gained", "one step"],
)
def test_a_share_is_the_part_of_the_logarithm(throughputs: list[float], logarithmic: list[float | None]) -> None:
    assert shares(throughputs) == (logarithmic if None in logarithmic else pytest.approx(logarithmic))


def test_steps_beside_the_ladder_have_no_share() -> None:
    found = ladder(rung("a", 1), rung("side", 100, counted=False), rung("b", 4))
    assert [one.share for one in found.rungs] == [None, None, 1.0]
    assert [one.gain for one in found.rungs] == [None, None, 4.0]
    assert found.gain == 4


def test_a_dead_step_gives_its_share_to_the_next() -> None:
    found = ladder(rung("a", 1), rung("b", None), rung("c", 4), rung("d", 16))
    assert [one.share for one in found.rungs] == [None, None, 0.5, 0.5]
    assert found.faults == ["it died"]
    assert found.gain == 16


@pytest.mark.parametrize("dead", [0, 2])
def test_without_the_first_or_the_last_step_there_is_no_gain(dead: int) -> None:
    rungs = [rung(str(number), None if number == dead else 2.0**number) for number in range(3)]
    assert ladder(*rungs).gain is None


def test_percentiles_are_milliseconds() -> None:
    assert percentiles([0.001 * number for number in range(101)]) == pytest.approx((50, 99))
    assert percentiles([0.002]) == pytest.approx((2, 2))


def test_processes_side_by_side_add_their_throughput_but_not_their_memory() -> None:
    found = figures([[ran(0.5, 0.5), ran(0.25, 0.25)]])
    assert found.throughput == pytest.approx(2 + 4)
    assert found.memory == found.together == 100
    assert found.p50 == pytest.approx(375)


def test_questions_answered_all_at_once_have_no_latency() -> None:
    found = figures([[Ran(1.0, Timed(8, 2.0, [], 1, 1))]])
    assert (found.throughput, found.p50, found.p99) == (4, None, None)
