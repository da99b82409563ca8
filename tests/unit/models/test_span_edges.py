"""Spans that a reader cuts at a mark, and what they are widened to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.models.span_edges import in_row, widened


@pytest.mark.parametrize(
    ("text", "span", "whole"),
    [
        ("It is set in /etc/papersize by you.", "papersize", "/etc/papersize"),
        ("It is set in /etc/papersize.", "etc", "/etc/papersize"),
        ("Set R_LIBS_USER first.", "LIBS", "R_LIBS_USER"),
        ("Write to <ada@mill.org> now", "ada", "ada@mill.org"),
        ("Write to ada@mill.org.", "mill", "ada@mill.org"),
        ("It leaves at 12:30, as ever.", "12", "12:30"),
        ("By the Church (USA) and others", "Church (USA", "Church (USA)"),
        ("The forest (62 acres) stands", "62 acres)", "(62 acres)"),
        ("Keep [all of it] here", "Keep [all of it", "Keep [all of it]"),
        ("The mill (1742) burnt.", "1742", "1742"),
        ("It ended.Then it began.", "ended", "ended"),
        ("It was Bjarne Stroustrup, in 1985.", "Bjarne Stroustr", "Bjarne Stroustrup"),
        ("The New York-based firm", "New York", "New York"),
        ("It stands. Still.", "stands", "stands"),
        ("風車/水車は川にある", "風車", "風車"),
        ("Its hash is 4be1c09d77a2ff31.", "4", "4be1c09d77a2ff31"),
        ("Run 7d3c41f0-09aa-4c1e-b7d2-61aa0cc912ef, then", "4c1e", "7d3c41f0-09aa-4c1e-b7d2-61aa0cc912ef"),
        ("See https://mill.org/a?b=1&c=%20d, or ask.", "https", "https://mill.org/a?b=1&c=%20d"),
        ("Bought on: 2022-06-27; Height: 4.", "2022-06", "2022-06-27"),
        ("It ran from 1914-1918.", "1914", "1914"),
        ("The lot MK-4471 is sold.", "MK", "MK-4471"),
        ("Asa Löwe sails.", "Asa L", "Asa Löwe"),
        ("The part 44/9*2 fits.", "44/9", "44/9*2"),
        ("It is **Heron_Guest** here.", "Heron", "Heron_Guest"),
        ("It is *maple* here.", "maple", "maple"),
        ("Who?\nOmar Said: I take them.", "Omar", "Omar Said"),
    ],
)
def test_a_span_grows_to_whole_names_and_brackets_and_no_further(text: str, span: str, whole: str) -> None:
    start = text.index(span)
    begin, end = widened(text, start, start + len(span))
    assert text[begin:end] == whole


@given(st.text("a1_/@.:-([)] \n", max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_a_span_never_shrinks_and_stays_in_its_text(text: str, first: int, second: int) -> None:
    start, end = sorted((min(first, len(text)), min(second, len(text))))
    begin, stop = widened(text, start, end)
    assert 0 <= begin <= start <= end <= stop <= len(text)


@pytest.mark.parametrize(
    ("span", "answer"),
    [
        ("Room", "2.09"),
        ("Room: 2.09; City", "2.09"),
        ("Tarn", "Tarn Crafts"),
        ("once a week, by hand", "once a week, by hand"),
        ("Not in it", "Not in it"),
    ],
)
def test_a_span_of_a_row_is_one_cell_or_lies_in_a_long_one(span: str, answer: str) -> None:
    cells = [("Maker", "Tarn Crafts"), ("Room", "2.09"), ("City", "Lisk"), ("Care", "Oil it once a week, by hand.")]
    text = "Not in it. Maker Tarn Crafts has Room: 2.09; City: Lisk; Care: Oil it once a week, by hand."
    start = text.index(span)
    begin, stop = in_row(text, 11, cells, start, start + len(span))
    assert text[begin:stop] == answer


def test_of_a_pair_whose_value_the_question_tells_the_name_is_the_answer() -> None:
    text = "Tuesday: closed."
    for question, answer in (("When is it closed?", "Tuesday"), ("What is it on Tuesday?", "closed")):
        begin, stop = in_row(text, 0, [("Tuesday", "closed")], 0, 7, question)
        assert text[begin:stop] == answer


@pytest.mark.parametrize("span", ["Crane of up to 5 t", "Crane of up to 5 t has Price: 95 crowns"])
def test_of_a_row_of_two_cells_whose_first_the_question_tells_the_second_is_the_answer(span: str) -> None:
    text, cells = (
        "Service Crane of up to 5 t has Price: 95 crowns.",
        [("Service", "Crane of up to 5 t"), ("Price", "95 crowns")],
    )
    asked = ("What does the crane cost?", "What costs 95 crowns?", "Which of it is it?")
    for question, answer in zip(asked, ("95 crowns", "Crane of up to 5 t", "Crane of up to 5 t"), strict=True):
        begin, stop = in_row(text, 0, cells, 8, 8 + len(span), question)
        assert text[begin:stop] == answer
