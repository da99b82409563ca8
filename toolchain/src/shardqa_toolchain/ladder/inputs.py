"""What every step answers: questions with their paragraphs, drawn once and handed to each process as a file."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from shardqa.errors import BadData
from shardqa.models import squad
from shardqa.models.reader import join
from shardqa.models.tokenizer import Tokenizer
from shardqa.models.windows import windows
from shardqa_toolchain.conversion import probes
from shardqa_toolchain.measure import QuestionRows

SEED = 0


@dataclass(frozen=True, slots=True)
class LadderQuestion:
    """A question and the paragraph that it is about."""

    question: squad.SquadQuestion
    text: str


def draw(questions: Path | None, count: int, unanswerable: bool = False) -> list[LadderQuestion]:
    """``count`` questions of a SQuAD file, always the same ones; those of ``seeds/`` where no file is named.

    Questions without an answer only if ``unanswerable``. Raises BadData when there is nothing to draw from, OSError as
    open() does.
    """
    found = _question_set(questions)
    texts = {paragraph.id: paragraph.text for paragraph in found.paragraphs}
    asked = [
        LadderQuestion(one, texts[one.document])
        for one in found.questions
        if one.document in texts and (one.answers or unanswerable)
    ]
    if not asked:
        raise BadData(f"{questions or probes.SEEDS} has no question with its paragraph; name a SQuAD file: --questions")
    return random.Random(SEED).sample(asked, min(count, len(asked)))


def _question_set(questions: Path | None) -> squad.QuestionSet:
    if questions is not None:
        return squad.read(questions)
    if not probes.SEEDS.exists():
        raise BadData(f"{probes.SEEDS} is not here, nor is another set of questions named; give one: --questions FILE")
    return probes.seed_questions()


def save(asked: Sequence[LadderQuestion], path: Path) -> None:
    """Write drawn questions as JSON."""
    path.write_text(json.dumps([asdict(one) for one in asked]), encoding="utf-8")


def load(path: Path) -> list[LadderQuestion]:
    """What `save` wrote."""
    return [
        LadderQuestion(_question(one["question"]), one["text"]) for one in json.loads(path.read_text(encoding="utf-8"))
    ]


def _question(found: dict[str, object]) -> squad.SquadQuestion:
    return squad.SquadQuestion(**{name: tuple(one) if isinstance(one, list) else one for name, one in found.items()})  # type: ignore[arg-type]


def readings(
    asked: Sequence[LadderQuestion], tokenizer: Tokenizer, longest: int, exact: bool = False
) -> Iterator[QuestionRows]:
    """Questions as rows of at most ``longest`` tokens; if ``exact`` as one row of so many, its paragraph cut off."""
    for one in asked:
        question, passage = tokenizer.question(one.question.text), tokenizer.passage(one.text)
        if exact:
            cut = passage.ids[: longest - 3 - len(question)]
            yield QuestionRows(one.question, one.text, passage, ((0, join(question, cut)),))
        else:
            yield QuestionRows(one.question, one.text, passage, tuple(windows(question, passage.ids, longest)))
