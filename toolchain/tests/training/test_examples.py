"""Labels: which wordpieces are the answer, what is refused, and which passages make hard negatives."""

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadData
from shardqa_toolchain import squad
from shardqa_toolchain.faults import align
from shardqa_toolchain.training import examples
from toolchain.tests import tiny
from toolchain.tests.tiny import TOKENIZER

WRONG = {"id": "w1", "question": "What?", "answers": [{"text": "Basel", "answer_start": 3}], "is_impossible": False}
BLANK = {"id": "b1", "question": "What?", "answers": [{"text": " ", "answer_start": 3}], "is_impossible": False}
LONG = tiny.question("long", "what " * 160, tiny.RIVERS, "green")


@pytest.fixture
def sources(tmp_path: Path) -> list[examples.ExampleSource]:
    return examples.read([tiny.question_set(tmp_path / "set.json")], TOKENIZER)[0]


def test_an_answer_is_labelled_with_its_wordpieces(sources: list[examples.ExampleSource]) -> None:
    assert [source.example.answer is None for source in sources] == [False, False, True, False]
    example = sources[0].example
    first, last = example.answer or (0, 0)
    assert example.passage[first : last + 1].tolist() == TOKENIZER.passage("Basel").ids.tolist()


def test_examples_of_one_passage_share_its_wordpieces(sources: list[examples.ExampleSource]) -> None:
    assert sources[0].example.passage is sources[1].example.passage
    assert sources[0].example.passage.dtype == np.int32


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ([WRONG], r"w1: at character 3 stands ' Rhin', its answer is 'Basel'.*--skip-faulty"),
        ([{**WRONG, "id": f"w{n}"} for n in range(8)], r"8 of its questions.*and 3 more"),
        ([BLANK], "b1: its answer ' ' has no wordpiece"),
        ([LONG], "long: "),
    ],
)
def test_questions_that_can_not_be_learnt_from_are_named_or_left_out(
    tmp_path: Path, extra: list[dict[str, Any]], message: str
) -> None:
    path = tiny.question_set(tmp_path / "set.json", *extra)
    with pytest.raises(BadData, match=message):
        examples.read([path], TOKENIZER)
    sources, faults = examples.read([path], TOKENIZER, skip_faulty=True)
    assert [fault.where for fault in faults] == [question["id"] for question in extra]
    assert {source.question.id for source in sources} == {"r1", "r2", "r3", "l1"}


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no question to learn from"):
        examples.read([tiny.write_squad(tmp_path / "empty.json", {})], TOKENIZER)


@given(st.text(min_size=1, max_size=80), st.data())
def test_the_labelled_wordpieces_cover_every_visible_character_of_the_answer(text: str, data: st.DataObject) -> None:
    text = text.encode("utf-8", "replace").decode()
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    offsets = TOKENIZER.passage(text).offsets
    span = align(offsets, start, end)
    places = {place for first, last in offsets.tolist() for place in range(first, last) if start <= place < end}
    if span is None:
        assert not places
    else:
        assert offsets[span[0], 0] < end
        assert offsets[span[1], 1] > start
        labelled = {place for a, b in offsets[span[0] : span[1] + 1].tolist() for place in range(a, b)}
        assert places <= labelled


@given(st.text(alphabet=st.characters(categories=["Ll", "Lu", "Nd", "Zs"]), min_size=1, max_size=60))
def test_the_whole_text_is_labelled_with_all_its_wordpieces(text: str) -> None:
    offsets = TOKENIZER.passage(text).offsets
    span = align(offsets, 0, len(text))
    assert span == ((0, len(offsets) - 1) if len(offsets) else None), unicodedata.normalize("NFC", text)


def test_a_hard_negative_shares_words_with_the_question_and_lacks_its_answer(tmp_path: Path) -> None:
    everywhere = tiny.question("x", "What river is it?", tiny.RIVERS, "Rhine")
    path = tiny.question_set(tmp_path / "set.json", everywhere)
    sources = {source.question.id: source for source in examples.read([path], TOKENIZER)[0]}
    questions = squad.read_squad(path)
    (negative,) = examples.hard_negatives([sources["l1"]], questions, TOKENIZER)
    assert negative.answer is None
    assert negative.passage.tolist() == TOKENIZER.passage(tiny.RIVERS).ids.tolist()
    assert examples.hard_negatives([sources["x"]], questions, TOKENIZER) == []
