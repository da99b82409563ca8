"""Distances of predicted spans from marked ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa_toolchain.evidence_metrics import EvidenceScores, compared, counted, mean, summed

TEXT = "It rained. The race was put off. Nobody minded."
RAIN, RACE, NOBODY = (0, 10), (11, 32), (33, 47)
EXTENTS = st.lists(st.tuples(st.integers(0, 46), st.integers(1, 9)).map(lambda one: (one[0], sum(one))), max_size=4)


def test_words_of_all_rows_count_together() -> None:
    right, wrong = counted(TEXT, [RAIN], [RAIN]), counted(TEXT, [RACE], [])
    scores = summed([right, wrong])
    assert (scores.rows, scores.recall) == (2, 100.0)
    assert scores.precision == pytest.approx(100 * 2 / 7)
    assert scores.f1 == pytest.approx(100 * 4 / 9)


def test_a_word_that_a_span_touches_is_covered() -> None:
    assert counted(TEXT, [(1, 4)], [RAIN]).true_words == 2


def test_spans_are_matched_one_to_one_best_overlap_first() -> None:
    row = counted(TEXT, [RAIN, (0, 12), (12, 32)], [RAIN, RACE])
    assert (row.matched, row.predicted, row.marked) == (2, 3, 2)


def test_a_span_is_contained_where_most_of_it_lies_in_a_marked_one() -> None:
    row = counted(TEXT, [(12, 20), (5, 20), NOBODY], [RACE])
    assert (row.contained, row.containing) == (1, 1)


def test_nothing_predicted_where_nothing_is_marked_is_neither_gain_nor_loss() -> None:
    assert summed([counted(TEXT, [], []), counted(TEXT, [RAIN], [RAIN])]).f1 == 100
    assert summed([counted(TEXT, [], [])]).f1 == 0


@given(EXTENTS, EXTENTS)
def test_each_share_lies_within_bounds_and_identity_is_perfect(
    predicted: list[tuple[int, int]], marked: list[tuple[int, int]]
) -> None:
    scores = summed([counted(TEXT, predicted, marked)])
    assert all(
        0 <= share <= 100
        for share in (scores.precision, scores.recall, scores.f1, scores.iou_f1, scores.containment_f1)
    )
    itself = summed([counted(TEXT, marked, marked)])
    words = any(TEXT[start:end].strip() for start, end in marked)
    assert itself.f1 == (100 if words else 0)


def test_an_interval_holds_the_difference_and_is_narrow_where_all_rows_agree() -> None:
    better = [counted(TEXT, [RAIN], [RAIN])] * 50
    worse = [counted(TEXT, [RAIN, RACE], [RAIN])] * 50
    interval = compared(worse, better)
    assert interval.low == pytest.approx(interval.difference) == pytest.approx(interval.high)
    assert interval.difference > 0
    mixed = compared(better + worse, worse + better)
    assert mixed.low < 0 < mixed.high


def test_a_mean_weighs_files_the_same() -> None:
    one, other = EvidenceScores(10, 0, 0, 20, 0, 0), EvidenceScores(90, 0, 0, 40, 0, 0)
    assert (mean([one, other]).rows, mean([one, other]).f1) == (100, 30)
