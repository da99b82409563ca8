"""Rows to compare two networks on: questions with their paragraphs where there are some, else random wordpieces."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import shardqa
from shardqa.errors import BadData, BadModel
from shardqa.models.reader import Row, join
from shardqa.models.tokenizer import MAX_QUESTION_TOKENS, PassageTokens, Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.measure import STRIDE_TOKENS, WINDOW_TOKENS, QuestionRows, windows

SEEDS = Path(shardqa.__file__).parent / "seeds"

DEFAULT_QUESTIONS = 64  # taken when no question file is named: seconds on one core

RANDOM_ROWS = 32
RANDOM_LENGTHS = (12, 128)  # shortest and longest row of random wordpieces

FIRST_WORD = 104  # ids below this are special tokens in BERT's vocabularies

# A network with fewer can't read the longest question with a window.
LEAST_POSITIONS = MAX_QUESTION_TOKENS + 3 + STRIDE_TOKENS


@dataclass(frozen=True, slots=True)
class Probe:
    """Rows that both networks are fed."""

    inputs: str  # where it comes from, for people
    readings: tuple[QuestionRows, ...]  # questions with their windows; empty for random rows
    rows: tuple[Row, ...]


def probe(
    tokenizer: Path | None,
    vocabulary: int,
    positions: int,
    questions: Path | None = None,
    limit: int | None = None,
) -> Probe:
    """``limit`` questions of a SQuAD file, drawn with a fixed seed; all unless given.

    Without a file, some of ``seeds/``; without those, or for a network that no question fits, random rows. Raises
    BadData for a file without answerable questions, BadModel when questions are given but can't be put to the network.
    """
    unfit = _unfit(tokenizer, positions)
    if questions is not None:
        if unfit or tokenizer is None:
            raise BadModel(f"questions can't be put to this network: {unfit}; leave --questions away")
        return _of_questions(questions.name, squad.read(questions), tokenizer, positions, limit)
    if unfit or tokenizer is None or not SEEDS.exists():
        return random_probe(vocabulary, positions, limit or RANDOM_ROWS)
    return _of_questions("seeds", seed_questions(), tokenizer, positions, limit or DEFAULT_QUESTIONS)


def _unfit(tokenizer: Path | None, positions: int) -> str | None:
    if tokenizer is None:
        return "there is no tokenizer.json beside it"
    return f"it reads {positions} tokens, {LEAST_POSITIONS} are needed" if positions < LEAST_POSITIONS else None


def random_probe(vocabulary: int, positions: int, rows: int) -> Probe:
    """Rows of random lengths and wordpieces, always the same."""
    dice = np.random.default_rng(0)
    low, high = RANDOM_LENGTHS
    inputs = []
    for length in dice.integers(min(low, positions), min(high, positions) + 1, rows).tolist():
        ids = dice.integers(min(FIRST_WORD, vocabulary - 1), vocabulary, length - 3).astype(np.int32)
        inputs.append(join(ids[: length // 4], ids[length // 4 :]))
    return Probe(f"{rows} rows of random wordpieces", (), tuple(inputs))


def seed_questions() -> squad.QuestionSet:
    """The questions of ``seeds/``, each with the paragraph of its document that holds the answer."""
    paragraphs: dict[str, squad.Paragraph] = {}
    questions = []
    for question in squad.read_lines(SEEDS / "questions.jsonl"):
        if question.document is None:
            continue
        parts = (SEEDS / "documents" / question.document).read_text(encoding="utf-8").split("\n\n")
        number = next((n for n, part in enumerate(parts) if any(one in part for one in question.answers)), None)
        if number is not None:
            place = f"{question.document}/{number}"
            paragraphs[place] = squad.Paragraph(place, question.document, parts[number])
            questions.append(replace(question, document=place))
    return squad.QuestionSet(tuple(paragraphs.values()), tuple(questions))


def _of_questions(
    name: str, question_set: squad.QuestionSet, tokenizer: Path, positions: int, limit: int | None
) -> Probe:
    readings = tuple(_readings(Tokenizer.parse(tokenizer.read_text(encoding="utf-8")), question_set, positions, limit))
    if not readings:
        raise BadData(f"{name} has no question with an answer in its paragraph; a SQuAD file is needed")
    rows = tuple(row for reading in readings for _, row in reading.windows)
    return Probe(f"{len(readings)} questions of {name}", readings, rows)


def _readings(
    tokenizer: Tokenizer, question_set: squad.QuestionSet, positions: int, limit: int | None
) -> Iterator[QuestionRows]:
    texts = {paragraph.id: paragraph.text for paragraph in question_set.paragraphs}
    for question in _drawn([one for one in question_set.questions if one.answers and one.document in texts], limit):
        text = texts[question.document or ""]
        tokens: PassageTokens = tokenizer.passage(text)
        rows = windows(tokenizer.question(question.text), tokens.ids, min(WINDOW_TOKENS, positions))
        yield QuestionRows(question, text, tokens, tuple(rows))


def _drawn(questions: Sequence[squad.SquadQuestion], limit: int | None) -> Sequence[squad.SquadQuestion]:
    """Returns the questions that `measure.measure` draws."""
    return questions if limit is None or limit >= len(questions) else random.Random(0).sample(questions, limit)
