"""The golden folder, ingested and asked: an answer from each format, with its exact place."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from tests.golden_files import FOLDER, lines

CORPUS = "golden"
FACTS = [line for line in lines() if line.ferry]
MISSED = 2  # the reader may take the number that a plain sentence says of another ferry


@pytest.fixture(scope="module")
def summary(cluster: LocalCluster) -> Any:
    """The folder is ingested; its summary by `ingest --json`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    command = [sys.executable, "-m", "shardqa.cli", "ingest", str(FOLDER), "--corpus", CORPUS, "--json"]
    env = {**clean, "SHARDQA_REDIS": cluster.seed()}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=110, check=False)
    assert done.returncode == 4, done.stderr
    return json.loads(done.stdout)


def test_all_are_taken_but_the_unfit(summary: Any) -> None:
    told = [sum(bool(getattr(line, name)) for line in lines()) for name in ("reason", "lost")]
    assert [summary["skipped"], summary["lost"]] == told
    assert summary["textless"]["pictures"] == 2  # one lies in a mail


async def test_answers_of_each_format_are_right_and_their_places_exact(summary: Any, engine: Engine) -> None:
    wrong: list[Any] = []
    for line in FACTS:
        answer = await engine.ask(line.question, corpus=CORPUS, k=5, min_score=0.0)
        place = answer.place.model_dump(mode="json") if answer.place is not None else {}
        same = {other.id for other in lines() if other.words == line.words}  # once without its suffix
        if str(line.passengers) not in (answer.answer or "") or answer.document not in same:
            wrong.append((answer.answer, answer.document, line))
        else:
            assert place == line.place
    assert len(wrong) <= MISSED, wrong


async def test_the_place_is_in_answers_from_the_cache_as_well(summary: Any, engine: Engine) -> None:
    line = next(line for line in FACTS if line.file == "pages.pdf")
    first = await engine.ask(line.question, corpus=CORPUS)
    again = await engine.ask(line.question, corpus=CORPUS)
    assert again.cached
    assert first.place == again.place == again.n_best[0].place
    assert str(again.place) == "p. 3, § Section 3"


async def test_a_document_gives_its_places_back(summary: Any, engine: Engine) -> None:
    document = await engine.documents.get(CORPUS, "pages.pdf")
    assert document is not None
    assert [place.page for _, place in document.places if place.page][-1] == 4
    assert document.origin.endswith("pages.pdf")


async def test_contents_are_kept_and_not_found(summary: Any, engine: Engine) -> None:
    document = await engine.documents.get(CORPUS, "manual.html")
    assert document is not None
    assert "Harbour tales" in document.text
    assert (await engine.search("tales", corpus=CORPUS)).passages == []
