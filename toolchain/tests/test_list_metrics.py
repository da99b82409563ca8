"""Distances of lists from marked items."""

import pytest

from shardqa_toolchain import list_metrics
from shardqa_toolchain.list_metrics import counted, summed


def test_an_item_counts_by_the_longest_run_it_shares_with_any_marked_one() -> None:
    scores = summed([counted(["red lamps", "the fog"], ["red", "blue"])])
    shared = 3 / 9, 1 / 4  # "red" of "red lamps", "l" of "blue"
    assert scores.precision == pytest.approx(100 * sum((shared[0], 0)) / 2)
    assert scores.recall == pytest.approx(100 * (1 + shared[1]) / 2)


def test_equal_items_count_once_and_whole_whatever_their_case_and_articles() -> None:
    scores = summed([counted(["The red", "red", "Blue"], ["red", "blue"])])
    assert (scores.f1, scores.exact_f1) == (100, 100)


def test_rows_count_by_their_items_and_one_without_as_one_item_missed() -> None:
    scores = summed([counted(["red", "blue"], ["red", "blue"]), counted([], ["grey"])])
    assert scores.precision == scores.recall == pytest.approx(200 / 3)


def test_two_readers_are_compared_by_partial_f1() -> None:
    worse, better = [counted(["red"], ["blue"])] * 20, [counted(["blue"], ["blue"])] * 20
    interval = list_metrics.compared(worse, better)
    assert interval.low == interval.high == pytest.approx(interval.difference)
