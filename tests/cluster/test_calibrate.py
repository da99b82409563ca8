"""`shardqa-models calibrate-corpus`: a corpus's own scores on a real cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import UnknownCorpus
from shardqa.models.corpus_scoring import CorpusScoring, FittedOn
from shardqa.models.scoring import shipped_scoring
from shardqa.schema import Document

NAMES = ("Abel", "Berg", "Cole", "Dunn", "Eyre", "Falk", "Gray", "Holm", "Ives", "Joss")
YEARS = {f"{name} Ford": 1700 + 7 * n for n, name in enumerate(NAMES)}
THINGS = ("mill", "kiln", "forge")
QUESTION = "When was the mill at Abel Ford built?"
FITTED = FittedOn(
    at="2026-01-01T00:00:00+00:00", answerable=30, absent=30, tricks=0, log_loss_before=1, log_loss_after=0.5
)


def lenient() -> CorpusScoring:
    """The scoring of a corpus whose answers are nearly always right."""
    readers = shipped_scoring()
    own = CorpusScoring.of(readers, readers, FITTED)
    return own.model_copy(update={"answer": {**own.answer, "bias": own.answer["bias"] + 3}})


@pytest.fixture
async def filled(engine: Engine) -> Engine:
    for place, year in YEARS.items():
        text = "\n\n".join(f"The {thing} at {place} was built in {year + n}." for n, thing in enumerate(THINGS))
        await engine.documents.put(Document(id=place, text=text))
    return engine


def questions(file: Path) -> Path:
    lines = [
        {"id": f"{place} {thing}", "question": f"When was the {thing} at {place} built?", "answers": [str(year + n)],
         "document": place}
        for place, year in YEARS.items()
        for n, thing in enumerate(THINGS)
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def toolchain(settings: Settings, *words: str) -> Any:
    command = [sys.executable, "-m", "shardqa_toolchain", *words, "--json", "--corpus", settings.corpus]
    environment = {**os.environ, "SHARDQA_REDIS": settings.redis}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def calibrate(settings: Settings, *words: str) -> Any:
    return toolchain(settings, "calibrate-corpus", *words)


async def test_a_corpus_is_measured(filled: Engine, settings: Settings, tmp_path: Path) -> None:
    file = str(questions(tmp_path / "questions.jsonl"))
    rows = toolchain(settings, "eval", "times", "--questions", file, "--requests", "4", "--concurrency", "1,2")
    kinds = [(kind, level) for kind in ("computed", "redis", "process") for level in (1, 2)]
    assert [(row["kind"], row["concurrency"]) for row in rows] == kinds
    found = toolchain(settings, "eval", "retrieval", file)
    assert (found["questions"], found["recall_at_5"]) == (30, 100.0)


async def test_thirty_questions_give_a_corpus_its_own_scores_and_undo_takes_them_back(
    filled: Engine, settings: Settings, tmp_path: Path
) -> None:
    before = await filled.ask(QUESTION)
    report = calibrate(settings, str(questions(tmp_path / "questions.jsonl")), "--force")
    fitted = report["scoring"]["fitted"]
    assert (report["stored"], fitted["answerable"], fitted["absent"]) == (True, 30, 30)
    shown = calibrate(settings)
    assert shown["scoring"]["answer"] == report["scoring"]["answer"]
    async with await Engine.connect(settings) as other:
        answer = await other.ask(QUESTION)
    assert (before.calibrated, answer.calibrated, answer.answer) == (False, True, before.answer)
    assert answer.score != before.score
    assert calibrate(settings, "--undo")["scoring"] is None
    async with await Engine.connect(settings) as other:
        again = await other.ask(QUESTION)
    assert (again.calibrated, again.score) == (False, before.score)


async def test_a_dry_run_stores_nothing(filled: Engine, settings: Settings, tmp_path: Path) -> None:
    report = calibrate(settings, str(questions(tmp_path / "questions.jsonl")), "--dry-run")
    assert report["stored"] is False
    assert await filled.scores.stored(settings.corpus) is None


async def test_scores_change_answers_that_are_kept_already(filled: Engine, settings: Settings) -> None:
    before = await filled.ask(QUESTION)
    await filled.scores.store(settings.corpus, lenient())
    after, again = await filled.ask(QUESTION), await filled.ask(QUESTION)
    assert after.score > before.score
    assert (again.score, again.cache) == (after.score, "process")


async def test_an_explanation_has_the_weights_of_the_corpus(filled: Engine, settings: Settings) -> None:
    await filled.scores.store(settings.corpus, lenient())
    explained = await filled.explain(QUESTION)
    assert explained.weights["answer"] == lenient().answer
    assert explained.answer.calibrated


async def test_scores_of_another_reader_are_left_alone(filled: Engine, settings: Settings) -> None:
    before = await filled.ask(QUESTION)
    await filled.scores.store(settings.corpus, lenient().model_copy(update={"reader": "another"}))
    answer = await filled.ask(QUESTION)
    assert (answer.score, answer.calibrated) == (before.score, False)


async def test_scores_that_are_damaged_are_never_used(filled: Engine, settings: Settings) -> None:
    await filled.shards.by_key(f"ask:{settings.corpus}:scoring", "SET", b"\xff{")
    answer = await filled.ask(QUESTION)
    assert (answer.answer, answer.calibrated) == ("1700", False)


async def test_scores_go_with_the_corpus(filled: Engine, settings: Settings) -> None:
    await filled.scores.store(settings.corpus, lenient())
    await filled.catalogue.drop(settings.corpus)
    async for _ in filled.catalogue.dropping(settings.corpus):
        pass
    assert await filled.scores.stored(settings.corpus) is None
    with pytest.raises(UnknownCorpus):
        await filled.ask(QUESTION)
