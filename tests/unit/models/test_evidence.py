"""Sentences that support an answer."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shardqa.models import evidence, reader

TEXT = "It rained. So the race was put off. Nobody minded. Tea was served."


def tokens(text: str) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """(characters of each word, with its full stop apart; number of its sentence)."""
    offsets, sentences, place = list[tuple[int, int]](), list[int](), 0
    for number, sentence in enumerate(text.rstrip(".").split(". ")):
        for word in f"{sentence} .".split():
            begin = text.index(word, place)
            place = begin + len(word)
            offsets.append((begin, place))
            sentences.append(number)
    return np.array(offsets, dtype=np.int32), np.array(sentences)


def logits(of: dict[int, float]) -> NDArray[np.float32]:
    """Returns logits of the tokens of TEXT: those in `of`, all others -9."""
    values = np.full(len(tokens(TEXT)[0]), -9, dtype=np.float32)
    for token, logit in of.items():
        values[token] = logit
    return values


def test_each_sentence_is_a_piece_of_the_text_with_its_logit() -> None:
    one = logits({1: 5, 11: 3})
    sentences = evidence.likeliest(reader.RowLogits(one, one), *tokens(TEXT))
    assert " ".join(TEXT[a:b] for a, b, *_ in sentences) == TEXT
    assert np.argsort([-one.logit for one in sentences]).tolist()[:2] == [0, 2]
    assert sentences[0].logit > 10


def test_of_many_sentences_the_likeliest_are_left_and_those_of_the_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "PER_PASSAGE", 1)
    one = logits({1: 5})
    sentences = evidence.likeliest(reader.RowLogits(one, one), *tokens(TEXT), [reader.Span(8, 11, 0.0)])
    assert [TEXT[a:b] for a, b, *_ in sentences] == ["It rained.", "So the race was put off.", "Nobody minded."]


def test_the_evidence_of_a_sentence_is_the_mean_of_its_tokens() -> None:
    one, of_tokens = logits({}), logits({9: 8})
    of_row = reader.RowLogits(one, one, of_tokens, 2.0)
    means = [sentence.evidence for sentence in evidence.likeliest(of_row, *tokens(TEXT))]
    offsets, numbers = tokens(TEXT)
    assert means == [pytest.approx(of_tokens[numbers == number].mean()) for number in range(4)]
    assert evidence.own(offsets, numbers, reader.Span(9, 9, 0.0), of_tokens).evidence == pytest.approx(
        of_tokens[numbers == numbers[9]].mean()
    )


def test_sentences_are_shown_up_to_the_highest_word_f1_that_is_to_be_expected() -> None:
    def shows(*chances: float) -> list[bool]:
        return [bool(one) for one in evidence.worth_showing(np.array(chances), np.full(len(chances), 10))]

    assert shows(0.2, 0.9, 0.3) == [False, True, False]
    assert shows(0.3, 0.25, 0.3) == [True, True, True]
    assert shows(0.14, 0.04) == [False, False]
    assert shows() == []


def test_own_is_the_whole_sentence() -> None:
    start, end, *_ = evidence.own(*tokens(TEXT), reader.Span(12, 12, 0.0))
    assert TEXT[start:end] == "Nobody minded."


@given(st.lists(st.floats(-20, 20, width=32), min_size=17, max_size=17), st.integers(0, 16), st.integers(0, 16))
def test_a_span_lies_within_its_own_sentences(values: list[float], first: int, other: int) -> None:
    offsets, numbers = tokens(TEXT)
    assert len(offsets) == len(values)
    logits = np.array(values, dtype=np.float32)
    span = reader.Span(min(first, other), max(first, other), 0.0)
    start, end, *_ = evidence.own(offsets, numbers, span)
    assert start <= offsets[span.start_token, 0] < offsets[span.end_token, 1] <= end
    sentences = evidence.likeliest(reader.RowLogits(logits, logits), offsets, numbers, [span])
    assert {start, end} <= {place for sentence in sentences for place in sentence[:2]}
    assert all(a < b <= c for (a, b, *_), (c, *_) in itertools.pairwise(sentences))
