"""From logits to results: spans out of B, I and O against trying every span, words of overlapping windows."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.reader import best_spans
from shardqa_toolchain.multitask.decoding import (
    AnswerableResult,
    DecodedWindow,
    Result,
    SequenceResult,
    SpanResult,
    WordsResult,
    best_tags,
    decode,
    span_logits,
)
from shardqa_toolchain.multitask.tasks import CONTROL, HEADS, PLAIN, Task, bio_labels
from shardqa_toolchain.multitask.words import Mark, Words
from shardqa_toolchain.windows import windows
from toolchain.tests.tiny import TOKENIZER

TEXT = "by the café\u0301 Rhine"

Floats = NDArray[np.float32]
HALVES = st.integers(-20, 20).map(lambda n: n / 2)


def decoded(form: str, task: Task, *logits: Floats, text: str = TEXT) -> Result:
    """Returns the result of a row without a question, [CLS] [SEP] text [SEP]."""
    tokens = TOKENIZER.passage(text)
    ((first, row),) = windows(TOKENIZER.question(""), tokens.ids)
    return decode(form, task, text, tokens, Words.of(tokens), [DecodedWindow(first, row, logits)])


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float32)


def per_token(token: int, column: int, columns: int, height: float = 5) -> Floats:
    """Logits [tokens, columns] of TEXT's row that are 0 but for one."""
    logits = np.zeros((len(TOKENIZER.passage(TEXT)) + 3, columns), dtype=np.float32)
    logits[token, column] = height
    return logits


@given(st.integers(0, 12).flatmap(lambda n: arrays(np.float32, (n + 3, 3), elements=HALVES)))
def test_the_best_span_of_tags_is_what_trying_every_span_finds(logits: Floats) -> None:
    start, end = span_logits(logits)
    found = best_spans(start, end, slice(2, len(logits) - 1), n_best=1)
    odds = {
        (i, j): logits[i, 1] - logits[i, 0] + sum(logits[k, 2] - logits[k, 0] for k in range(i + 1, j + 1))
        for i in range(2, len(logits) - 1)
        for j in range(i, len(logits) - 1)
    }
    assert [one.logit for one in found] == ([max(odds.values())] if odds else [])
    assert start[0] == end[0] == 0


TAGS = bio_labels(("X", "Y"))


def is_reading(tags: Sequence[int]) -> bool:
    """Whether every I follows a B or an I of its own kind."""
    names = ["O", *(TAGS[tag] for tag in tags)]
    return all(now[0] != "I" or before in (now, f"B{now[1:]}") for before, now in itertools.pairwise(names))


@given(st.integers(1, 4).flatmap(lambda n: arrays(np.float32, (n, len(TAGS)), elements=HALVES)))
def test_the_best_tags_are_what_trying_every_reading_finds(logits: Floats) -> None:
    def total(tags: Sequence[int]) -> float:
        return float(logits[np.arange(len(logits)), list(tags)].sum())

    found = best_tags(logits, TAGS).tolist()
    readings = filter(is_reading, itertools.product(range(len(TAGS)), repeat=len(logits)))
    assert is_reading(found)
    assert total(found) == max(map(total, readings))


def test_a_text_without_words_has_no_tags() -> None:
    assert best_tags(np.zeros((0, len(TAGS)), dtype=np.float32), TAGS).tolist() == []


def test_a_thing_whose_parts_lean_to_two_kinds_is_one_thing() -> None:
    logits = np.full((2, len(TAGS)), -9, dtype=np.float32)
    logits[0, [TAGS.index("B-X"), TAGS.index("B-Y")]] = 2, 1
    logits[1, [TAGS.index("I-X"), TAGS.index("I-Y")]] = 1, 3
    assert [TAGS[tag] for tag in best_tags(logits, TAGS)] == ["B-Y", "I-Y"]


def test_a_span_keeps_its_accents_says_where_it_stands_and_is_not_said_below_none() -> None:
    start = floats(0, 0, 0, 0, 9, 0, 0)
    result = decoded(HEADS, Task("qa", "span"), start, start)
    assert result == SpanResult("café\u0301", 7, 12, 18.0)
    assert result.is_said
    unlikely = floats(9, 0, 0, 0, 1, 0, 0)
    assert not decoded(HEADS, Task("qa", "span"), unlikely, unlikely).is_said  # type: ignore[union-attr]


def test_answerable_is_a_probability_and_stands_at_the_first_token_in_the_control_form() -> None:
    assert decoded(HEADS, Task("said", "answerable"), np.array(0, dtype=np.float32)) == AnswerableResult(0.5)
    result = decoded(CONTROL, Task("said", "answerable", control=1), per_token(0, 1, 2))
    assert isinstance(result, AnswerableResult)
    assert result.probability > 0.99


@pytest.mark.parametrize(("form", "logits"), [(HEADS, floats(0, 5)), (CONTROL, per_token(0, 1, 2))])
def test_a_sequence_has_the_label_of_the_highest_logit(form: str, logits: Floats) -> None:
    result = decoded(form, Task("topic", "sequence", ("lake", "river")), logits)
    assert isinstance(result, SequenceResult)
    assert result.label == "river"
    assert result.probability == pytest.approx(1 / (1 + np.exp(-5)))


def test_words_have_labels_and_places() -> None:
    result = decoded(HEADS, Task("parts", "tokens", ("O", "x"), PLAIN), per_token(5, 1, 2))
    assert isinstance(result, WordsResult)
    assert result.entities == (Mark(13, 18, "x"),)
    assert [TEXT[word.start : word.end] for word in result.words] == ["by", "the", "café\u0301", "Rhine"]


def test_a_word_is_judged_in_the_window_that_shows_most_around_it() -> None:
    text = "rivers " * 500
    tokens = TOKENIZER.passage(text)
    rows = list(windows(TOKENIZER.question(""), tokens.ids))
    labels = tuple(f"window {number}" for number in range(len(rows)))
    task = Task("parts", "tokens", labels, PLAIN)
    seen = [
        DecodedWindow(first, row, (np.tile(np.eye(len(rows), dtype=np.float32)[number], (len(row), 1)),))
        for number, (first, row) in enumerate(rows)
    ]
    result = decode(HEADS, task, text, tokens, Words.of(tokens), seen)
    assert isinstance(result, WordsResult)
    # The windows hold 0 to 380 and 128 to 499: word 254 is the first that is farther from an edge of the second.
    assert [word.label for word in result.words] == ["window 0"] * 255 + ["window 1"] * 245


def test_logits_that_are_not_finite_are_the_models_fault() -> None:
    with pytest.raises(BadModel, match="logits of topic that are not finite"):
        decoded(HEADS, Task("topic", "sequence", ("a", "b")), floats(0, np.nan))
