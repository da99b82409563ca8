"""Question files, whole and broken."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from shardqa.errors import BadData
from shardqa_toolchain.squad import Paragraph, SquadQuestion, read


def squad(*questions: dict[str, Any]) -> dict[str, Any]:
    paragraph = {"context": "The Rhine flows.", "qas": list(questions)}
    return {"version": "2.0", "data": [{"title": "Rivers", "paragraphs": [paragraph]}]}


ANSWERED = {
    "id": "q1",
    "question": "What flows?",
    "answers": [{"text": "Rhine", "answer_start": 4}, {"text": "Rhine", "answer_start": 4}],
    "is_impossible": False,
}
UNANSWERED = {"id": "q2", "question": "What sleeps?", "answers": [], "is_impossible": True}


def test_squad_gives_paragraphs_and_their_questions(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(squad(ANSWERED, UNANSWERED)))
    found = read(path)
    assert found.paragraphs == (Paragraph("Rivers/0", "Rivers", "The Rhine flows."),)
    assert found.questions == (
        SquadQuestion("q1", "What flows?", ("Rhine",), "Rivers/0", starts=(4,)),
        SquadQuestion("q2", "What sleeps?", (), "Rivers/0"),
    )


def test_an_answer_whose_place_the_file_omits_starts_at_minus_one(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(squad({"id": "q1", "question": "What flows?", "answers": [{"text": "Rhine"}]})))
    assert read(path).questions[0].starts == (-1,)


def test_a_gzipped_set_reads_the_same(tmp_path: Path) -> None:
    plain, packed = tmp_path / "set.json", tmp_path / "set.json.gz"
    plain.write_text(json.dumps(squad(ANSWERED)))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(plain) == read(packed)


def test_lines_give_questions_alone(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(
        '{"id": "a", "question": "Who?", "answers": ["Ada", "Ada Byron"], "document": "ada"}\n\n'
        '{"id": "b", "question": "Why?", "answers": [], "document": null}\n'
    )
    found = read(path)
    assert found.paragraphs == ()
    assert found.questions == (
        SquadQuestion("a", "Who?", ("Ada", "Ada Byron"), "ada"),
        SquadQuestion("b", "Why?", (), None),
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[]", "list found, an object is needed"),
        ('{"data": {}}', '"data" is dict, list is needed'),
        ('{"data": [{"paragraphs": []}]}', r'data\[0\]: "title" is missing, str is needed'),
        ('{"data": [\n{"title"', "line 2: not JSON"),
        (json.dumps(squad({"id": "q", "question": "?", "answers": ["Rhine"]})), r"answers\[0\]: str found"),
    ],
)
def test_a_broken_set_names_file_and_place(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "set.json"
    path.write_text(content)
    with pytest.raises(BadData, match=rf"set\.json.*{complaint}"):
        read(path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"id": "a"', "not JSON"),
        ('{"id": "a", "question": "Who?", "answers": [7]}', "an answer is 7"),
        ('{"id": "a", "question": "Who?", "answers": [], "document": 7}', '"document" is 7'),
        ('{"id": "a", "answers": []}', '"question" is missing'),
    ],
)
def test_a_broken_line_is_named_by_its_number(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(BadData, match=f"questions.jsonl, line 2: {complaint}"):
        read(path)


def test_a_file_cut_short_is_not_a_whole_gzip_file(tmp_path: Path) -> None:
    path = tmp_path / "set.json.gz"
    path.write_bytes(gzip.compress(json.dumps(squad(ANSWERED)).encode())[:-20])
    with pytest.raises(BadData, match="not a whole gzip file"):
        read(path)


def test_a_file_that_is_not_utf8_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(BadData, match="byte 8: not UTF-8"):
        read(path)
