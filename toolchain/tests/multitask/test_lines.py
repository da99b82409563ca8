"""Data of several tasks: every kind's lines, and whatever may be wrong with them, by line."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from shardqa.errors import BadData
from shardqa_toolchain.multitask.lines import (
    AnswerableLabel,
    LineForm,
    SequenceLabel,
    SpanLabel,
    Texts,
    WordLabels,
    read,
)
from shardqa_toolchain.multitask.tasks import BIO, PLAIN
from toolchain.tests import tiny
from toolchain.tests.tiny_tasks import write_lines

TEXTS = Texts(tiny.TOKENIZER)
QUESTION = "Which town?"
SPAN, ANSWERABLE, TOPIC = LineForm("span", BIO), LineForm("answerable", BIO), LineForm("sequence", BIO)
PLACES, CASES = LineForm("tokens", BIO), LineForm("tokens", PLAIN)


RHINE = {"text": "by the Rhine", "question": QUESTION}
LAND = ("B-LAND", "I-LAND", "I-LAND", "I-LAND", "O")


@pytest.mark.parametrize(
    ("form", "entry", "label"),
    [
        (SPAN, {**RHINE, "answer": [7, 12], "answers": ["it"]}, SpanLabel((2, 2), ("Rhine", "it"))),
        (SPAN, {**RHINE, "answer": None}, SpanLabel(None, ())),
        (ANSWERABLE, {**RHINE, "label": False}, AnswerableLabel(False)),
        (TOPIC, {"text": "by the Rhine", "label": "river"}, SequenceLabel("river")),
        (LineForm("sequence", BIO, ("lake", "river")), {"text": "a", "label": 1}, SequenceLabel("river")),
        (PLACES, {"text": "in New York", "spans": [[3, 11, "TOWN"]]}, WordLabels(("O", "B-TOWN", "I-TOWN"))),
        (PLACES, {"tokens": ["U.S.", "troops"], "labels": ["B-LAND", "O"]}, WordLabels(LAND)),
        (CASES, {"tokens": ["U.S.", "troops"], "labels": ["up", "low"]}, WordLabels(("up",) * 4 + ("low",))),
    ],
)
def test_a_line_gives_the_label_of_its_kind(tmp_path: Path, form: LineForm, entry: dict[str, Any], label: Any) -> None:
    examples, faults = read([write_lines(tmp_path / "a.jsonl", [entry])], form, TEXTS)
    assert [example.label for example in examples] == [label]
    assert examples[0].question == entry.get("question", "")
    assert examples[0].text == entry.get("text", "U.S. troops")
    assert not faults


def test_files_may_be_gzipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a", "label": "x"}\n\n{"text": "b", "label": "y"}\n'))
    assert len(read([path], TOPIC, TEXTS)[0]) == 2


def test_squads_json_serves_spans_and_answerability(tmp_path: Path) -> None:
    path = tiny.question_set(tmp_path / "set.json")
    spans, answerable = (read([path], form, TEXTS)[0] for form in (SPAN, ANSWERABLE))
    answers = [one.label.answers for one in spans if isinstance(one.label, SpanLabel)]
    assert answers == [("Basel",), ("green",), (), ("in the east",)]
    assert [isinstance(one.label, AnswerableLabel) and one.label.yes for one in answerable] == [True, True, False, True]


def test_squads_json_has_no_topics(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"no sequence labels are; give a \.jsonl file"):
        read([tiny.question_set(tmp_path / "set.json")], TOPIC, TEXTS)


@pytest.mark.parametrize(
    ("form", "line", "message"),
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
def test_a_line_that_can_not_be_used_is_named(tmp_path: Path, form: LineForm, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(BadData, match=f"1 examples can't be used: .*bad.jsonl, line 2: .*{message}"):
        read([path], form, TEXTS)


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
    with pytest.raises(BadData, match=r"none\.jsonl can't be read: No such file"):
        read([tmp_path / "none.jsonl"], TOPIC, TEXTS)


def test_examples_of_one_text_share_its_wordpieces(tmp_path: Path) -> None:
    lines = [{"text": "the same", "label": "x"}] * 2
    examples, _ = read([write_lines(tmp_path / "a.jsonl", lines)], TOPIC, TEXTS)
    assert examples[0].tokens is examples[1].tokens
