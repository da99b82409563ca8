"""Questions with their paragraphs, which every step answers: drawn once and handed to each process as a file."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shardqa.errors import BadData
from shardqa.models.reader import join
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.conversion import probes
from shardqa_toolchain.measure import QuestionRows
from shardqa_toolchain.windows import windows

SEED = 0


@dataclass(frozen=True, slots=True)
class LadderQuestion:
    question: squad.SquadQuestion
    text: str


def draw(questions: Path | None, count: int, unanswerable: bool = False) -> list[LadderQuestion]:
    """``count`` questions of a SQuAD file, always the same ones; those of ``seeds/`` where no file is named.

    Questions without an answer only if ``unanswerable``. Raises BadData when there is nothing to draw from, OSError as
    open() does.
    """
    found = _question_set(questions)
    texts = {paragraph.id: paragraph.text for paragraph in found.paragraphs}
    candidates = [
        LadderQuestion(one, texts[one.document])
        for one in found.questions
        if one.document in texts and (one.answers or unanswerable)
    ]
    if not candidates:
        raise BadData(f"{questions or probes.SEEDS} has no question with its paragraph; name a SQuAD file: --questions")
    return random.Random(SEED).sample(candidates, min(count, len(candidates)))


def _question_set(questions: Path | None) -> squad.QuestionSet:
    if questions is not None:
        return squad.read(questions)
    if not probes.SEEDS.exists():
        raise BadData(f"{probes.SEEDS} is not here, nor is another set of questions named; give one: --questions FILE")
    return probes.seed_questions()


def save(questions: Sequence[LadderQuestion], path: Path) -> None:
    path.write_text(json.dumps([asdict(question) for question in questions]), encoding="utf-8")


def load(path: Path) -> list[LadderQuestion]:
    """Reads what `save` wrote."""
    return [
        LadderQuestion(_question(one["question"]), one["text"]) for one in json.loads(path.read_text(encoding="utf-8"))
    ]


def _question(fields: dict[str, Any]) -> squad.SquadQuestion:
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return squad.SquadQuestion(**{**fields, **lists})


def readings(
    questions: Sequence[LadderQuestion], tokenizer: Tokenizer, longest: int, exact: bool = False
) -> Iterator[QuestionRows]:
    """Questions as rows of at most ``longest`` tokens; if ``exact`` as one row of so many, its paragraph cut off."""
    for drawn in questions:
        question, passage = tokenizer.question(drawn.question.text), tokenizer.passage(drawn.text)
        if exact:
            rows = [(0, join(question, passage.ids[: longest - 3 - len(question)]))]
        else:
            rows = list(windows(question, passage.ids, longest))
        yield QuestionRows(drawn.question, drawn.text, passage, tuple(rows))
