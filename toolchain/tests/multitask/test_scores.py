"""Scores of tasks by their published rules, on results made by hand; and what config.json must say of tasks."""

from dataclasses import replace
from typing import Any

import pytest

from shardqa.errors import BadModel
from shardqa_toolchain.multitask.decoding import AnswerableResult, Result, SequenceResult, SpanResult, WordsResult
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
from toolchain.tests.tiny import TOKENIZER

TEXT = "the Rhine in Basel"
PLACES = Task("places", "tokens", ("O", "B-WATER", "I-WATER"), BIO)


def example(label: Label) -> TaskExample:
    return TaskExample("", TEXT, TOKENIZER.question(""), TOKENIZER.passage(TEXT), label)


def words(*labels: str) -> tuple[Mark, ...]:
    """TEXT's words with these labels."""
    places = ((0, 3), (4, 9), (10, 12), (13, 18))
    return tuple(Mark(*place, label) for place, label in zip(places, labels, strict=True))


BEST = SpanResult("Basel", 13, 18, -1.0)
ANSWERED = SpanLabel((1, 1), ("the Rhine",))
NONE = WordLabels(("O",) * 4)
MARKS = (Mark(0, 9, "WATER"), Mark(13, 18, "WATER"))


@pytest.mark.parametrize(
    ("task", "judged", "scores"),
    [
        (
            Task("qa", "span"),
            [
                (ANSWERED, SpanResult("Rhine", 4, 9, 1.0)),
                (ANSWERED, SpanResult("Rhine in Basel", 4, 18, -1.0)),
                (SpanLabel(None, ()), BEST),
                (SpanLabel(None, ()), replace(BEST, margin=1.0)),
            ],
            {"F1": 75, "EM": 50, "F1 with refusals": 50},
        ),
        (
            Task("said", "answerable"),
            [(AnswerableLabel(yes), AnswerableResult(0.6)) for yes in (True, False)],
            {"accuracy": 50},
        ),
        (
            Task("topic", "sequence", ("lake", "river")),
            [(SequenceLabel(label), SequenceResult("river", 0.9)) for label in ("river", "lake", "river", "river")],
            {"accuracy": 75},
        ),
        (
            PLACES,
            [
                (
                    WordLabels(("O", "B-WATER", "O", "B-WATER")),
                    WordsResult(words("B-WATER", "I-WATER", "O", "B-WATER"), MARKS),
                )
            ],
            {"entity F1": 50, "word accuracy": 50},
        ),
        (PLACES, [(NONE, WordsResult(words("O", "O", "O", "O"), ()))], {"word accuracy": 100}),
    ],
    ids=["spans and refusals", "answerable", "sequence", "entities", "words of which nothing is said"],
)
def test_a_tasks_scores(task: Task, judged: list[tuple[Label, Result]], scores: dict[str, float]) -> None:
    outcome = score(task, [(example(label), result) for label, result in judged])
    assert outcome.examples == len(judged)
    assert outcome.scores == pytest.approx(scores)


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
