"""A recipe's data: read, labelled, split into what is learnt from and what is held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.evidence_lines import is_lines
from shardqa_toolchain.faults import Fault
from shardqa_toolchain.training import examples
from shardqa_toolchain.training.batches import LearningRow
from shardqa_toolchain.training.held_out import HeldOutRow
from shardqa_toolchain.training.recipe import Data
from shardqa_toolchain.training.spans import learning_rows
from shardqa_toolchain.windows import windows

HELD_OUT_ROWS = 1024  # at most so many rows make the held-out loss: enough to see it turn, computed in seconds

MEASURED_ROWS = 16  # at most so many rows of each file that is only measured on


@dataclass(frozen=True, slots=True)
class PreparedData:
    learnt: list[examples.ExampleSource]
    held_out: list[examples.ExampleSource]
    measured: list[examples.ExampleSource]  # from files that are only measured on
    negatives: list[examples.Example]
    faults: list[Fault]

    def rows(self, max_row: int) -> list[LearningRow]:
        """Returns the rows of what is learnt from, the negatives aside."""
        return [row for one in self.learnt for row in learning_rows(one.example, max_row)]

    def negative_rows(self, max_row: int) -> list[LearningRow]:
        return [row for example in self.negatives for row in learning_rows(example, max_row)]

    def held_out_rows(self, max_row: int) -> list[HeldOutRow]:
        """Returns HELD_OUT_ROWS rows at most, and MEASURED_ROWS of each file only measured on, evenly spread."""
        files: dict[str, list[HeldOutRow]] = {}
        for one in self.measured:
            files.setdefault(one.file, []).extend(_held_out_rows(one, max_row))
        rows = [row for one in self.held_out for row in _held_out_rows(one, max_row)]
        return _spread(rows, HELD_OUT_ROWS) + [
            row for of_file in files.values() for row in _spread(of_file, MEASURED_ROWS)
        ]


def _held_out_rows(source: examples.ExampleSource, max_row: int) -> list[HeldOutRow]:
    rows = []
    example, units = source.example, source.units
    pairs = zip(windows(example.question, example.passage, max_row), learning_rows(example, max_row), strict=True)
    for (first, row), learnt in pairs:
        pieces = slice(first, first + row.passage.stop - row.passage.start)
        if len(units.words[pieces]):
            rows.append(HeldOutRow(learnt, row.passage, units.sentences[pieces], units.words[pieces], source.file))
    return rows


def _spread(rows: list[HeldOutRow], most: int) -> list[HeldOutRow]:
    return rows[:: max(1, -(-len(rows) // most))]


def prepare(data: Data, tokenizer: Tokenizer) -> PreparedData:
    """Read and label the files; raises BadData as `examples.read` does, OSError as open() does."""
    paths = [Path(name) for name in data.checked().train]
    sources, faults = examples.read(paths, tokenizer, data.skip_faulty)
    held_out = [one for one in sources if squad.is_held_out(one.question.document or "", data.held_out)]
    learnt = [one for one in sources if not squad.is_held_out(one.question.document or "", data.held_out)]
    negatives = [
        negative
        for path in ([path for path in paths if not is_lines(path)] if data.negatives else [])
        for negative in examples.hard_negatives(*_of_file(path, learnt), tokenizer)
    ]
    own, _ = examples.read(measured_files(data), tokenizer, skip_faulty=True) if data.measured else ([], [])
    return PreparedData(learnt, held_out, own, negatives, faults)


def measured_files(data: Data) -> list[Path]:
    """Returns the files that a run is measured on while it learns, in the order of their names."""
    return sorted(path for path in Path(data.measured).iterdir() if path.is_file()) if data.measured else []


def _of_file(
    path: Path, learnt: Sequence[examples.ExampleSource]
) -> tuple[list[examples.ExampleSource], squad.QuestionSet]:
    """A file's questions, and the sources that come from it."""
    questions = squad.read_squad(path)
    ids = {question.id for question in questions.questions}
    return [source for source in learnt if source.question.id in ids], questions
