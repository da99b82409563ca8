"""Examples of several tasks as rows: one row carries the labels of every task that has any for its text and question.

Targets are int64: [2] a span's first and last token, [CLS] where the row does not hold the answer; [1] a whole row's
label; [tokens] tokens' labels. In the control form all are [tokens], in the places of the classifier's labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardqa.models.reader import Row
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain.faults import align
from shardqa_toolchain.multitask.lines import Example
from shardqa_toolchain.multitask.tasks import CONTROL, OUTSIDE, SPAN, Task, TaskSet
from shardqa_toolchain.windows import windows

IGNORED = -100  # what torch's cross entropy passes over


@dataclass(frozen=True, slots=True)
class TaskRow:
    row: Row
    first: int  # the text's token that its passage begins with
    tokens: PassageTokens  # of the text
    targets: Mapping[str, NDArray[np.int64]]  # by task

    def __len__(self) -> int:
        return len(self.row)


def joined(examples: Mapping[str, Sequence[Example]]) -> dict[tuple[str, str], dict[str, Example]]:
    """Examples by text and question, then by task; of two of one task the last counts."""
    pairs: dict[tuple[str, str], dict[str, Example]] = {}
    for name, some in examples.items():
        for one in some:
            pairs.setdefault((one.text, one.question), {})[name] = one
    return pairs


def task_rows(
    tasks: TaskSet, text: str, question: str, labelled: Mapping[str, Example], tokenizer: Tokenizer, longest: int
) -> Iterator[TaskRow]:
    """Yields the rows of a text; one too long for a row is read in windows."""
    tokens = tokenizer.passage(text)
    for first, row in windows(tokenizer.question(f"{tasks.signs} {question}"), tokens.ids, longest):
        targets = {
            task.name: _target(tasks, task, labelled[task.name], tokens, first, row)
            for task in tasks.tasks
            if task.name in labelled
        }
        yield TaskRow(row, first, tokens, targets)


def _target(
    tasks: TaskSet, task: Task, example: Example, tokens: PassageTokens, first: int, row: Row
) -> NDArray[np.int64]:
    labels = tasks.union if tasks.form == CONTROL else task.labels
    if task.kind == SPAN:
        return np.array(_placed(example.marks[0], tokens, first, row) if example.marks else (0, 0), np.int64)
    target = np.full(len(row), IGNORED, np.int64)
    if task.is_of_row:
        target[tasks.place(task)] = labels.index(example.label)
        return target if tasks.form == CONTROL else target[:1]
    target[row.passage] = labels.index(OUTSIDE)
    for mark in example.marks:
        begin, end = _placed(mark, tokens, first, row)
        if begin:
            target[begin : end + 1] = labels.index(mark[2])
    return target


def _placed(mark: tuple[int, int, str], tokens: PassageTokens, first: int, row: Row) -> tuple[int, int]:
    """The first and last token of a place in a row; 0 and 0 where the row does not hold all of it."""
    pieces = align(tokens.offsets, mark[0], mark[1])
    begin, end = (piece - first + row.passage.start for piece in pieces or (-1, -1))
    return (begin, end) if row.passage.start <= begin and end < row.passage.stop else (0, 0)
