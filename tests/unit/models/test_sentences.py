"""The beginnings of sentences, and the price of an answer that runs from one into the next."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shardqa.models import shipped
from shardqa.models.reader import CROSSING, Span, best_spans
from shardqa.models.sentences import beginnings, numbers
from shardqa.models.tokenizer import Tokenizer


def sentences(text: str) -> list[str]:
    edges = [0, *beginnings(text), len(text)]
    return [text[start:end].strip() for start, end in itertools.pairwise(edges)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It is deep. Boats cross it.", ["It is deep.", "Boats cross it."]),
        (
            'He said "no." Nobody heard (at first).  Then all did.',
            ['He said "no."', "Nobody heard (at first).", "Then all did."],
        ),
        ("Really?! “Yes…” It was.", ["Really?!", "“Yes…”", "It was."]),
        ("湖は深い。船が渡る。", ["湖は深い。", "船が渡る。", ""]),
        ("เรือข้ามฟากออกทุกสิบห้านาที นาย สมชาย ใจดี เป็นกัปตัน", ["เรือข้ามฟากออกทุกสิบห้านาที นาย สมชาย ใจดี เป็นกัปตัน"]),
        ("เรือข้ามฟากออกทุกสิบห้านาที ตั๋วซื้อได้ที่ท่าเรือฝั่งใต้", ["เรือข้ามฟากออกทุกสิบห้านาที", "ตั๋วซื้อได้ที่ท่าเรือฝั่งใต้"]),
        ("「深い。」と言う！？何？", ["「深い。」", "と言う！？", "何？", ""]),
        ("هل هي عميقة؟ نعم. حقا؟!", ["هل هي عميقة؟", "نعم.", "حقا؟!"]),
        ("झील गहरी है। नाव चलती है।", ["झील गहरी है।", "नाव चलती है।"]),
        ("Озеро глубоко. Лодки плывут.", ["Озеро глубоко.", "Лодки плывут."]),
        ("It has 287 metres. 3 boats cross it.", ["It has 287 metres.", "3 boats cross it."]),
    ],
)
def test_end_marks_before_a_new_start_end_a_sentence(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Ilves met J. R. R. Tolkien.",
        "See No. 5 of vol. 3 by the U.S. Navy.",
        "It has 4.5 metres, approx. 15 feet.",
        "They sold salt, e.g. Black salt.",
        "The so-called . net was cast.",
        "A line that is\nwrapped has no end.",
    ],
)
def test_abbreviations_numbers_and_wrapped_lines_do_not(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize("end", ["The Lake", "It is on.", "By the U.S."])
@pytest.mark.parametrize("start", ["It is deep", "enable_sort (boolean)"])
def test_an_empty_line_ends_a_sentence_whatever_stands_beside_it(end: str, start: str) -> None:
    assert sentences(f"{end}\n\n{start}") == [end, start]


def test_each_item_of_a_list_stands_alone() -> None:
    assert sentences("Bring:\n- salt\n- two ropes\n3. a lamp") == ["Bring:", "- salt", "- two ropes", "3. a lamp"]


def test_every_wordpiece_has_the_number_of_its_sentence() -> None:
    text = "It is deep. Boats cross it."
    tokens = Tokenizer.load(shipped.folder()).passage(text)
    assert numbers(text, tokens.offsets).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@given(
    st.text(alphabet=st.sampled_from("aB. !?…\"'\n\t-1)。é") | st.characters(exclude_categories=["Cs"]), max_size=200)
)
def test_sentences_begin_inside_any_text_and_in_order(text: str) -> None:
    found = beginnings(text)
    assert found == sorted(set(found))
    assert all(0 < begin <= len(text) for begin in found)


@pytest.mark.parametrize("part", [".", "\n", ". ", '."', "\n ", "\n-", " ", "a.", "\t\n", "1) "])
def test_a_text_of_many_marks_is_done(part: str) -> None:
    """Work that grows with the square of the text would meet the time limit of tests."""
    assert len(beginnings(part * 250_000)) <= 250_000


def logits(*values: float) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


def test_a_span_that_leaves_its_sentence_has_to_be_that_much_better() -> None:
    start, end, two = logits(5, 0, 4, 0), logits(0, 0, 5, 5), np.array([0, 0, 1, 1])
    assert best_spans(start, end, slice(0, 4), 1) == [Span(0, 2, 10.0)]
    assert best_spans(start, end, slice(0, 4), 1, sentences=two) == [Span(2, 2, 9.0)]
    assert best_spans(start + logits(1, 0, 0, 0), end, slice(0, 4), 1, sentences=two) == [Span(0, 2, 11.0 - CROSSING)]


def test_no_span_crosses_an_empty_line() -> None:
    tokens = Tokenizer.load(shipped.folder()).passage("Ada sails\n\nBob rows")
    paragraphs = numbers("Ada sails\n\nBob rows", tokens.offsets)
    assert best_spans(logits(9, 0, 0, 0), logits(0, 0, 0, 9), slice(0, 4), 1, sentences=paragraphs)[0].logit == 9.0


def test_one_sentence_costs_nothing() -> None:
    start, end = logits(5, 0, 4), logits(0, 0, 5)
    assert best_spans(start, end, slice(0, 3), 2, sentences=np.zeros(3, dtype=np.int64)) == best_spans(
        start, end, slice(0, 3), 2
    )
