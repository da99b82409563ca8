"""A network for several tasks at work: one reading of a text gives every task's result (numpy and onnxruntime only).

    session = MultitaskSession(Path("build/tasks/int8"))
    session.read("Ada Lovelace was born in London.", "Where was she born?")

A text too long for a row is read in overlapping windows: of spans the best counts, of "answerable" the surest, of a
sequence the mean, and each word is judged in the window in which it stands farthest from an edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shardqa.models.reader import Row, batches
from shardqa.models.session import open_session
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain.multitask import decoding
from shardqa_toolchain.multitask.decoding import DecodedWindow, Result
from shardqa_toolchain.multitask.tasks import CONTROL, Task, TaskSet
from shardqa_toolchain.multitask.words import Words
from shardqa_toolchain.windows import windows

Outputs = dict[str, "NDArray[np.float32]"]  # the network's outputs for one row, by name, without padding


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A text and perhaps a question, cut into rows."""

    text: str
    tokens: PassageTokens
    has_question: bool
    # The task that the row is for, None for all; the text's first wordpiece in it; the row.
    rows: list[tuple[Task | None, int, Row]]


class MultitaskSession:
    """An onnxruntime session over the folder of a network for several tasks; may be called from several threads."""

    def __init__(self, folder: Path | str, threads: int = 1) -> None:
        """Load a folder's network, tokenizer and tasks; raises BadModel when one is missing or can't be read."""
        folder = Path(folder)
        self.tasks = TaskSet.load(folder)
        self.tokenizer = Tokenizer.load(folder)
        self._session = open_session(folder, threads)

    def read(self, text: str, question: str = "") -> dict[str, Result]:
        """Every task's result by its name; tasks that need a question are absent where there is none.

        Places are characters of ``text``: ``text[start:end]``. Raises QuestionTooLong, BadData or BadDocument for lone
        surrogates, and BadModel when the network gives what is not finite.
        """
        return self.read_all([(text, question)])[0]

    def read_all(self, texts: Sequence[tuple[str, str]]) -> list[dict[str, Result]]:
        """Reads pairs of text and question as `read` does; rows of like length share a batch."""
        sheets = [self._sheet(text, question) for text, question in texts]
        outputs = iter(self.outputs([row for sheet in sheets for _, _, row in sheet.rows]))
        return [self._decoded(sheet, [next(outputs) for _ in sheet.rows]) for sheet in sheets]

    def rows(self, text: str, question: str = "") -> list[Row]:
        """Returns the rows that the network is fed, one for each window; in the control form one for each task's."""
        return [row for _, _, row in self._sheet(text, question).rows]

    def outputs(self, rows: Sequence[Row]) -> list[Outputs]:
        """The network's outputs for each row, in the order given."""
        outputs: list[Outputs] = [{} for _ in rows]
        per_token = self.tasks.outputs_per_token
        for batch in batches(rows):
            values = self._session.run(list(self.tasks.outputs), batch.feeds())
            for name, value in zip(self.tasks.outputs, values, strict=True):
                for line, number in enumerate(batch.rows):
                    outputs[number][name] = value[line, : len(rows[number])] if name in per_token else value[line]
        return outputs

    def _sheet(self, text: str, question: str) -> _Sheet:
        ids = self.tokenizer.question(question)
        tokens = self.tokenizer.passage(text)
        rows = [
            (task, first, row)
            for task, front in self._fronts(len(ids) > 0)
            for first, row in windows(np.concatenate([front, ids]), tokens.ids)
        ]
        return _Sheet(text, tokens, len(ids) > 0, rows)

    def _fronts(self, has_question: bool) -> list[tuple[Task | None, NDArray[np.int32]]]:
        """Returns the wordpieces that stand before the question, each with its task."""
        if self.tasks.form != CONTROL:
            return [(None, np.zeros(0, dtype=np.int32))]
        return [
            (task, np.array([task.control], dtype=np.int32))
            for task in self.tasks.tasks
            if has_question or not task.asks
        ]

    def _decoded(self, sheet: _Sheet, outputs: Sequence[Outputs]) -> dict[str, Result]:
        words = Words.of(sheet.tokens)
        results: dict[str, Result] = {}
        for task in self.tasks.tasks:
            seen = [
                DecodedWindow(first, row, self._logits(task, found))
                for (of, first, row), found in zip(sheet.rows, outputs, strict=True)
                if of in (None, task)
            ]
            if sheet.has_question or not task.asks:
                results[task.name] = decoding.decode(self.tasks.form, task, sheet.text, sheet.tokens, words, seen)
        return results

    def _logits(self, task: Task, outputs: Outputs) -> tuple[NDArray[np.float32], ...]:
        if self.tasks.form == CONTROL:
            (logits,) = outputs.values()
            return (logits[:, self.tasks.columns(task)],)
        return tuple(outputs[name] for name in task.outputs)
