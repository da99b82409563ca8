"""The styles that questions are put in: each keeps what is asked for."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadData
from shardqa_toolchain.training import styles
from shardqa_toolchain.training.styles import Styles

RANDOM = Random(1)
CAPITAL = "What is the capital of France?"


def test_keywords_are_a_question_without_its_function_words() -> None:
    assert styles.keywords("Which town does the Rhine flow through?", RANDOM) == "town Rhine flow through"


def test_a_question_that_would_lose_all_but_a_word_stays() -> None:
    assert styles.keywords("Who is she?", RANDOM) == "Who is she?"


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        (CAPITAL, "the capital of France"),
        ("When was the bridge built?", "the bridge built"),
        ("How many people live there?", "How many people live there?"),
        ("Who is she?", "Who is she?"),
    ],
)
def test_a_phrase_names_what_is_asked_for(question: str, phrase: str) -> None:
    assert styles.phrase(question, RANDOM) == phrase


def test_courtesies_stand_around_the_question() -> None:
    assert {"What is the capital of France" in styles.courtesy(CAPITAL, Random(seed)) for seed in range(20)} == {True}


@given(st.integers())
def test_one_long_word_is_misspelt_and_keeps_its_first_letter(seed: int) -> None:
    words, slips = CAPITAL.split(" "), styles.misspelt(CAPITAL, Random(seed)).split(" ")
    changed = [(old, new) for old, new in zip(words, slips, strict=True) if old != new]
    assert len(changed) <= 1  # a letter may be replaced by itself
    assert all(old == "capital" and new[0] == "c" and abs(len(new) - len(old)) <= 1 for old, new in changed)


@pytest.mark.parametrize("question", ["", "?", "Who?", "C++ or C#?"])
def test_a_question_with_nothing_to_change_stays(question: str) -> None:
    assert styles.misspelt(question, RANDOM) == question
    assert styles.phrase(question, RANDOM) == question


def test_styles_are_used_as_often_as_asked_for() -> None:
    mixed = Styles(keywords=0.5)
    changed = sum(mixed.apply(CAPITAL, Random(seed)) != CAPITAL for seed in range(400))
    assert 150 < changed < 250


@pytest.mark.parametrize("shares", [Styles(keywords=-0.1), Styles(keywords=0.6, misspelt=0.6)])
def test_shares_that_are_none_are_refused(shares: Styles) -> None:
    with pytest.raises(BadData, match="shares of 0 or more and of 1 in all are needed"):
        shares.checked()
