"""EM and F1 of a reader on SQuAD, given the right paragraph, and against another reader on the same questions.

    shardqa-models measure models/reader-v4-int8 ../shared/data/squad/dev-v1.1.json.gz

Paragraphs too long for a row are read in overlapping windows, of which the best span counts, as in the original BERT.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shardqa.errors import BadData
from shardqa.models import metrics, sentences
from shardqa.models.reader import Row
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.windows import STRIDE_TOKENS as STRIDE_TOKENS
from shardqa_toolchain.windows import WINDOW_TOKENS as WINDOW_TOKENS
from shardqa_toolchain.windows import best_span
from shardqa_toolchain.windows import windows as windows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK_QUESTIONS = 64  # questions whose rows are batched together; bounds memory


@dataclass(frozen=True, slots=True)
class Scores:
    questions: int
    exact_match: float  # percent
    f1: float  # percent
    seconds: float  # time in the network


@dataclass(frozen=True, slots=True)
class QuestionRows:
    """A question with its paragraph, cut into rows."""

    question: squad.SquadQuestion
    text: str
    tokens: PassageTokens
    windows: tuple[tuple[int, Row], ...]  # first token of the paragraph in each row, and the row


@dataclass(frozen=True, slots=True)
class Read:
    """A reader's answer to a question."""

    question: squad.SquadQuestion
    answer: str  # the best span's text
    span_logit: float
    null_logit: float  # of the window that is surest to hold an answer: the lowest
    seconds: float  # time in the network, the question's share of its chunk

    @property
    def f1(self) -> float:
        """Returns the F1 of the answer, 0 to 1; 0 where the question has none."""
        return metrics.f1(self.answer, self.question.answers) if self.question.answers else 0.0

    @property
    def exact_match(self) -> float:
        return float(metrics.exact_match(self.answer, self.question.answers)) if self.question.answers else 0.0


def measure(folder: Path, questions: Path, limit: int | None = None, threads: int = 1) -> Scores:
    """Read ``limit`` questions drawn at random (all unless given) and score the answers; raises BadData, BadModel."""
    return scores(list(read_all(folder, questions, limit, threads, answerable=True)))


def scores(reads: Sequence[Read]) -> Scores:
    """EM and F1 of answers to answerable questions, none refused; there is one at least."""
    percent = 100 / len(reads)
    return Scores(
        len(reads),
        percent * sum(one.exact_match for one in reads),
        percent * sum(one.f1 for one in reads),
        sum(one.seconds for one in reads),
    )


def read_all(
    folder: Path,
    questions: Path,
    limit: int | None = None,
    threads: int = 1,
    answerable: bool = False,
) -> Iterator[Read]:
    """Reads ``limit`` questions drawn at random (all unless given) in their paragraphs; ``answerable``: only such ones.

    Raises BadData when there is none, BadModel for a folder that is no reader.
    """
    all_rows = readings(folder, questions, limit, answerable)
    # Here, since what another library answers is scored too, by processes whose memory is measured.
    from shardqa.models.session import ReaderSession

    yield from read_with(ReaderSession(folder, threads).read, all_rows)


def readings(folder: Path, questions: Path, limit: int | None = None, answerable: bool = True) -> list[QuestionRows]:
    """``limit`` questions drawn at random (all unless given) with their paragraphs, cut for the folder's reader.

    Raises BadData when there is none, BadModel for a folder without a tokenizer.
    """
    rows = list(_readings(Tokenizer.load(folder), squad.read(questions), limit, answerable))
    if not rows:
        raise BadData(f"{questions} has no question with a paragraph; a SQuAD file is needed")
    return rows


def read_with(
    read_rows: Callable[[Sequence[Row]], Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]],
    readings: Sequence[QuestionRows],
) -> Iterator[Read]:
    """Yields the answer to each question by ``read_rows``, which gives start and end logits of each row."""
    for first in range(0, len(readings), CHUNK_QUESTIONS):
        chunk = readings[first : first + CHUNK_QUESTIONS]
        began = time.perf_counter()
        logits = iter(read_rows([row for reading in chunk for _, row in reading.windows]))
        seconds = (time.perf_counter() - began) / len(chunk)
        for reading in chunk:
            yield read(reading, [next(logits) for _ in reading.windows], seconds)


def _readings(
    tokenizer: Tokenizer, questions: squad.QuestionSet, limit: int | None, answerable: bool
) -> Iterator[QuestionRows]:
    texts = {paragraph.id: paragraph.text for paragraph in questions.paragraphs}
    tokens: dict[str, PassageTokens] = {}
    sample = [one for one in questions.questions if (one.answers or not answerable) and one.document in texts]
    if limit is not None and limit < len(sample):
        sample = random.Random(0).sample(sample, limit)
    for question in sample:
        assert question.document is not None
        text = texts[question.document]
        if question.document not in tokens:
            tokens[question.document] = tokenizer.passage(text)
        passage = tokens[question.document]
        yield QuestionRows(question, text, passage, tuple(windows(tokenizer.question(question.text), passage.ids)))


def read(
    reading: QuestionRows, logits: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]], seconds: float
) -> Read:
    """The best span of all windows; ``logits`` are the start and end logits of each, float32 [n] each."""
    span = best_span(reading.windows, logits, sentences.numbers(reading.text, reading.tokens.offsets))
    if span is None:
        raise BadData(f"question {reading.question.id!r}: its paragraph holds no word; take it out of the file")
    offsets = reading.tokens.offsets
    answer = reading.text[offsets[span.start_token, 0] : offsets[span.end_token, 1]]
    return Read(reading.question, answer, span.logit, span.null_logit, seconds)
