"""Examples of several tasks as rows to learn from: one row carries the labels of every task that has any for it.

A label of a text with a question belongs to that row; a label of a text alone is learnt in a row without a question and
in every row that holds the text, with whatever question. So one pass teaches several tasks, and serves them later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shardqa.models.reader import Row
from shardqa_toolchain.faults import Pieces
from shardqa_toolchain.multitask.lines import (
    AnswerableLabel,
    Label,
    SequenceLabel,
    SpanLabel,
    TaskExample,
    WordLabels,
)
from shardqa_toolchain.multitask.tasks import CONTROL, Task, TaskSet
from shardqa_toolchain.multitask.words import Words
from shardqa_toolchain.training.batches import ROUND_TOKENS
from shardqa_toolchain.windows import windows

# What torch's cross entropy passes over: a token that is no word's first, a task that has no label for the row.
IGNORED = -100


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A row of `reader.join` with its labels."""

    input_ids: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]
    # By task, int64: [2] the answer's first and last token, both 0 when the passage does not say; [1] whether it
    # answers; [1] a sequence's label; [tokens] words' labels. In the control form always [tokens], of one task.
    targets: Mapping[str, NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.input_ids)


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Rows padded to one length; int64 [rows, tokens], targets IGNORED where there are none."""

    input_ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]
    token_type_ids: NDArray[np.int64]
    targets: Mapping[str, NDArray[np.int64]]  # by task; tasks that no row has a label for are absent


@dataclass(slots=True)
class _Sheet:
    """A text, perhaps a question, and its labels by task."""

    example: TaskExample
    labels: dict[str, Label] = field(default_factory=dict)


def task_rows(tasks: TaskSet, examples: Mapping[str, Sequence[TaskExample]], max_tokens: int) -> list[TaskRow]:
    """The rows of all tasks' examples, by the tasks' names; texts too long for a row become several."""
    rows: list[TaskRow] = []
    for sheet in _sheets(examples):
        if tasks.form == CONTROL:
            rows += _control_rows(tasks, sheet, max_tokens)
        else:
            rows += _head_rows(tasks, sheet, max_tokens)
    return rows


def _sheets(examples: Mapping[str, Sequence[TaskExample]]) -> list[_Sheet]:
    """Examples put together by text and question; a second label of a task for the same has a sheet of its own."""
    sheets: list[_Sheet] = []
    sheet_of: dict[tuple[str, str], _Sheet] = {}
    by_text: dict[str, list[_Sheet]] = {}
    pairs = [(name, one) for name, several in examples.items() for one in several]
    for name, example in sorted(pairs, key=lambda pair: not pair[1].question):
        home = sheet_of.get((example.text, example.question))
        if home is None or name in home.labels:
            home = _Sheet(example)
            sheets.append(home)
            sheet_of.setdefault((example.text, example.question), home)
            if example.question:
                by_text.setdefault(example.text, []).append(home)
        home.labels[name] = example.label
        if not example.question:
            for other in by_text.get(example.text, []):
                other.labels.setdefault(name, example.label)
    return sheets


def _head_rows(tasks: TaskSet, sheet: _Sheet, max_tokens: int) -> list[TaskRow]:
    example = sheet.example
    rows = []
    for first, row in windows(example.question_ids, example.tokens.ids, max_tokens):
        targets = {
            task.name: target(task, sheet.labels[task.name], example, first, row)
            for task in tasks.tasks
            if task.name in sheet.labels
        }
        rows.append(TaskRow(row.input_ids, row.token_type_ids, targets))
    return rows


def _control_rows(tasks: TaskSet, sheet: _Sheet, max_tokens: int) -> list[TaskRow]:
    example = sheet.example
    rows = []
    for task in tasks.tasks:
        if task.name not in sheet.labels:
            continue
        front = np.array([task.control], dtype=np.int32)
        for first, row in windows(np.concatenate([front, example.question_ids]), example.tokens.ids, max_tokens):
            found = target(task, sheet.labels[task.name], example, first, row)
            classes = spread(sheet.labels[task.name], found, row)
            union = np.where(classes == IGNORED, IGNORED, tasks.columns(task)[np.maximum(classes, 0)])
            rows.append(TaskRow(row.input_ids, row.token_type_ids, {task.name: union}))
    return rows


def target(task: Task, label: Label, example: TaskExample, first: int, row: Row) -> NDArray[np.int64]:
    """Returns what the task's head should say of a row from the text's wordpiece ``first`` on; see TaskRow.targets."""
    match label:
        case SpanLabel(pieces=pieces):
            return np.array(_within(pieces, first, row) or (0, 0), dtype=np.int64)
        case AnswerableLabel(yes=yes, pieces=pieces):
            seen = pieces is None or _within(pieces, first, row) is not None
            return np.array([yes and seen], dtype=np.int64)
        case SequenceLabel(label=name):
            return np.array([task.labels.index(name)], dtype=np.int64)
        case WordLabels(labels=labels):
            return _word_target(task, labels, example, first, row)


def _within(pieces: Pieces | None, first: int, row: Row) -> Pieces | None:
    """Returns the place of these wordpieces in a row; None where it does not hold all."""
    if pieces is None:
        return None
    begin, end = (piece - first + row.passage.start for piece in pieces)
    return (begin, end) if row.passage.start <= begin and end < row.passage.stop else None


def _word_target(task: Task, labels: Sequence[str], example: TaskExample, first: int, row: Row) -> NDArray[np.int64]:
    places = {label: place for place, label in enumerate(task.labels)}
    pieces = np.full(len(example.tokens), IGNORED, dtype=np.int64)
    pieces[Words.of(example.tokens).first] = [places[label] for label in labels]
    target = np.full(len(row), IGNORED, dtype=np.int64)
    target[row.passage] = pieces[first : first + row.passage.stop - row.passage.start]
    return target


def spread(label: Label, head_target: NDArray[np.int64], row: Row) -> NDArray[np.int64]:
    """A head's target as the control form says it, with the places of Task.classes, int64 [tokens].

    Spans are O, B and I over the passage; what is of the whole row stands at its first token.
    """
    if isinstance(label, WordLabels):
        return head_target
    spread_out = np.full(len(row), IGNORED, dtype=np.int64)
    if not isinstance(label, SpanLabel):
        spread_out[0] = head_target[0]
        return spread_out
    spread_out[row.passage] = 0
    start, end = head_target.tolist()
    if start:
        spread_out[start : end + 1] = 2
        spread_out[start] = 1
    return spread_out


def collate(rows: Sequence[TaskRow]) -> TaskBatch:
    """Pad rows to their longest, rounded up."""
    shape = len(rows), -(-max(len(row) for row in rows) // ROUND_TOKENS) * ROUND_TOKENS
    input_ids, mask, types = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for line, row in enumerate(rows):
        input_ids[line, : len(row)] = row.input_ids
        mask[line, : len(row)] = 1
        types[line, : len(row)] = row.token_type_ids
    names = sorted({name for row in rows for name in row.targets})
    return TaskBatch(input_ids, mask, types, {name: _together(rows, name, shape[1]) for name in names})


def _together(rows: Sequence[TaskRow], name: str, tokens: int) -> NDArray[np.int64]:
    """A task's targets of all rows, [rows, places]."""
    per_token = any(len(row.targets[name]) == len(row) for row in rows if name in row.targets)
    places = tokens if per_token else max(len(row.targets[name]) for row in rows if name in row.targets)
    together = np.full((len(rows), places), IGNORED, dtype=np.int64)
    for line, row in enumerate(rows):
        values = row.targets.get(name)
        if values is not None:
            together[line, : len(values)] = values
    return together
