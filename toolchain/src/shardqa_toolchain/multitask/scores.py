"""Scores of a network's tasks on examples that it has not learnt from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardqa.models import metrics
from shardqa_toolchain.multitask.decoding import (
    AnswerableResult,
    Result,
    SequenceResult,
    SpanResult,
    WordsResult,
)
from shardqa_toolchain.multitask.lines import AnswerableLabel, SequenceLabel, SpanLabel, TaskExample, WordLabels
from shardqa_toolchain.multitask.session import MultitaskSession
from shardqa_toolchain.multitask.tasks import Task
from shardqa_toolchain.multitask.words import Words, entities

CHUNK_TEXTS = 64  # texts that are read together; bounds memory

Scores = dict[str, float]  # by metric, percent; the first is the task's main one


@dataclass(frozen=True, slots=True)
class TaskScores:
    examples: int
    scores: Scores


def measure(session: MultitaskSession, examples: Mapping[str, Sequence[TaskExample]]) -> dict[str, TaskScores]:
    """Read every text once and score all tasks' examples, by the tasks' names."""
    asked = list(dict.fromkeys((one.text, one.question) for found in examples.values() for one in found))
    results: dict[tuple[str, str], dict[str, Result]] = {}
    for first in range(0, len(asked), CHUNK_TEXTS):
        chunk = asked[first : first + CHUNK_TEXTS]
        results |= zip(chunk, session.read_all(chunk), strict=True)
    tasks = {task.name: task for task in session.tasks.tasks}
    return {
        name: score(tasks[name], [(one, results[one.text, one.question][name]) for one in found])
        for name, found in examples.items()
    }


def score(task: Task, judged: Sequence[tuple[TaskExample, Result]]) -> TaskScores:
    """Score one task's results.

    Spans: EM and F1 by SQuAD's rules, the best span counting where there is an answer; with unanswerable questions
    also "F1 with refusals", where nothing is answered below a margin of 0. Words: share of words with the right label,
    and F1 of entities with the right place and label (micro average).
    """
    gathered: dict[str, list[float]] = {}
    hits = wanted = found = 0
    for example, result in judged:
        for metric, value in _judged(example, result):
            gathered.setdefault(metric, []).append(value)
        if isinstance(result, WordsResult) and isinstance(example.label, WordLabels):
            right = set(entities(Words.of(example.tokens), example.label.labels, task.scheme))
            hits += len(right & set(result.entities))
            wanted, found = wanted + len(right), found + len(result.entities)
    scores = {metric: 100 * sum(values) / len(values) for metric, values in gathered.items()}
    if wanted + found:
        scores = {"entity F1": 100 * 2 * hits / (wanted + found), **scores}
    return TaskScores(len(judged), scores)


def _judged(example: TaskExample, result: Result) -> Iterator[tuple[str, float]]:
    """An example's values, 0 to 1, by metric."""
    match example.label, result:
        case SpanLabel(answers=answers), SpanResult(answer=answer):
            if answers:
                yield "F1", metrics.f1(answer, answers)
                yield "EM", metrics.exact_match(answer, answers)
            yield "F1 with refusals", metrics.f1(answer if result.is_said else "", answers)
        case AnswerableLabel(yes=yes), AnswerableResult(probability=probability):
            yield "accuracy", float((probability > 0.5) == yes)
        case SequenceLabel(label=label), SequenceResult():
            yield "accuracy", float(result.label == label)
        case WordLabels(labels=labels), WordsResult(words=words):
            yield from (("word accuracy", float(a == b.label)) for a, b in zip(labels, words, strict=True))
        case _:
            raise AssertionError(f"{type(example.label).__name__} and {type(result).__name__} are of different tasks")
