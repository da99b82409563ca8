"""Data of several tasks: every kind's lines, and whatever may be wrong with them, by line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from shardqa.errors import BadData
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.multitask.lines import (
    AnswerableLabel,
    LineForm,
    SequenceLabel,
    SpanLabel,
    TaskExample,
    Texts,
    WordLabels,
    read,
)
from shardqa_toolchain.multitask.tasks import BIO, PLAIN
from toolchain.tests import tiny
from toolchain.tests.tiny_tasks import write_lines

TEXTS = Texts(Tokenizer.load(shipped.folder()))
QUESTION = "Which town?"
SPAN, ANSWERABLE, TOPIC = LineForm("span", BIO), LineForm("answerable", BIO), LineForm("sequence", BIO)
PLACES, CASES = LineForm("tokens", BIO), LineForm("tokens", PLAIN)


def one(folder: Path, wanted: LineForm, entry: dict[str, Any]) -> TaskExample:
    examples, faults = read([write_lines(folder / "a.jsonl", [entry])], wanted, TEXTS)
    assert (len(examples), faults) == (1, [])
    return examples[0]


def test_a_span_is_told_by_its_characters(tmp_path: Path) -> None:
    example = one(tmp_path, SPAN, {"text": "by the Rhine", "question": QUESTION, "answer": [7, 12], "answers": ["it"]})
    assert example.label == SpanLabel((2, 2), ("Rhine", "it"))


def test_a_null_answer_is_not_said(tmp_path: Path) -> None:
    example = one(tmp_path, SPAN, {"text": "by the Rhine", "question": QUESTION, "answer": None})
    assert example.label == SpanLabel(None, ())


def test_answerable_is_true_or_false(tmp_path: Path) -> None:
    example = one(tmp_path, ANSWERABLE, {"text": "by the Rhine", "question": QUESTION, "label": False})
    assert example.label == AnswerableLabel(False)


def test_a_sequence_needs_no_question(tmp_path: Path) -> None:
    example = one(tmp_path, TOPIC, {"text": "by the Rhine", "label": "river"})
    assert (example.label, example.question) == (SequenceLabel("river"), "")


def test_a_number_stands_for_a_label_of_the_recipe(tmp_path: Path) -> None:
    wanted = LineForm("sequence", BIO, ("lake", "river"))
    assert one(tmp_path, wanted, {"text": "a", "label": 1}).label == SequenceLabel("river")


def test_spans_label_the_words_that_they_cover(tmp_path: Path) -> None:
    example = one(tmp_path, PLACES, {"text": "in New York", "spans": [[3, 11, "TOWN"]]})
    assert example.label == WordLabels(("O", "B-TOWN", "I-TOWN"))


def test_tokens_have_a_label_each(tmp_path: Path) -> None:
    example = one(tmp_path, PLACES, {"tokens": ["U.S.", "troops"], "labels": ["B-LAND", "O"]})
    assert example.text == "U.S. troops"
    assert example.label == WordLabels(("B-LAND", "I-LAND", "I-LAND", "I-LAND", "O"))


def test_plain_labels_are_taken_as_they_are(tmp_path: Path) -> None:
    example = one(tmp_path, CASES, {"tokens": ["U.S.", "troops"], "labels": ["upper", "lower"]})
    assert example.label == WordLabels(("upper",) * 4 + ("lower",))


def test_files_may_be_gzipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a", "label": "x"}\n\n{"text": "b", "label": "y"}\n'))
    assert len(read([path], TOPIC, TEXTS)[0]) == 2


def test_squads_json_serves_spans_and_answerability(tmp_path: Path) -> None:
    path = tiny.question_set(tmp_path / "set.json")
    spans, answerable = (read([path], wanted, TEXTS)[0] for wanted in (SPAN, ANSWERABLE))
    assert [isinstance(one.label, SpanLabel) and one.label.answers for one in spans] == [
        ("Basel",),
        ("green",),
        (),
        ("in the east",),
    ]
    assert [isinstance(one.label, AnswerableLabel) and one.label.yes for one in answerable] == [True, True, False, True]


def test_squads_json_has_no_topics(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"no sequence labels are; give a \.jsonl file"):
        read([tiny.question_set(tmp_path / "set.json")], TOPIC, TEXTS)


@pytest.mark.parametrize(
    ("wanted", "line", "message"),
    [
        (TOPIC, "{", "not JSON"),
        (TOPIC, "[]", "an object is needed"),
        (TOPIC, '{"label": "x"}', '"text" is missing'),
        (TOPIC, '{"text": "a", "label": null}', '"label" is None'),
        (TOPIC, '{"text": " ", "label": "x"}', "has no word"),
        (TOPIC, '{"text": "a", "label": 1}', "a number needs the recipe's labels"),
        (TOPIC, '{"text": "\\ud800", "label": "x"}', "lone surrogate"),
        (LineForm("sequence", BIO, ("x",)), '{"text": "a", "label": 1}', "the label 1 is out of range, 0 to 0"),
        (LineForm("sequence", BIO, ("x",)), '{"text": "a", "label": "y"}', "the label 'y' is unknown; known are x"),
        (ANSWERABLE, '{"text": "a", "question": "b", "label": "yes"}', '"label" is str, bool is needed'),
        (ANSWERABLE, '{"text": "a", "question": "?", "label": true}', "words are needed"),
        (SPAN, '{"text": "a", "question": "b"}', '"answer" is missing'),
        (SPAN, '{"text": "a", "question": "b", "answer": [0, 2]}', "not within the text of 1 characters"),
        (SPAN, '{"text": "a b", "question": "b", "answer": [1, 2]}', "has no wordpiece"),
        (SPAN, '{"text": "a b", "question": "b", "answer": 1}', r"\[start, end\] is needed"),
        (PLACES, '{"text": "Rhine", "spans": [[0, 3, "x"]]}', "cuts the word"),
        (PLACES, '{"text": "Rhine", "spans": [[3, 3, "x"]]}', "not within the text"),
        (PLACES, '{"text": "Rhine", "spans": [[0, 5]]}', r"\[start, end, label\] is needed"),
        (PLACES, '{"tokens": ["a", "b"], "labels": ["O"]}', "2 tokens have 1 labels"),
        (PLACES, '{"tokens": ["a b"], "labels": ["O"]}', "empty or has blanks"),
        (PLACES, '{"tokens": ["\\u200b", "b"], "labels": ["O", "O"]}', "holds no word"),
        (PLACES, '{"tokens": ["a"], "labels": ["upper"]}', 'say scheme = "plain"'),
        (PLACES, '{"tokens": [1], "labels": ["O"]}', '"tokens" holds 1'),
    ],
)
def test_a_line_that_can_not_be_used_is_named(tmp_path: Path, wanted: LineForm, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(BadData, match=f"1 examples can't be used: .*bad.jsonl, line 2: .*{message}"):
        read([path], wanted, TEXTS)


def test_faulty_lines_can_be_left_out_and_are_counted(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"text": "a", "label": "x"}, {"text": "b"}, {"label": "x"}])
    examples, faults = read([path], TOPIC, TEXTS, skip_faulty=True)
    assert len(examples) == 1
    assert [fault.where for fault in faults] == [f"{path}, line 2", f"{path}, line 3"]


def test_an_answer_that_does_not_stand_where_squad_says_is_named(tmp_path: Path) -> None:
    wrong = {"id": "w", "question": "What?", "answers": [{"text": "Basel", "answer_start": 3}]}
    with pytest.raises(BadData, match="question w: at character 3 stands ' Rhin', its answer is 'Basel'"):
        read([tiny.question_set(tmp_path / "set.json", wrong)], SPAN, TEXTS)


def test_nothing_to_learn_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="nothing to learn from"):
        read([write_lines(tmp_path / "a.jsonl", [])], TOPIC, TEXTS)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"none\.jsonl can't be read: No such file"):
        read([tmp_path / "none.jsonl"], TOPIC, TEXTS)


def test_examples_of_one_text_share_its_wordpieces(tmp_path: Path) -> None:
    lines = [json.loads('{"text": "the same", "label": "x"}')] * 2
    examples, _ = read([write_lines(tmp_path / "a.jsonl", lines)], TOPIC, TEXTS)
    assert examples[0].tokens is examples[1].tokens
