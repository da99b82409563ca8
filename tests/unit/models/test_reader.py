"""Rows in, spans out: joining, batching and the joint span search against a brute-force oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from shardqa.errors import BadDocument, BadModel
from shardqa.models.reader import CLS, MAX_ROW_TOKENS, SEP, Row, Span, batches, best_spans, join, null_logit

Ids = NDArray[np.int32]
Logits = NDArray[np.float32]

# Halves, so that sums are exact and equal spans are common.
LOGIT = st.integers(-20, 20).map(lambda n: n / 2)


def ids(*numbers: int) -> Ids:
    return np.array(numbers, dtype=np.int32)


def row_of(length: int) -> Row:
    return join(ids(5), np.full(length - 4, 7, dtype=np.int32))


def logits(*values: float) -> Logits:
    return np.array(values, dtype=np.float32)


def oracle(start: Logits, end: Logits, n_best: int, max_tokens: int) -> list[Span]:
    """Try every span, best first (of equals the earlier, then the shorter), and keep those that touch none before."""
    spans = [
        Span(i, j, float(start[i] + end[j])) for i in range(len(start)) for j in range(i, min(i + max_tokens, len(end)))
    ]
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (-s.logit, s.start_token, s.end_token)):
        if all(span.end_token < other.start_token or other.end_token < span.start_token for other in kept):
            kept.append(span)
    return kept[:n_best]


@given(data=st.data(), length=st.integers(0, 40), n_best=st.integers(0, 6), max_tokens=st.integers(1, 35))
def test_the_span_search_finds_what_trying_every_span_finds(
    data: st.DataObject, length: int, n_best: int, max_tokens: int
) -> None:
    start, end = (data.draw(arrays(np.float32, length + 5, elements=LOGIT)) for _ in range(2))
    passage = slice(3, 3 + length)
    assert best_spans(start, end, passage, n_best, max_tokens) == oracle(
        start[passage], end[passage], n_best, max_tokens
    )


def test_a_heading_stands_before_the_passage_and_outside_of_what_spans_point_into() -> None:
    row = join(ids(7), ids(8, 9), ids(5))
    assert row.input_ids.tolist() == [CLS, 7, SEP, 5, 8, 9, SEP]
    assert row.token_type_ids.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert row.input_ids[row.passage].tolist() == [8, 9]


def test_a_start_after_the_best_end_is_not_taken() -> None:
    spans = best_spans(logits(0, 0, 9), logits(9, 0, 1), slice(0, 3), n_best=1)
    assert spans == [Span(2, 2, 10.0)]


def test_tokens_outside_the_passage_never_answer() -> None:
    spans = best_spans(logits(99, 99, 1, 0, 99), logits(99, 99, 1, 0, 99), slice(2, 4), n_best=5)
    assert spans == [Span(0, 0, 2.0), Span(1, 1, 0.0)]


def test_a_passage_of_no_tokens_has_no_spans() -> None:
    assert best_spans(logits(1, 2), logits(1, 2), slice(2, 2), n_best=3) == []


def test_logits_that_are_not_finite_are_the_models_fault() -> None:
    with pytest.raises(BadModel, match="not finite"):
        best_spans(logits(0, float("nan")), logits(0, 0), slice(0, 2), n_best=1)


def test_the_null_logit_is_start_and_end_at_cls() -> None:
    assert null_logit(logits(2.5, 9), logits(1.5, 9)) == 4.0


def test_a_row_is_cls_question_sep_passage_sep() -> None:
    row = join(ids(11, 12), ids(21, 22, 23))
    assert row.input_ids.tolist() == [CLS, 11, 12, SEP, 21, 22, 23, SEP]
    assert row.token_type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert row.attention_mask.tolist() == [1] * 8
    assert row.input_ids[row.passage].tolist() == [21, 22, 23]


def test_a_row_past_the_networks_positions_is_refused_with_both_values() -> None:
    with pytest.raises(BadDocument, match=r"11 and a passage of 499 wordpieces make a row of 513, .* takes 512"):
        join(np.zeros(11, dtype=np.int32), np.zeros(499, dtype=np.int32))


def test_a_row_that_just_fits_is_taken() -> None:
    assert len(join(np.zeros(11, dtype=np.int32), np.zeros(498, dtype=np.int32))) == MAX_ROW_TOKENS


@given(lengths=st.lists(st.integers(4, 200), max_size=40), max_rows=st.integers(1, 8), width=st.integers(1, 64))
def test_every_row_is_in_exactly_one_batch_and_whole(lengths: list[int], max_rows: int, width: int) -> None:
    rows = [row_of(length) for length in lengths]
    made = batches(rows, max_rows, width)
    assert sorted(number for batch in made for number in batch.rows) == list(range(len(rows)))
    for batch in made:
        assert len(batch.rows) <= max_rows
        for line, number in enumerate(batch.rows):
            row, length = rows[number], len(rows[number])
            assert batch.input_ids[line, :length].tolist() == row.input_ids.tolist()
            assert batch.token_type_ids[line, :length].tolist() == row.token_type_ids.tolist()
            assert batch.attention_mask[line].tolist() == [1] * length + [0] * (batch.input_ids.shape[1] - length)


@given(lengths=st.lists(st.integers(4, 200), min_size=1, max_size=40), width=st.integers(1, 64))
def test_padding_stays_under_a_buckets_width(lengths: list[int], width: int) -> None:
    for batch in batches([row_of(length) for length in lengths], bucket_tokens=width):
        assert batch.attention_mask.sum(axis=1).min() > batch.attention_mask.shape[1] - width
