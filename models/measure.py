"""EM and F1 of a reader on SQuAD, given the right paragraph, and against another reader on the same questions.

    python -m shardqa.models.measure --reader models/reader-v0-int8 --questions ../shared/data/squad/dev-v1.1.json.gz

Paragraphs too long for a row are read in overlapping windows, of which the best span counts, as in the original BERT.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardqa.errors import BadData
from shardqa.models import metrics, squad
from shardqa.models.reader import Row, best_spans, join
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import PassageTokens, Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW_TOKENS = 384
"""Length of a row, as in the original BERT's evaluation on SQuAD."""

STRIDE_TOKENS = 128
"""How far each window of a long paragraph begins after the one before."""

CHUNK_QUESTIONS = 64
"""Questions whose rows are batched together; bounds memory."""


@dataclass(frozen=True, slots=True)
class Scores:
    """A reader's result on a set of questions."""

    questions: int
    exact_match: float
    """Percent."""
    f1: float
    """Percent."""
    seconds: float
    """Time in the network."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A question with its paragraph, cut into rows."""

    question: squad.Question
    text: str
    tokens: PassageTokens
    windows: tuple[tuple[int, Row], ...]
    """First token of the paragraph in each row, and the row."""


def measure(folder: Path, questions: Path, limit: int | None = None, threads: int = 1, seed: int = 0) -> Scores:
    """Read ``limit`` questions drawn at random (all unless given) and score the answers; raises BadData, BadModel."""
    readings = list(_readings(Tokenizer.load(folder), squad.read(questions), limit, seed))
    if not readings:
        raise BadData(f"{questions} has no question with a paragraph; a SQuAD file is needed")
    session = ReaderSession(folder, threads)
    exact = f1 = seconds = 0.0
    for first in range(0, len(readings), CHUNK_QUESTIONS):
        chunk = readings[first : first + CHUNK_QUESTIONS]
        began = time.perf_counter()
        logits = iter(session.read([row for reading in chunk for _, row in reading.windows]))
        seconds += time.perf_counter() - began
        for reading in chunk:
            answer = _answer(reading, [next(logits) for _ in reading.windows])
            exact += metrics.exact_match(answer, reading.question.answers)
            f1 += metrics.f1(answer, reading.question.answers)
    percent = 100 / len(readings)
    return Scores(len(readings), exact * percent, f1 * percent, seconds)


def _readings(tokenizer: Tokenizer, questions: squad.QuestionSet, limit: int | None, seed: int) -> Iterator[Reading]:
    texts = {paragraph.id: paragraph.text for paragraph in questions.paragraphs}
    tokens: dict[str, PassageTokens] = {}
    answerable = [question for question in questions.questions if question.answers and question.document in texts]
    if limit is not None and limit < len(answerable):
        answerable = random.Random(seed).sample(answerable, limit)
    for question in answerable:
        assert question.document is not None
        text = texts[question.document]
        if question.document not in tokens:
            tokens[question.document] = tokenizer.passage(text)
        passage = tokens[question.document]
        yield Reading(question, text, passage, tuple(windows(tokenizer.question(question.text), passage.ids)))


def windows(
    question: NDArray[np.int32], passage: NDArray[np.int32], length: int = WINDOW_TOKENS
) -> Iterator[tuple[int, Row]]:
    """Rows of at most ``length`` tokens that together hold the whole passage, each with its first token's number."""
    room = length - 3 - len(question)
    assert room >= STRIDE_TOKENS, f"{len(question)} wordpieces of a question leave gaps between windows of {length}"
    first = 0
    while True:
        yield first, join(question, passage[first : first + room])
        if first + room >= len(passage):
            return
        first += STRIDE_TOKENS


def _answer(reading: Reading, logits: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> str:
    spans = [
        (span.logit, first + span.start_token, first + span.end_token)
        for (first, row), (start, end) in zip(reading.windows, logits, strict=True)
        for span in best_spans(start, end, row.passage, n_best=1)
    ]
    _, start_token, end_token = max(spans, key=lambda span: span[0])
    return reading.text[reading.tokens.offsets[start_token, 0] : reading.tokens.offsets[end_token, 1]]


def main(
    reader: Annotated[Path, typer.Option(help="Folder of the reader.")],
    questions: Annotated[Path, typer.Option(help="SQuAD file, .json or .json.gz.")],
    limit: Annotated[int | None, typer.Option(help="Questions drawn at random; all unless given.", min=1)] = None,
    threads: Annotated[int, typer.Option(help="Threads of the network.", min=1)] = 1,
) -> None:
    """Print EM and F1 of a reader, given the right paragraph, as JSON.

    Example: python -m shardqa.models.measure --reader models/reader-v0-int8 --questions dev-v1.1.json.gz --limit 500
    """
    typer.echo(json.dumps(asdict(measure(reader, questions, limit, threads))))


if __name__ == "__main__":
    typer.run(main)
