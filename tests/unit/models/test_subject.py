"""What of a question stands where an answer was read."""

import pytest

from shardqa.models.subject import Subject, names_of


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is the captain of the Berta?", ["berta"]),
        ("What does error E18 mean?", ["e18"]),
        ("Where does Dr Hale work in 2016?", ["hale", "2016"]),
        ("is GitHub free", ["github"]),
        ("When is the deadline of phase 3?", ["phase3"]),
        ("Which lamps are lit?", []),
    ],
)
def test_names_are_words_with_capitals_inside_a_sentence_and_codes_and_numbers(question: str, names: list[str]) -> None:
    assert list(names_of(question)) == names


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Who sails the Berta?", "The Berta's captain is Jon Brenn."),
        ("Where does Dr Hale work?", "Amara Hale works in Ulm."),
        ("What does E17 mean?", "Error E 17 means that the door is open."),
        ("Who leads Müllers?", "Muller is led by Ann."),
        ("Who designed the Maschwitz ferry?", "Maschwits ferries are Ann's."),
        ("When does phase 2 end?", "The second phase ends in May."),
        ("What does clause 3 say?", "3. Either side may leave."),
    ],
)
def test_names_that_differ_in_spelling_or_form_alone_are_the_same(question: str, sentence: str) -> None:
    assert Subject.of(question).heard(sentence, sentence).missing == 0


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Who sails the Berta?", "The captain of the Alma is Jon Brenn."),
        ("What does E18 mean?", "Error E17 means that the door is open."),
        ("When does phase 3 end?", "Phase 2 ends on 3 May."),
    ],
)
def test_another_name_is_not_the_one_asked_for(question: str, sentence: str) -> None:
    heard = Subject.of(question).heard(sentence, sentence)
    assert (heard.missing, heard.lost) == (1, 1)


def test_a_name_may_stand_elsewhere_in_the_passage_or_nowhere() -> None:
    subject = Subject.of("Who built the Alma?")
    assert subject.heard("Ann built it.", "The Alma is old. Ann built it.")[:2] == (1, 0)
    assert Subject.of("Who built the Alma?", ("alma",)).unknown == {"alma"}


def test_words_count_by_their_stems() -> None:
    heard = Subject.of("which lamps are lit in fog?").heard("In fog both lamps are lit.", "")
    assert (heard.said, heard.whole) == (1, 1)


@pytest.mark.parametrize("question", ["WHO FOUNDED THE MILL?", "who FOUNDED the mill"])
def test_a_word_said_aloud_is_no_name(question: str) -> None:
    assert Subject.of(question).names == ()


@pytest.mark.parametrize(
    ("text", "is_echo"),
    [
        ("When does the mill at Abel Ford close?", True),
        ("The mill at Abel Ford is closed.", False),
        ("Abel Ford", False),
        ("The mill at Abel Ford closes at six.", False),
        ("Ada Moss: When does the mill in Abel Ford close today?", True),
    ],
)
def test_a_question_that_stands_in_a_passage_answers_nothing(text: str, is_echo: bool) -> None:
    assert Subject.of("When does the mill in Abel Ford close?").is_echoed(text) == is_echo


@pytest.mark.parametrize(("question", "is_answer"), [("Who orders the rudder?", False), ("When is it ordered?", True)])
def test_a_day_is_nobody(question: str, is_answer: bool) -> None:
    assert Subject.of(question).is_answered("by 3 May", "Ada orders it by 3 May.") == is_answer
    assert Subject.of(question).is_answered("May Lund", "May Lund orders it by 3 May.")
