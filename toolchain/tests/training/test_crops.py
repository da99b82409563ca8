"""Crops: a row with less to learn by heart, that still points at its answer."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardqa.models.reader import CLS, SEP, join
from shardqa_toolchain.training.batches import UNSAID, LearningRow
from shardqa_toolchain.training.spans import CROP_MARGIN, crop

QUESTION = np.arange(50, 55, dtype=np.int32)
FIRST = len(QUESTION) + 2  # token of the passage in the row
LENGTHS = st.integers(1, 300)
SEEDS = st.integers(0, 1000)


def row(length: int, answer: tuple[int, int] | None) -> LearningRow:
    row = join(QUESTION, np.arange(1000, 1000 + length, dtype=np.int32))
    start, end = (answer[0] + FIRST, answer[1] + FIRST) if answer else (0, 0)
    evidence = np.full(len(row), UNSAID, dtype=np.int8)
    evidence[row.passage] = 0
    if answer:
        evidence[start : end + 1] = 1
    return LearningRow(row.input_ids, row.token_type_ids, start, end, evidence)


@st.composite
def answered(draw: st.DrawFn) -> LearningRow:
    length = draw(LENGTHS)
    start = draw(st.integers(0, length - 1))
    return row(length, (start, draw(st.integers(start, length - 1))))


@given(answered(), SEEDS)
def test_a_crop_points_at_the_same_answer(whole: LearningRow, seed: int) -> None:
    piece = crop(whole, np.random.default_rng(seed))
    wanted = whole.input_ids[whole.start : whole.end + 1].tolist()
    assert piece.input_ids[piece.start : piece.end + 1].tolist() == wanted


@given(answered(), SEEDS)
def test_a_crop_keeps_what_surrounds_the_answer(whole: LearningRow, seed: int) -> None:
    piece = crop(whole, np.random.default_rng(seed))
    assert piece.start - FIRST >= min(whole.start - FIRST, CROP_MARGIN)
    assert len(piece) - piece.end >= min(len(whole) - whole.end, CROP_MARGIN)


@given(answered(), SEEDS)
def test_a_crop_is_a_row_of_its_own(whole: LearningRow, seed: int) -> None:
    piece = crop(whole, np.random.default_rng(seed))
    assert piece.input_ids[:FIRST].tolist() == [CLS, *QUESTION.tolist(), SEP]
    assert piece.input_ids[-1] == SEP
    assert np.all(np.diff(piece.input_ids[FIRST:-1]) == 1)
    assert piece.token_type_ids.tolist() == [0] * FIRST + [1] * (len(piece) - FIRST)


@given(LENGTHS, SEEDS)
def test_a_crop_without_answer_still_says_so(length: int, seed: int) -> None:
    piece = crop(row(length, None), np.random.default_rng(seed))
    assert (piece.start, piece.end) == (0, 0)
    assert len(piece) > FIRST + 1


def test_crops_with_and_without_answer_are_as_long() -> None:
    random = np.random.default_rng(3)
    with_answer = [len(crop(row(150, (at, at)), random)) for at in random.integers(0, 150, 2000).tolist()]
    without = [len(crop(row(150, None), random)) for _ in range(2000)]
    assert abs(np.mean(with_answer) - np.mean(without)) < 3
