"""Scores of a network's tasks on examples that it has not learnt from, by numpy and onnxruntime alone.

Spans: F1 by SQuAD's rules, nothing being the answer where the text does not say. Labels of rows: accuracy. Labels of
tokens: F1 over those that are labelled otherwise than O.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shardqa.models import metrics
from shardqa.models.reader import SPANS, batches, best_spans, null_logit
from shardqa.models.session import open_session
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.multitask.lines import Example
from shardqa_toolchain.multitask.rows import IGNORED, TaskRow, joined, task_rows
from shardqa_toolchain.multitask.tasks import CONTROL, OUTSIDE, SPAN, Task, TaskSet
from shardqa_toolchain.windows import WINDOW_TOKENS

Outputs = Mapping[str, NDArray[np.float32]]  # of a row, by name, without padding


def measure(folder: Path, examples: Mapping[str, Sequence[Example]], threads: int = 1) -> dict[str, float]:
    """Percent by task of an ONNX folder's network; raises BadModel for a folder that is none."""
    tasks, tokenizer = TaskSet.load(folder), Tokenizer.load(folder)
    texts = [
        (labelled, list(task_rows(tasks, text, question, labelled, tokenizer, WINDOW_TOKENS)))
        for (text, question), labelled in joined(examples).items()
    ]
    outputs = iter(run(folder, [one for _, rows in texts for one in rows], threads))
    values: dict[str, list[NDArray[np.float64]]] = {}
    for labelled, rows in texts:
        logits = [next(outputs) for _ in rows]
        for task in tasks.tasks:
            if task.name in labelled:
                values.setdefault(task.name, []).append(_judged(tasks, task, labelled[task.name], rows, logits))
    return {task.name: _percent(task, values[task.name]) for task in tasks.tasks if task.name in values}


def run(folder: Path, rows: Sequence[TaskRow], threads: int = 1) -> list[Outputs]:
    """The network's outputs for each row, in the order given."""
    session = open_session(folder, threads)
    names = [one.name for one in session.get_outputs()]
    outputs: dict[int, Outputs] = {}
    for batch in batches([one.row for one in rows]):
        values = dict(zip(names, session.run(names, batch.feeds()), strict=True))
        for line, number in enumerate(batch.rows):
            whole = batch.input_ids.shape[1]
            outputs[number] = {
                name: value[line, : len(rows[number])] if value.shape[1:2] == (whole,) else value[line]
                for name, value in values.items()
            }
    return [outputs[number] for number in range(len(rows))]


def _judged(
    tasks: TaskSet, task: Task, example: Example, rows: Sequence[TaskRow], logits: Sequence[Outputs]
) -> NDArray[np.float64]:
    """An example's share of the score, [1]; for tokens, right ones, labelled ones and those that should be, [3]."""
    if task.kind == SPAN:
        answer = _answer(example.text, rows, logits)
        return np.array([metrics.f1(answer, example.answers) if example.answers else not answer])
    if tasks.form == CONTROL:
        columns = np.array([tasks.union.index(label) for label in task.labels])
        own = [one["control_logits"][:, columns] for one in logits]
    else:
        columns, own = np.arange(len(task.labels)), [one[f"{task.name}_logits"] for one in logits]
    if task.is_of_row:
        place = tasks.place(task)
        mean = np.mean([one[place] if tasks.form == CONTROL else one for one in own], axis=0)
        return np.array([task.labels[int(mean.argmax())] == example.label])
    counts = [_tokens(task, row.targets[task.name], columns, one) for row, one in zip(rows, own, strict=True)]
    return np.asarray(np.sum(counts, axis=0), np.float64)


def _answer(text: str, rows: Sequence[TaskRow], logits: Sequence[Outputs]) -> str:
    """The best span's text; nothing where no row is surer of it than of none."""
    best, answer = 0.0, ""
    for row, outputs in zip(rows, logits, strict=True):
        start, end = (outputs[name] for name in SPANS)
        for span in best_spans(start, end, row.row.passage, n_best=1):
            if span.logit - null_logit(start, end) > best:
                best = span.logit - null_logit(start, end)
                offsets = row.tokens.offsets[row.first + span.start_token : row.first + span.end_token + 1]
                answer = text[int(offsets[0, 0]) : int(offsets[-1, 1])]
    return answer


def _tokens(
    task: Task, target: NDArray[np.int64], columns: NDArray[np.int64], logits: NDArray[np.float32]
) -> NDArray[np.float64]:
    known = target != IGNORED
    outside = columns[task.labels.index(OUTSIDE)]
    labels, wanted = columns[logits[known].argmax(-1)], target[known]
    right = (labels == wanted) & (wanted != outside)
    return np.array([right.sum(), (labels != outside).sum(), (wanted != outside).sum()], np.float64)


def _percent(task: Task, values: Sequence[NDArray[np.float64]]) -> float:
    if task.kind == SPAN or task.is_of_row:
        return float(100 * np.mean(values))
    right, labelled, wanted = np.sum(values, axis=0)
    return float(200 * right / max(1, labelled + wanted))
