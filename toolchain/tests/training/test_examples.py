"""Labels: which wordpieces are the answer, what is refused, and which passages make hard negatives."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadData
from shardqa.models import shipped, squad
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.faults import align
from shardqa_toolchain.training import examples
from toolchain.tests import tiny

TOKENIZER = Tokenizer.load(shipped.folder())
WRONG = {"id": "w1", "question": "What?", "answers": [{"text": "Basel", "answer_start": 3}], "is_impossible": False}


def test_an_answer_is_labelled_with_its_wordpieces(tmp_path: Path) -> None:
    sources, _ = examples.read([tiny.question_set(tmp_path / "set.json")], TOKENIZER)
    example = sources[0].example
    assert example.answer is not None
    first, last = example.answer
    wanted = TOKENIZER.passage("Basel").ids
    assert example.passage[first : last + 1].tolist() == wanted.tolist()


def test_a_question_without_answer_is_labelled_none(tmp_path: Path) -> None:
    sources, _ = examples.read([tiny.question_set(tmp_path / "set.json")], TOKENIZER)
    assert [source.example.answer is None for source in sources] == [False, False, True, False]


def test_a_wrong_offset_is_refused_with_the_question_and_what_stands_there(tmp_path: Path) -> None:
    path = tiny.question_set(tmp_path / "set.json", WRONG)
    with pytest.raises(BadData, match=r"w1: at character 3 stands ' Rhin', its answer is 'Basel'.*--skip-faulty"):
        examples.read([path], TOKENIZER)


def test_wrong_offsets_are_left_out_and_reported_on_demand(tmp_path: Path) -> None:
    sources, faults = examples.read([tiny.question_set(tmp_path / "set.json", WRONG)], TOKENIZER, skip_faulty=True)
    assert [fault.where for fault in faults] == ["w1"]
    assert "w1" not in [source.question.id for source in sources]


def test_only_the_first_faults_are_spelt_out_and_the_others_counted(tmp_path: Path) -> None:
    many = [{**WRONG, "id": f"w{n}"} for n in range(8)]
    with pytest.raises(BadData, match=r"8 of its questions.*and 3 more"):
        examples.read([tiny.question_set(tmp_path / "set.json", *many)], TOKENIZER)


def test_an_answer_of_nothing_but_blanks_is_a_fault(tmp_path: Path) -> None:
    blank = {"id": "b1", "question": "What?", "answers": [{"text": " ", "answer_start": 3}], "is_impossible": False}
    _, faults = examples.read([tiny.question_set(tmp_path / "set.json", blank)], TOKENIZER, skip_faulty=True)
    assert faults[0].what == "its answer ' ' has no wordpiece"


def test_a_question_too_long_to_be_read_is_a_fault(tmp_path: Path) -> None:
    long = tiny.question("long", "what " * 80, tiny.RIVERS, "green")
    _, faults = examples.read([tiny.question_set(tmp_path / "set.json", long)], TOKENIZER, skip_faulty=True)
    assert [fault.where for fault in faults] == ["long"]


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text('{"data": []}')
    with pytest.raises(BadData, match="no question to learn from"):
        examples.read([path], TOKENIZER)


@given(st.text(min_size=1, max_size=80), st.data())
def test_the_labelled_wordpieces_cover_every_visible_character_of_the_answer(text: str, data: st.DataObject) -> None:
    text = text.encode("utf-8", "replace").decode()
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    offsets = TOKENIZER.passage(text).offsets
    span = align(offsets, start, end)
    covered = {place for first, last in offsets.tolist() for place in range(first, last) if start <= place < end}
    if span is None:
        assert not covered
    else:
        assert offsets[span[0], 0] < end
        assert offsets[span[1], 1] > start
        labelled = {place for a, b in offsets[span[0] : span[1] + 1].tolist() for place in range(a, b)}
        assert covered <= labelled


@given(st.text(alphabet=st.characters(categories=["Ll", "Lu", "Nd", "Zs"]), min_size=1, max_size=60))
def test_the_whole_text_is_labelled_with_all_its_wordpieces(text: str) -> None:
    offsets = TOKENIZER.passage(text).offsets
    span = align(offsets, 0, len(text))
    assert span == ((0, len(offsets) - 1) if len(offsets) else None), unicodedata.normalize("NFC", text)


def test_a_hard_negative_shares_words_with_the_question_and_lacks_its_answer(tmp_path: Path) -> None:
    path = tiny.question_set(tmp_path / "set.json")
    sources, _ = examples.read([path], TOKENIZER)
    town = next(source for source in sources if source.question.id == "l1")
    negatives = examples.hard_negatives([town], squad.read_squad(path), TOKENIZER)
    assert [negative.answer for negative in negatives] == [None]
    assert negatives[0].passage.tolist() == TOKENIZER.passage(tiny.RIVERS).ids.tolist()


def test_an_article_whose_paragraphs_all_hold_the_answer_gives_no_negative(tmp_path: Path) -> None:
    both = tiny.question("x", "What river is it?", tiny.RIVERS, "Rhine")
    path = tiny.question_set(tmp_path / "set.json", both)
    sources, _ = examples.read([path], TOKENIZER)
    chosen = [source for source in sources if source.question.id == "x"]
    assert examples.hard_negatives(chosen, squad.read_squad(path), TOKENIZER) == []


def test_examples_of_one_passage_share_its_wordpieces(tmp_path: Path) -> None:
    sources, _ = examples.read([tiny.question_set(tmp_path / "set.json")], TOKENIZER)
    assert sources[0].example.passage is sources[1].example.passage
    assert sources[0].example.passage.dtype == np.int32
