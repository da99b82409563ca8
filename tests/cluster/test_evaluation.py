"""`shardqa-models eval` on a real cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.schema import Document

NAMES = ("Abel", "Berg", "Cole", "Dunn", "Eyre", "Falk", "Gray", "Holm", "Ives", "Joss")
YEARS = {f"{name} Ford": 1700 + 7 * n for n, name in enumerate(NAMES)}
THINGS = ("mill", "kiln", "forge")


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


async def test_a_corpus_is_measured(filled: Engine, settings: Settings, tmp_path: Path) -> None:
    file = str(questions(tmp_path / "questions.jsonl"))
    rows = toolchain(settings, "eval", "times", "--questions", file, "--requests", "4", "--concurrency", "1,2")
    kinds = [(kind, level) for kind in ("computed", "redis", "process") for level in (1, 2)]
    assert [(row["kind"], row["concurrency"]) for row in rows] == kinds
    found = toolchain(settings, "eval", "retrieval", file, "--trec", str(tmp_path))
    assert (found["questions"], found["recall_at_5"]) == (30, 100.0)
    assert len((tmp_path / "qrels.txt").read_text().splitlines()) == 30
    asked = toolchain(settings, "eval", "ask", file, "--min-f1", "1", "--limit", "6")
    assert asked["slices"].keys() == {"when"}
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"id": "1", "question": "When was the mill at Abel Ford built?", "answers": ["1066"]}')
    with pytest.raises(AssertionError, match="F1 is 0, below the 1 that is wanted"):
        toolchain(settings, "eval", "ask", str(wrong), "--min-f1", "1")
