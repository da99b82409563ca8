"""Sentences that support an answer."""

import numpy as np
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


def texts(logits: dict[int, float], span: tuple[int, int], near: float = evidence.NEAR) -> list[str]:
    """The evidence of TEXT where the tokens named begin and end spans of these logits, all others of -9."""
    offsets, sentences = tokens(TEXT)
    one = np.full(len(offsets), -9, dtype=np.float32)
    for token, logit in logits.items():
        one[token] = logit
    found = evidence.supporting(one, one, offsets, sentences, reader.Span(*span, 0.0), near)
    return [TEXT[start:end] for start, end in found]


def test_the_sentence_of_the_answer_supports_it() -> None:
    assert texts({1: 5}, (1, 1)) == ["It rained."]


def test_a_sentence_that_is_nearly_as_likely_supports_it_too() -> None:
    assert texts({1: 5, 11: 4.5}, (1, 1)) == ["It rained.", "Nobody minded."]


def test_one_that_is_less_likely_does_not() -> None:
    assert texts({1: 5, 11: 3.5}, (1, 1)) == ["It rained."]


def test_neighbours_are_one_piece() -> None:
    assert texts({1: 5, 5: 4.9}, (1, 1)) == ["It rained. So the race was put off."]


def test_the_sentences_of_an_answer_that_crosses_their_border_are_all_there() -> None:
    assert texts({11: 5}, (8, 11)) == ["So the race was put off. Nobody minded."]


def test_own_is_the_whole_sentence() -> None:
    offsets, sentences = tokens(TEXT)
    assert [TEXT[a:b] for a, b in evidence.own(offsets, sentences, reader.Span(12, 12, 0.0))] == ["Nobody minded."]


@given(st.lists(st.floats(-20, 20, width=32), min_size=17, max_size=17), st.integers(0, 16), st.integers(0, 16))
def test_the_answer_lies_within_its_evidence(values: list[float], one: int, other: int) -> None:
    offsets, sentences = tokens(TEXT)
    assert len(offsets) == len(values)
    logits = np.array(values, dtype=np.float32)
    span = reader.Span(min(one, other), max(one, other), 0.0)
    found = evidence.supporting(logits, logits, offsets, sentences, span)
    begin, end = offsets[span.start_token, 0], offsets[span.end_token, 1]
    assert any(a <= begin and end <= b for a, b in found)
    assert all(a < b <= c for (a, b), (c, _) in zip(found, [*found[1:], (len(TEXT), 0)], strict=True))
