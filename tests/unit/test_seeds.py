"""The seed corpus keeps its own promises: sizes, verbatim answers, unique ids."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

SEEDS = Path(__file__).resolve().parents[2] / "seeds"
DOCUMENTS = {path.name: path.read_text(encoding="utf-8") for path in sorted((SEEDS / "documents").glob("*.md"))}
QUESTIONS = [json.loads(line) for line in (SEEDS / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
ANSWERABLE = [question for question in QUESTIONS if question["answers"]]
UNANSWERABLE = [question for question in QUESTIONS if not question["answers"]]


def test_there_are_enough_documents_and_questions_of_both_kinds() -> None:
    assert len(DOCUMENTS) >= 42
    assert len(QUESTIONS) >= 160
    assert len(UNANSWERABLE) >= 34


@pytest.mark.parametrize("slug", DOCUMENTS)
def test_a_document_has_200_to_800_words_below_its_title(slug: str) -> None:
    title, blank, *_ = DOCUMENTS[slug].split("\n", 2)
    assert title.startswith("# ")
    assert title[2:].strip()
    assert blank == ""
    assert 200 <= len(DOCUMENTS[slug].split()) <= 800


def test_documents_have_unix_line_ends_and_no_byte_order_mark() -> None:
    raw = [(SEEDS / "documents" / slug).read_bytes() for slug in DOCUMENTS]
    assert not any(b"\r" in text or text.startswith(b"\xef\xbb\xbf") for text in raw)


def test_titles_ids_and_questions_are_unique() -> None:
    assert len({text.split("\n", 1)[0] for text in DOCUMENTS.values()}) == len(DOCUMENTS)
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    assert len({question["question"].casefold() for question in QUESTIONS}) == len(QUESTIONS)
    assert all(len(set(question["answers"])) == len(question["answers"]) for question in QUESTIONS)


def test_a_question_ends_with_a_question_mark() -> None:
    texts = [question["question"] for question in QUESTIONS]
    assert all(text.endswith("?") and text == text.strip() for text in texts)


@pytest.mark.parametrize("question", ANSWERABLE, ids=lambda question: question["id"])
def test_each_answer_occurs_verbatim_in_its_document(question: dict[str, Any]) -> None:
    for answer in question["answers"]:
        assert answer.strip() == answer != ""
        assert answer in DOCUMENTS[question["document"]]


def test_every_document_has_a_question_and_an_unanswerable_one_names_none() -> None:
    assert {question["document"] for question in ANSWERABLE} == set(DOCUMENTS)
    assert all(question["document"] is None for question in UNANSWERABLE)


def test_offsets_are_tried_by_combining_characters_and_astral_characters() -> None:
    text = "".join(DOCUMENTS.values())
    assert any(unicodedata.combining(character) for character in text)
    assert any(ord(character) > 0xFFFF for character in text)
    assert any(not unicodedata.is_normalized("NFC", document) for document in DOCUMENTS.values())
