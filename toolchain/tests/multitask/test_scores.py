"""Scores of tasks by their published rules, on results made by hand; and what config.json must say of tasks."""

from typing import Any

import pytest

from shardqa.errors import BadModel
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.multitask.decoding import AnswerableResult, SequenceResult, SpanResult, WordsResult
from shardqa_toolchain.multitask.lines import (
    AnswerableLabel,
    Label,
    SequenceLabel,
    SpanLabel,
    TaskExample,
    WordLabels,
)
from shardqa_toolchain.multitask.scores import score
from shardqa_toolchain.multitask.tasks import BIO, HEADS, SETTING, Task, TaskSet
from shardqa_toolchain.multitask.words import Mark

TOKENIZER = Tokenizer.load(shipped.folder())
TEXT = "the Rhine in Basel"
PLACES = Task("places", "tokens", ("O", "B-WATER", "I-WATER"), BIO)


def example(label: Label) -> TaskExample:
    return TaskExample("", TEXT, TOKENIZER.question(""), TOKENIZER.passage(TEXT), label)


def words(*labels: str) -> tuple[Mark, ...]:
    """TEXT's words with these labels."""
    places = ((0, 3), (4, 9), (10, 12), (13, 18))
    return tuple(Mark(*place, label) for place, label in zip(places, labels, strict=True))


def test_a_span_counts_by_its_words_and_a_refusal_by_its_margin() -> None:
    said, unsaid = example(SpanLabel((1, 1), ("the Rhine",))), example(SpanLabel(None, ()))
    found = score(
        Task("qa", "span"),
        [
            (said, SpanResult("Rhine", 4, 9, 1.0)),
            (said, SpanResult("Rhine in Basel", 4, 18, -1.0)),
            (unsaid, SpanResult("Basel", 13, 18, -1.0)),
            (unsaid, SpanResult("Basel", 13, 18, 1.0)),
        ],
    )
    assert found.examples == 4
    assert found.scores == pytest.approx({"F1": 75, "EM": 50, "F1 with refusals": 50})


def test_answerable_is_right_on_its_side_of_a_half() -> None:
    judged = [(example(AnswerableLabel(yes)), AnswerableResult(p)) for yes, p in ((True, 0.6), (False, 0.6))]
    assert score(Task("said", "answerable"), judged).scores == {"accuracy": 50}


def test_a_sequence_is_right_or_wrong() -> None:
    judged = [
        (example(SequenceLabel(label)), SequenceResult("river", 0.9)) for label in ("river", "lake", "river", "river")
    ]
    assert score(Task("topic", "sequence", ("lake", "river")), judged).scores == {"accuracy": 75}


def test_an_entity_counts_when_place_and_label_are_right() -> None:
    label = example(WordLabels(("O", "B-WATER", "O", "B-WATER")))
    result = WordsResult(words("B-WATER", "I-WATER", "O", "B-WATER"), (Mark(0, 9, "WATER"), Mark(13, 18, "WATER")))
    assert score(PLACES, [(label, result)]).scores == {"entity F1": 50, "word accuracy": 50}


def test_words_of_which_nothing_is_said_have_no_entity_f1() -> None:
    label, result = example(WordLabels(("O",) * 4)), WordsResult(words("O", "O", "O", "O"), ())
    assert score(PLACES, [(label, result)]).scores == {"word accuracy": 100}


def test_tasks_go_into_config_json_and_back() -> None:
    tasks = TaskSet(HEADS, (Task("qa", "span"), PLACES))
    assert TaskSet.of({SETTING: tasks.as_json()}) == tasks


@pytest.mark.parametrize(
    "config",
    [
        {},
        {SETTING: None},
        {SETTING: {"form": "heads", "tasks": [{"name": "qa"}]}},
        {SETTING: {"form": "heads", "tasks": []}},
        {SETTING: {"form": "both", "tasks": [{"name": "qa", "kind": "span", "labels": []}]}},
        {SETTING: {"form": "heads", "tasks": [{"name": "qa", "kind": "summary", "labels": []}]}},
    ],
)
def test_a_config_that_says_no_tasks_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(BadModel, match=r"config\.json"):
        TaskSet.of(config)
