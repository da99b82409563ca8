"""SQuAD's scoring on examples worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.models.metrics import exact_match, f1, mean_reciprocal_rank, normalise, recall_at


@pytest.mark.parametrize(
    ("answer", "normal"),
    [
        ("The  Norman\tConquest!", "norman conquest"),
        ("a-b", "ab"),
        ("an apple a day", "apple day"),
        ("“Saint”", "“saint”"),
        ("Theatre", "theatre"),
        ("U.S.", "us"),
        ("", ""),
        ("the", ""),
    ],
)
def test_normalisation_follows_squad(answer: str, normal: str) -> None:
    assert normalise(answer) == normal


def test_any_reference_may_match_exactly() -> None:
    assert exact_match("the Rhine.", ["Danube", "Rhine"]) == 1.0


def test_a_different_answer_does_not_match() -> None:
    assert exact_match("Rhine valley", ["Rhine"]) == 0.0


def test_f1_is_twice_the_common_words_over_all_words() -> None:
    assert f1("in the Rhine valley", ["Rhine"]) == pytest.approx(2 * 1 / (3 + 1))


def test_f1_counts_a_repeated_word_as_often_as_both_have_it() -> None:
    assert f1("new new york", ["new york new"]) == 1.0
    assert f1("new new", ["new"]) == pytest.approx(2 / 3)


def test_f1_takes_the_nearest_reference() -> None:
    assert f1("10th century", ["the first half of the 10th century", "10th century"]) == 1.0


def test_words_in_common_are_none_so_f1_is_zero() -> None:
    assert f1("Danube", ["Rhine"]) == 0.0


def test_silence_is_right_where_nothing_answers() -> None:
    assert exact_match("", []) == f1("", []) == 1.0


def test_any_answer_is_wrong_where_nothing_answers() -> None:
    assert exact_match("Rhine", []) == f1("Rhine", []) == 0.0


def test_silence_is_wrong_where_something_answers() -> None:
    assert exact_match("", ["Rhine"]) == f1("", ["Rhine"]) == 0.0


def test_references_that_say_nothing_are_left_out() -> None:
    assert f1("", ["the", "Rhine"]) == 0.0


@given(st.text(), st.lists(st.text(), max_size=3))
def test_f1_is_at_least_exact_match_and_at_most_one(answer: str, references: list[str]) -> None:
    assert exact_match(answer, references) <= f1(answer, references) <= 1.0


@given(st.text())
def test_an_answer_is_right_about_itself(answer: str) -> None:
    assert exact_match(answer, [answer]) == 1.0


def test_recall_counts_ranks_up_to_k() -> None:
    assert recall_at(5, [1, 5, 6, None]) == 0.5


def test_the_mean_reciprocal_rank_counts_a_miss_as_nothing() -> None:
    assert mean_reciprocal_rank([1, 2, None, 4]) == pytest.approx((1 + 0.5 + 0 + 0.25) / 4)


def test_a_mean_of_no_questions_is_refused() -> None:
    with pytest.raises(ValueError, match="0 questions"):
        recall_at(1, [])
