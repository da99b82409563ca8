"""The kind of answer that a question's words ask for."""

import pytest

from shardqa import answer_forms


@pytest.mark.parametrize(
    ("question", "wording"),
    [
        ("Who built the mill?", "name"),
        ("in which year was it built", "name"),
        ("How wide is the wheel?", "name"),
        ("What is a sluice?", "what"),
        ("How does the wheel turn", "how"),
        ("Why was it closed?", "how"),
        ("Is the mill open?", "yes"),
        ("vpn expense limit", "keywords"),
        ("The mill burnt down in 1871.", "keywords"),
    ],
)
def test_a_questions_words_say_what_kind_of_answer_it_wants(question: str, wording: str) -> None:
    assert answer_forms.wording(question) == wording


@pytest.mark.parametrize(
    ("question", "items", "form"),
    [
        ("Who built the mill?", 5, "span"),
        ("Why was it closed?", 5, "sentences"),
        ("vpn expense limit", 1, "sentences"),
        ("Which lamps are lit in fog?", 2, "list"),
        ("Which lamps are lit in fog?", 1, "span"),
    ],
)
def test_words_choose_the_form_and_a_list_has_items(question: str, items: int, form: answer_forms.Form) -> None:
    assert answer_forms.chosen(question, items) == form


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("Which lamps are lit in fog?", True),
        ("what are the parts of a mill", True),
        ("List all ports", True),
        ("What three main rivers meet there?", True),
        ("What does this mean?", False),
        ("What causes rust?", False),
        ("Which fish lives there?", False),
        ("Which bus goes there?", False),
        ("What were the wars called?", False),
        ("Who built the mills?", False),
    ],
)
def test_words_that_ask_for_several_things_are_known(question: str, several: bool) -> None:
    assert answer_forms.asks_for_several(question) is several
