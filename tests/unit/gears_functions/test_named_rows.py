"""Rows of a passage that a reader gets."""

import pytest

from shardqa.gears_functions import named_rows
from shardqa.gears_functions.passage_reading import Loaded
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer

TOKENIZER = Tokenizer.load(shipped.folder())
TEXT = "Crew\n\nSkipper: Ann Holt\nFirst mate: Ugo Brandt\n\nAll sail."


@pytest.mark.parametrize(
    ("question", "text", "read"),
    [
        ("Who is the first mate?", TEXT, "First mate: Ugo Brandt All sail."),
        ("Who is Ugo Brandt?", TEXT, TEXT),
        ("Who is the skipper?", "Skipper\nAnn Holt\n\nFirst mate\nUgo Brandt\n", "Skipper Ann Holt"),
    ],
)
def test_a_reader_gets_the_pair_that_the_question_names(question: str, text: str, read: str) -> None:
    passage = Loaded("passage:c:{t}:d:0", 1.0, text, 0, "", None, [], "")
    pieces = named_rows.read_of(passage, TOKENIZER.passage(text), question)
    assert " ".join(pieces.ids.astype(str)) == " ".join(TOKENIZER.passage(read).ids.astype(str))


def test_a_row_is_named_by_its_first_cell() -> None:
    marks = [
        [0, {"cells": [["Desk", "Archive"], ["Opens", "8:30"]]}],
        [30, {"cells": [["Desk", "Till"], ["Opens", "9:15"]]}],
    ]
    text = f"{'Desk Archive has Opens: 8:30.':<30}Desk Till has Opens: 9:15."
    passage = Loaded("passage:c:{t}:d:0", 1.0, text, 0, "", None, marks, "")
    pieces = named_rows.read_of(passage, TOKENIZER.passage(text), "When does the till open?")
    assert pieces.offsets[0, 0] == 30


def test_of_a_named_row_a_reader_gets_the_column_that_is_asked_for_and_not_told() -> None:
    marks = [[0, {"cells": [["Desk", "Till"], ["Opens", "9:15"], ["Closes", "16:00"], ["Floor", "2"]]}]]
    text = "Desk Till has Opens: 9:15; Closes: 16:00; Floor: 2."
    passage = Loaded("passage:c:{t}:d:0", 1.0, text, 0, "", None, marks, "")
    pieces = named_rows.read_of(passage, TOKENIZER.passage(text), "When does the till close that is on floor 2?")
    assert "16:00" in text[pieces.offsets[0, 0] :]
    assert not [piece for piece in pieces.offsets if text[piece[0] : piece[1]] in ("9", "15", "floor", "2")]


POSTS = [
    [0, {"cells": [["Post", "Boat shed"], ["Duty", "keeps the keys, oils the winch"], ["Person", "Otto Rask"]]}],
    [90, {"cells": [["Post", "Kiosk"], ["Duty", "sells tickets"], ["Person", "Greta Lund"]]}],
]
POSTS_TEXT = (
    f"{'Post Boat shed has Duty: keeps the keys, oils the winch; Person: Otto Rask.':<90}"
    "Post Kiosk has Duty: sells tickets; Person: Greta Lund."
)


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("Who keeps the keys?", "keeps the keys , oils the winch ; person : otto rask ."),
        ("Which post keeps the keys?", POSTS_TEXT[:90]),
        ("What is sold at the kiosk?", "post kiosk has duty : sells tickets ; person : greta lund ."),
    ],
)
def test_a_row_that_says_all_of_a_question_is_read_with_the_column_of_what_is_asked_for(
    question: str, read: str
) -> None:
    passage = Loaded("passage:c:{t}:d:0", 1.0, POSTS_TEXT, 0, "", None, POSTS, "")
    pieces = named_rows.read_of(passage, TOKENIZER.passage(POSTS_TEXT), question)
    assert pieces.ids.tolist() == TOKENIZER.passage(read).ids.tolist()


def test_a_pair_whose_value_the_question_tells_is_not_what_it_asks_for() -> None:
    marks = [[0, {"cells": [["Account", "KX 4711"]]}], [20, {"cells": [["Owner", "Heron Club"]]}]]
    text = f"{'Account: KX 4711.':<20}Owner: Heron Club."
    passage = Loaded("passage:c:{t}:d:0", 1.0, text, 0, "", None, marks, "")
    pieces = named_rows.read_of(passage, TOKENIZER.passage(text), "Who owns the account KX 4711?")
    assert pieces.ids.tolist() == TOKENIZER.passage(text).ids.tolist()


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("What is the membership fee for a family?", "Membership fees Family: 110 euros"),
        ("What does a family pay as membership fee?", "Family: 110 euros"),
    ],
)
def test_a_heading_is_read_with_a_row_below_it_where_it_is_what_is_asked_for(question: str, read: str) -> None:
    text = "Membership fees\n\nAdults: 72 euros\nFamily: 110 euros\n"
    passage = Loaded("passage:c:{t}:d:0", 1.0, text, 0, "", None, [], "")
    pieces = named_rows.read_of(passage, TOKENIZER.passage(text), question)
    assert pieces.ids.tolist() == TOKENIZER.passage(read).ids.tolist()
