"""Batches: every row once, like lengths together, the order from the seed alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardqa_toolchain.training.batches import ROUND_TOKENS, LearningRow, collate, plan

LENGTHS = st.lists(st.integers(4, 320), min_size=1, max_size=200)


def row(length: int) -> LearningRow:
    return LearningRow(np.arange(1, length + 1), np.ones(length, dtype=np.int64), 1, 2, np.ones(length, dtype=np.int8))


@given(LENGTHS, st.integers(32, 5000), st.integers(0, 9), st.integers(0, 3))
def test_every_row_is_in_exactly_one_batch(lengths: list[int], tokens: int, seed: int, passed: int) -> None:
    dealt = [number for batch in plan(lengths, tokens, seed, passed) for number in batch]
    assert sorted(dealt) == list(range(len(lengths)))


@given(LENGTHS, st.integers(32, 5000))
def test_a_batch_of_several_rows_stays_within_its_tokens(lengths: list[int], tokens: int) -> None:
    for batch in plan(lengths, tokens, 0, 0):
        longest = -(-max(lengths[number] for number in batch) // ROUND_TOKENS) * ROUND_TOKENS
        assert len(batch) == 1 or len(batch) * longest <= tokens


def test_the_same_seed_deals_the_same_batches() -> None:
    lengths = list(range(4, 200))
    assert plan(lengths, 1000, 7, 1) == plan(lengths, 1000, 7, 1)


def test_each_pass_deals_other_batches() -> None:
    lengths = list(range(4, 200))
    assert plan(lengths, 1000, 7, 0) != plan(lengths, 1000, 7, 1)


@given(st.lists(st.integers(4, 100), min_size=1, max_size=6))
def test_padding_is_masked_and_rounded_up(lengths: list[int]) -> None:
    batch = collate([row(length) for length in lengths])
    assert batch.input_ids.shape[1] % ROUND_TOKENS == 0
    assert batch.attention_mask.sum(axis=1).tolist() == lengths
    assert (batch.input_ids[batch.attention_mask == 0] == 0).all()
