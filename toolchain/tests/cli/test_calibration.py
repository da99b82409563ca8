"""Candidates, calibration and measuring, by the commands, on a small set of questions and the shipped reader."""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from shardqa.errors import BadData
from shardqa.models import shipped
from shardqa.models.scoring import Scoring
from shardqa_toolchain.cli import candidates
from toolchain.tests import tiny


def run(*words: object) -> str:
    result = tiny.command(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(shipped.folder(), tmp_path_factory.mktemp("readers") / "mine"))


@pytest.fixture(scope="module")
def candidates_file(mine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("candidates")
    run("candidates", mine, "--squad", tiny.question_set(folder / "set.json"), "--out", folder / "candidates.jsonl")
    return folder / "candidates.jsonl"


def test_every_question_has_candidates_with_text_logits_and_rank(candidates_file: Path) -> None:
    records = [json.loads(line) for line in candidates_file.read_text().splitlines()]
    assert {record["id"] for record in records} == {"r1", "r2", "r3", "l1"}
    assert "Basel" in [candidate["text"] for record in records for candidate in record["candidates"]]


def test_each_answerable_question_may_be_asked_without_its_document_too(mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "candidates.jsonl"
    sample = candidates.articles([tiny.question_set(tmp_path / "set.json")], 10, 10, None, 0)
    candidates.write([replace(sample, absent=True)], mine, out, 5, 1, shipped.encoder_folder())
    kinds = {(record["id"], record["kind"]) for record in map(json.loads, out.read_text().splitlines())}
    assert kinds == {(name, kind) for name in ("r1", "r2", "l1") for kind in ("answerable", "absent")} | {
        ("r3", "trick")
    }


def test_calibrate_writes_the_scores_and_the_checksums_hold(mine: Path, candidates_file: Path) -> None:
    report = json.loads(run("calibrate", mine, "--candidates", candidates_file, "--json"))
    assert Scoring.load(shipped.checked_folder(mine)).record() == report["scoring"]


MARKED = {
    "id": "m1", "question": "When was the mill built?", "split": "train",
    "context": "The mill was built in 1742. Nobody knows by whom. It ground rye until 1911.", "spans": [[0, 27]],
}  # fmt: skip


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """Three rows: two to learn from, of which one is not answered, and one whose question is too long to be read."""
    unanswered = {**MARKED, "id": "m2", "question": "Who owns the mill?", "spans": []}
    long = {**MARKED, "id": "m3", "question": "Why? " * 80, "split": "dev"}
    path = tmp_path / "marked.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (MARKED, unanswered, long)))
    return path


def test_weights_of_evidence_outlast_those_of_answers(mine: Path, candidates_file: Path, marked: Path) -> None:
    report = json.loads(run("calibrate-evidence", mine, marked, "--test", marked, "--json"))
    assert report["evidence"] == asdict(Scoring.load(shipped.checked_folder(mine)).evidence)
    assert [(one["file"], one["rows"]) for one in report["outcomes"]] == [("marked.jsonl", 3)]
    run("calibrate", mine, "--candidates", candidates_file, "--json")
    assert report["evidence"] == asdict(Scoring.load(mine).evidence)


def test_evidence_is_measured_without_a_cluster_and_compared(marked: Path) -> None:
    report = json.loads(run("measure-evidence", marked, "--against", shipped.folder(), "--json"))
    scores = report["scores"]["marked.jsonl"]
    assert scores["rows"] == 3
    assert 0 < scores["recall"] <= 50, "half of what is marked belongs to the long question"
    assert report["compared"]["marked.jsonl"] == {"difference": 0, "low": 0, "high": 0}


def test_measure_tells_both_kinds_of_scores_or_without_a_scoring_the_forced_ones(mine: Path, tmp_path: Path) -> None:
    questions = tiny.question_set(tmp_path / "set.json")
    report = json.loads(run("measure", mine, questions, "--json"))
    assert (report["forced"]["questions"], report["with_refusals"]["questions"]) == (3, 4)
    bare = Path(shutil.copytree(mine, tmp_path / "bare"))
    (bare / "scoring.json").unlink()
    report = json.loads(run("measure", bare, questions, "--json"))
    assert report["with_refusals"] is None


def test_only_held_out_articles_are_asked_about(tmp_path: Path) -> None:
    path = tiny.question_set(tmp_path / "set.json")
    assert len(candidates.articles([path], 10, 10, 1.0, 0).questions) == 4
    with pytest.raises(BadData, match=r"none is among the 0\.0% held out"):
        candidates.articles([path], 10, 10, 0.0, 0)
