"""The folder of 200 mixed files, ingested and asked: an answer from each format, with its exact place."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from tests.mixed_files import Expected, Unfit, make

CORPUS = "mixed-files"
MISSED_OF_A_KIND = 2  # of 8: the reader may take the number that a plain sentence says of another ferry
MISSED = 4  # of 192


@pytest.fixture(scope="module")
def made(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Expected], list[Unfit], Any]:
    """What was made, and what `ingest --json` said of it."""
    folder = tmp_path_factory.mktemp("mixed")
    expected, unfit = make(folder)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    command = [sys.executable, "-m", "shardqa.cli", "ingest", str(folder), "--corpus", CORPUS, "--json"]
    env = {**clean, "SHARDQA_REDIS": cluster.seed()}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=110, check=False)
    assert done.returncode == 4, done.stderr
    return expected, unfit, json.loads(done.stdout)


def test_all_are_taken_but_the_unfit(made: tuple[list[Expected], list[Unfit], Any]) -> None:
    expected, unfit, said = made
    assert (said["skipped"], said["lost"]) == (len(unfit), 0)
    assert said["documents"] >= len(expected)


async def test_answers_of_each_format_are_right_and_their_places_exact(
    made: tuple[list[Expected], list[Unfit], Any], engine: Engine
) -> None:
    wrong: dict[str, list[Any]] = {}
    for one in made[0]:
        answer = await engine.ask(one.fact.question, CORPUS, k=5, min_score=0.0)
        place = answer.place.model_dump() if answer.place is not None else {}
        is_right = str(one.fact.passengers) in (answer.answer or "") and answer.document == one.document
        if not is_right:
            wrong.setdefault(one.kind, []).append((answer.answer, answer.document, one))
        else:
            assert place == one.place
    assert {kind: missed for kind, missed in wrong.items() if len(missed) > MISSED_OF_A_KIND} == {}
    assert sum(map(len, wrong.values())) <= MISSED


async def test_the_place_is_in_answers_from_the_cache_as_well(
    made: tuple[list[Expected], list[Unfit], Any], engine: Engine
) -> None:
    one = next(one for one in made[0] if one.kind == "pdf")
    first = await engine.ask(one.fact.question, CORPUS)
    again = await engine.ask(one.fact.question, CORPUS)
    assert again.cached
    assert first.place == again.place == again.n_best[0].place
    assert str(again.place) == "p. 3, § Section 3"


async def test_a_document_gives_its_places_back(made: tuple[list[Expected], list[Unfit], Any], engine: Engine) -> None:
    one = next(one for one in made[0] if one.kind == "pdf")
    document = await engine.get(CORPUS, one.document)
    assert document is not None
    assert [place.page for _, place in document.places if place.page][-1] == 4
    assert document.origin.endswith(one.document)
