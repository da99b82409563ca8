"""Words to terms: what meets what."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shardqa.analysis import analyse, query, words


@pytest.mark.parametrize(
    ("form", "other"),
    [
        ("Beyoncé's", "beyonce"),
        ("inventions", "invention"),
        ("cafe\u0301", "café"),
        ("ﬁne", "fine"),
        ("STRASSE", "straße"),
        ("1,234", "1234"),
        ("the mill’s wheels", "mill wheel"),
        ("мельницами", "мельницы"),
        ("المدرسة", "مدرسة"),
        ("किताब", "किताबें"),
    ],
)
def test_forms_of_a_word_are_one_term(form: str, other: str) -> None:
    assert analyse(form).content == analyse(other).content


def test_decimals_stay_whole() -> None:
    assert words("3.5 million in 1,742.25 days") == ["3.5", "million", "in", "1742.25", "days"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C, C++ and C#.", ["c", "c++", "and", "c#"]),
        ("C++17 and C#7", ["c++", "17", "and", "c#", "7"]),
        ("C#'s F#", ["c#", "f#"]),
        ("C♯'s F♯ C", ["c#", "f#", "c"]),
        ("(.NET) ASP.NET", ["net", ".net", "asp", "net"]),
        ("Disney+ and Notepad++!", ["disney", "disney+", "and", "notepad", "notepad++"]),
        ("2+2 5+ a+b", ["2", "2", "5", "a", "b"]),
        ("page#part issue#12 #1", ["page", "part", "issue", "12", "1"]),
        ("... .. a...b .5", ["a", "b", "5"]),
        ("10⁵ 10^5 2⁻³ 105 m²", ["10^5", "10^5", "2^-3", "105", "m2"]),
    ],
)
def test_marks_that_make_another_word_of_one_stay(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_what_is_written_without_blanks_becomes_overlapping_runs() -> None:
    assert words("東京都 a漢 漢b") == ["東京", "京都", "a", "漢", "漢", "b"]
    assert words("กรุงเทพ b") == ["กรง", "รงเ", "งเท", "เทพ", "b"]


def test_stop_words_are_kept_apart() -> None:
    found = analyse("The mill of the brothers")
    assert found.content == ["mill", "brother"]
    assert found.stop == ["the", "of", "the"]


def test_a_question_looks_for_its_content_and_for_pairs() -> None:
    found = query("who was the first president of the united states?")
    assert found.terms == ("first", "presid", "unit", "state")
    assert found.pairs == (("first", "presid"), ("presid", "unit"), ("unit", "state"))


def test_a_question_of_stop_words_alone_looks_for_them() -> None:
    assert query("who is it").terms == ("who", "is", "it")


@given(st.text())
@example("αγα ــ")  # Snowball leaves nothing of these
def test_any_text_has_terms_without_blanks(text: str) -> None:
    found = analyse(text)
    assert all(term and not any(c.isspace() for c in term) for term in found.content + found.stop)


@given(st.text(st.sampled_from("aC5é⁵.,+#^-_' 東")))
def test_a_text_has_the_same_words_with_marks_elsewhere(text: str) -> None:
    assert words(text + " | x^y")[: len(words(text))] == words(text)


def test_a_text_has_no_more_words_than_characters_whatever_its_signs_stand_for() -> None:
    assert len(words("ﷺ")) == 4
    assert len(words("ﷺ " * 2_000)) <= 4_000
