"""Labels of words: from character ranges to words and back, for any Unicode text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa_toolchain.faults import Faulty
from shardqa_toolchain.multitask.tasks import BIO, OUTSIDE, PLAIN
from shardqa_toolchain.multitask.words import Mark, Words, entities, label_words
from toolchain.tests.tiny import TOKENIZER

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
LABEL = st.sampled_from(["PER", "LOC", "x"])


def words_of(text: str) -> Words:
    return Words.of(TOKENIZER.passage(text))


@st.composite
def marked(draw: st.DrawFn) -> tuple[Words, list[Mark]]:
    """The words of a text, and marks over runs of whole words, none touching another."""
    words = words_of(draw(TEXT))
    marks, first = list[Mark](), 0
    while first < len(words):
        length = draw(st.integers(0, 3))
        last = min(first + length, len(words)) - 1
        if length and not shares_characters(words, first, last):
            marks.append(Mark(int(words.start[first]), int(words.end[last]), draw(LABEL)))
        first += length + draw(st.integers(1, 2))
    return words, marks


def shares_characters(words: Words, first: int, last: int) -> bool:
    """Whether the run's first or last word has a character in common with the word before or after it."""
    before = first > 0 and words.end[first - 1] > words.start[first]
    after = last + 1 < len(words) and words.start[last + 1] < words.end[last]
    return bool(before or after)


@given(TEXT)
def test_words_stand_in_reading_order_and_hold_a_character_each(text: str) -> None:
    words = words_of(text)
    assert (words.end > words.start).all()
    assert (words.start[1:] >= words.start[:-1]).all()
    assert (words.first[1:] > words.first[:-1]).all()


@given(marked())
def test_entities_of_labelled_words_are_the_marks_again(case: tuple[Words, list[Mark]]) -> None:
    words, marks = case
    labels = label_words(words, [Mark(one.start, one.end, f"B-{one.label}") for one in marks], BIO)
    assert entities(words, labels, BIO) == marks


@given(marked())
def test_plain_labels_say_each_word_by_itself(case: tuple[Words, list[Mark]]) -> None:
    words, marks = case
    labels = label_words(words, marks, PLAIN)
    inside = [
        next((mark.label for mark in marks if mark.start <= start and end <= mark.end), OUTSIDE)
        for start, end in zip(words.start.tolist(), words.end.tolist(), strict=True)
    ]
    assert list(labels) == inside
    assert [mark.label for mark in entities(words, labels, PLAIN)] == [label for label in labels if label != OUTSIDE]


@pytest.mark.parametrize(
    ("text", "mark", "labels"),
    [
        ("in New York City", Mark(3, 16, "B-TOWN"), ("O", "B-TOWN", "I-TOWN", "I-TOWN")),
        ("by the Rhine .", Mark(6, 13, "B-WATER"), ("O", "O", "B-WATER", "O")),
    ],
    ids=["several words begin once", "blanks at the edges do no harm"],
)
def test_a_mark_labels_the_words_that_it_covers(text: str, mark: Mark, labels: tuple[str, ...]) -> None:
    assert label_words(words_of(text), [mark], BIO) == labels


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ([Mark(4, 7, "B-x")], "cuts the word at characters 4 to 9"),
        ([Mark(6, 9, "B-x")], "cuts the word at characters 4 to 9"),
        ([Mark(3, 4, "B-x")], "holds no word"),
        ([Mark(0, 9, "B-x"), Mark(4, 9, "B-y")], "overlaps"),
    ],
)
def test_a_mark_that_does_not_align_with_words_says_where(marks: list[Mark], message: str) -> None:
    with pytest.raises(Faulty, match=message):
        label_words(words_of("the Rhine"), marks, BIO)


def test_an_inside_after_another_type_begins_an_entity() -> None:
    found = entities(words_of("a b c"), ["B-x", "I-y", "I-y"], BIO)
    assert found == [Mark(0, 1, "x"), Mark(2, 5, "y")]


def test_a_text_without_words_has_none() -> None:
    assert len(words_of(" \u200b")) == 0
