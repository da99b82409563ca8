"""The seed corpus keeps its own promises: sizes, verbatim answers, unique ids."""

import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import pytest

SEEDS = Path(__file__).resolve().parents[2] / "seeds"
DOCUMENTS = {path.name: path.read_text(encoding="utf-8") for path in sorted((SEEDS / "documents").glob("*.md"))}


@dataclass(frozen=True)
class Question:
    id: str
    question: str
    answers: list[str]
    document: str | None


QUESTIONS = [
    Question(**json.loads(line)) for line in (SEEDS / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
ANSWERABLE = [question for question in QUESTIONS if question.answers]
UNANSWERABLE = [question for question in QUESTIONS if not question.answers]


def test_there_are_at_least_42_documents() -> None:
    assert len(DOCUMENTS) >= 42


@pytest.mark.parametrize("slug", DOCUMENTS)
def test_a_document_has_200_to_800_words(slug: str) -> None:
    assert 200 <= len(DOCUMENTS[slug].split()) <= 800


@pytest.mark.parametrize("slug", DOCUMENTS)
def test_a_document_begins_with_its_title(slug: str) -> None:
    title, blank, *_ = DOCUMENTS[slug].split("\n", 2)
    assert title.startswith("# ")
    assert title[2:].strip()
    assert blank == ""


def test_titles_are_unique() -> None:
    assert len({text.split("\n", 1)[0] for text in DOCUMENTS.values()}) == len(DOCUMENTS)


def test_documents_have_unix_line_ends_and_no_byte_order_mark() -> None:
    raw = [(SEEDS / "documents" / slug).read_bytes() for slug in DOCUMENTS]
    assert not any(b"\r" in text or text.startswith(b"\xef\xbb\xbf") for text in raw)


def test_there_are_at_least_160_questions() -> None:
    assert len(QUESTIONS) >= 160


def test_at_least_34_questions_are_unanswerable() -> None:
    assert len(UNANSWERABLE) >= 34


def test_an_unanswerable_question_names_no_document() -> None:
    assert all(question.document is None for question in UNANSWERABLE)


def test_question_ids_are_unique() -> None:
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS)


def test_question_texts_are_unique_and_end_with_a_question_mark() -> None:
    texts = [question.question for question in QUESTIONS]
    assert len({text.casefold() for text in texts}) == len(texts)
    assert all(text.endswith("?") and text == text.strip() for text in texts)


@pytest.mark.parametrize("question", ANSWERABLE, ids=lambda question: question.id)
def test_each_answer_occurs_verbatim_in_its_document(question: Question) -> None:
    assert question.document in DOCUMENTS
    for answer in question.answers:
        assert answer.strip() == answer != ""
        assert answer in DOCUMENTS[question.document]


def test_accepted_answers_of_a_question_are_distinct() -> None:
    assert all(len(set(question.answers)) == len(question.answers) for question in QUESTIONS)


def test_every_document_has_a_question() -> None:
    assert {question.document for question in ANSWERABLE} == set(DOCUMENTS)


def test_offsets_are_tried_by_combining_characters_and_astral_characters() -> None:
    text = "".join(DOCUMENTS.values())
    assert any(unicodedata.combining(character) for character in text)
    assert any(ord(character) > 0xFFFF for character in text)
    assert any(not unicodedata.is_normalized("NFC", document) for document in DOCUMENTS.values())
