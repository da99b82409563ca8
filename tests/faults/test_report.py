"""The report of a soak on memory: slopes within the life of a process, never between processes."""

import pytest

from tests.faults.report import Memory, memory


def lived(sizes: Memory, process: object, begin: int, end: int, megabytes: float, rising: float = 0.0) -> None:
    """A sample every five seconds; `rising` in megabytes a minute."""
    for at in range(begin, end, 5):
        sizes.add("Redis", (process,), at, megabytes + rising * (at - begin) / 60)


def test_a_young_process_in_place_of_an_old_one_is_no_slope() -> None:
    found = Memory()
    lived(found, "first", 0, 300, 80)
    lived(found, "second", 300, 600, 50)
    slope = found.slope("Redis")
    assert slope is not None
    assert slope.common == pytest.approx(0)
    assert slope.series == 2
    assert slope.whole == ()


def test_processes_that_rise_at_the_same_pace_from_different_levels_have_that_slope() -> None:
    found = Memory()
    lived(found, "first", 0, 600, 50, rising=2)
    lived(found, "second", 200, 400, 500, rising=2)
    slope = found.slope("Redis")
    assert slope is not None
    assert (slope.common, slope.least, slope.most) == pytest.approx((2, 2, 2))
    assert slope.whole == pytest.approx((2,))


def test_the_first_seconds_and_short_lives_do_not_count() -> None:
    found = Memory()
    lived(found, "first", 0, 30, 10, rising=100)
    lived(found, "first", 30, 300, 60)
    lived(found, "second", 0, 60, 10, rising=100)
    slope = found.slope("Redis")
    assert slope is not None
    assert slope.common == pytest.approx(0)
    assert slope.series == 1


def test_where_no_process_lived_long_enough_that_is_said() -> None:
    found = Memory()
    lived(found, "first", 0, 60, 10)
    assert found.slope("Redis") is None
    assert "no series of 90 s" in "\n".join(memory(found))
