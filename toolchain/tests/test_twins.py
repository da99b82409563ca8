"""Twins ask about another thing of the same kind, wherever the question names one."""

from random import Random

import pytest

from shardqa_toolchain.twins import CODE, DATE, NAME, NUMBER, PLACE, TwinMaker, asked_terms, other_digits, terms

HARBOUR = "The captain of the Merope is Jon Brenn. The Sirius sails to Lisbon on Friday. Error E17 locks gate 42."
MAKER = TwinMaker({"harbour": [HARBOUR], "mountain": ["He climbed the Gothar in August with Mila Sorg, near Andeer."]})


def kinds(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in terms(text)]


def test_each_kind_of_term_is_found_by_its_form() -> None:
    found = [
        (NAME, "Merope"),
        (NAME, "Jon Brenn"),
        (NAME, "Sirius"),
        (PLACE, "Lisbon"),
        (DATE, "Friday"),
        (CODE, "E17"),
    ]
    assert kinds(HARBOUR) == [*found, (NUMBER, "42")]


def test_a_word_that_begins_a_sentence_is_no_name_for_that() -> None:
    assert kinds("Boats are late. Which boats? NASA knows.") == [(NAME, "NASA")]


def test_a_question_in_small_letters_names_what_its_passage_writes_as_a_name() -> None:
    assert [one.text for one in asked_terms("captain of the merope", terms(HARBOUR))] == ["merope"]


@pytest.mark.parametrize("near", [0.0, 1.0])
def test_a_twin_differs_in_one_name(near: float) -> None:
    twin = MAKER.twin("Who is the captain of the Merope?", HARBOUR, "harbour", Random(1), near)
    assert twin is not None
    assert twin.text in {"Sirius", "Jon Brenn"}
    assert twin.question == f"Who is the captain of the {twin.text}?"


def test_a_source_without_another_of_the_kind_borrows_one_from_elsewhere() -> None:
    twin = MAKER.twin("What sails on Friday?", HARBOUR, "harbour", Random(1), 0.0)
    assert twin is not None
    assert twin.question == "What sails on August?"


def test_the_twin_of_a_name_in_small_letters_is_in_small_letters() -> None:
    twin = MAKER.twin("captain merope", HARBOUR, "harbour", Random(1), 0.0)
    assert twin is not None
    assert twin.question in {"captain sirius", "captain jon brenn"}


def test_a_longer_form_of_the_same_name_is_no_twin() -> None:
    maker = TwinMaker({"one": ["He met Dr Anna Hale there."]})
    assert maker.twin("When did we meet Hale?", "She met Anna Hale.", "one", Random(1)) is None


def test_numbers_change_digit_by_digit() -> None:
    assert [len(other_digits("E17", Random(n))) for n in range(9)] == [3] * 9
    assert all(other_digits("40", Random(n))[0] != "0" for n in range(50))


def test_a_question_that_names_nothing_has_no_twin() -> None:
    assert MAKER.twin("who steers the boat?", HARBOUR, "harbour", Random(1)) is None
