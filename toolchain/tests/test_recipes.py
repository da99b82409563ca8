"""Rows that recipes make by rule: what they say, and what they must not have seen."""

import importlib
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ANSWER, ELSE = "The bursar is Tamaz Beridze.", "Eteri Lomidze sings."


@pytest.fixture(scope="module")
def learning() -> Any:
    sys.path.insert(0, str(ROOT / "toolchain" / "recipes"))
    yield importlib.import_module("learning")
    sys.path.remove(str(ROOT / "toolchain" / "recipes"))


@pytest.fixture
def rows(learning: Any) -> Any:
    """Rows without the files of a training."""
    from toolchain.tests.tiny import TOKENIZER

    own = learning.Rows.__new__(learning.Rows)
    own.tokenizer, own.dice, own._tokens = TOKENIZER, random.Random(1), {}
    return own


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text.lower()))


def test_patterns_name_nobody_and_no_post_that_a_test_asks_for(learning: Any) -> None:
    drawn = words(" ".join([*learning.ROLES, *learning.FIRST, *learning.LAST]))
    for path in filter(Path.is_file, (ROOT / "tests").rglob("*")):
        if path.suffix != ".pyc":
            assert not drawn & words(path.read_text(encoding="utf-8", errors="ignore")), path


def test_a_row_marks_span_and_sentence_of_the_answer(rows: Any) -> None:
    record = {"text": f"{ELSE} {ANSWER}", "title": "", "sentences": [(0, 20), (21, 21 + len(ANSWER))]}
    row = rows.row({"question": "Who is the bursar?", "sentences": [1], "span": (35, 48)}, record, False)
    said = rows.tokenizer._pieces.decode
    assert said(row.input_ids[row.start : row.end + 1].tolist()) == "tamaz beridze"
    assert said(row.input_ids[row.evidence == 1].tolist()) == "the bursar is tamaz beridze."


def test_a_passage_too_long_keeps_the_part_that_answers(rows: Any) -> None:
    text = f"{ELSE} " * 60 + ANSWER
    place = text.index(ANSWER), len(text)
    record = {"text": text, "title": "", "sentences": [place]}
    row = rows.row({"question": "Who is the bursar?", "sentences": [0], "span": place}, record, False)
    assert len(row) == rows.row({"question": "Who is the bursar?"}, record, False).input_ids.size
    assert row.start > 0
    assert row.end - row.start == row.evidence.tolist().count(1) - 1


def test_a_pattern_answers_with_the_holder_of_the_post(rows: Any) -> None:
    drawn = [rows.of_pattern() for _ in range(40)]
    assert {row.answers for row in drawn} == {True, False}
    assert all((row.start > 0) == row.answers for row in drawn)


@pytest.fixture
def many(learning: Any, rows: Any) -> Any:
    """Rows in many languages, without the files of a training."""
    recipe = importlib.import_module("reader-m1")
    own = recipe.ManyRows.__new__(recipe.ManyRows)
    own.english, own.dice = rows, rows.dice
    return own


def test_what_a_passage_leaves_out_has_no_answer_in_its_row(many: Any) -> None:
    absent: dict[str, Any] = {"kind": "absent", "question": "Who is the sexton?", "sentences": [], "span": None}
    record = {"text": ANSWER, "title": "", "sentences": [(0, len(ANSWER))], "questions": [absent]}
    row = many.of_asked([record])
    assert (row.start, row.end) == (0, 0)
    assert not (row.evidence == 1).any()


def test_a_set_with_a_question_a_line_is_read_as_squads(many: Any, tmp_path: Path) -> None:
    answers = {"text": ["Tamaz Beridze"], "answer_start": [14]}
    line = {"question_id": "1", "question": "Who?", "context": ANSWER, "title": "Posts", "answers": answers}
    (tmp_path / "test.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(line)[:20], encoding="utf-8")
    (record,) = importlib.import_module("reader-m1").set_records(tmp_path)
    assert (record["text"], record["title"]) == (ANSWER, "Posts")
    assert record["questions"] == [{"kind": "squad", "question": "Who?", "span": (14, 27), "sentences": [0]}]
