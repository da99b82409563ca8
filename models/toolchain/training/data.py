"""A recipe's data: read, labelled, split into what is learnt from and what is held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shardqa.models import squad
from shardqa.models.tokenizer import Tokenizer
from shardqa.models.toolchain.training import examples
from shardqa.models.toolchain.training.batches import LearningRow
from shardqa.models.toolchain.training.recipe import Data
from shardqa.models.toolchain.training.spans import learning_rows

HELD_OUT_ROWS = 1024
"""At most so many rows make the held-out loss: enough to see it turn, computed in seconds."""


@dataclass(frozen=True, slots=True)
class PreparedData:
    """Data as a run takes it."""

    learnt: list[examples.ExampleSource]
    held_out: list[examples.ExampleSource]
    negatives: list[examples.Example]
    faults: list[examples.Fault]

    def rows(self, max_row: int) -> list[LearningRow]:
        """Of what is learnt from, the negatives aside."""
        return [row for one in self.learnt for row in learning_rows(one.example, max_row)]

    def negative_rows(self, max_row: int) -> list[LearningRow]:
        """Of all the negatives."""
        return [row for example in self.negatives for row in learning_rows(example, max_row)]

    def held_out_rows(self, max_row: int) -> list[LearningRow]:
        """At most HELD_OUT_ROWS, spread evenly."""
        rows = [row for one in self.held_out for row in learning_rows(one.example, max_row)]
        return rows[:: max(1, -(-len(rows) // HELD_OUT_ROWS))]


def prepare(data: Data, tokenizer: Tokenizer) -> PreparedData:
    """Read and label the files; raises BadData as `examples.read` does, OSError as open() does."""
    paths = [Path(name) for name in data.checked().train]
    sources, faults = examples.read(paths, tokenizer, data.skip_faulty)
    held_out = [one for one in sources if squad.is_held_out(one.question.document or "", data.held_out)]
    learnt = [one for one in sources if not squad.is_held_out(one.question.document or "", data.held_out)]
    negatives = [
        negative
        for path in (paths if data.negatives else [])
        for negative in examples.hard_negatives(*_of_file(path, learnt), tokenizer)
    ]
    return PreparedData(learnt, held_out, negatives, faults)


def _of_file(
    path: Path, learnt: Sequence[examples.ExampleSource]
) -> tuple[list[examples.ExampleSource], squad.QuestionSet]:
    """A file's questions, and the sources that come from it."""
    questions = squad.read_squad(path)
    ids = {question.id for question in questions.questions}
    return [source for source in learnt if source.question.id in ids], questions
