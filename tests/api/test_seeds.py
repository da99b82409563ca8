"""The questions that the page offers for the shipped corpus are right, so that a stranger's first click is."""

import json
import re
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]


def offered() -> list[str]:
    source = (ROOT / "api/page/ask.js").read_text()
    block = re.search(r"const EXAMPLES = \{\s*seeds: (\[.*?\]),\s*\}", source, re.DOTALL)
    assert block is not None
    questions: list[str] = json.loads(re.sub(r",\s*\]", "]", block[1]))
    return questions


def known() -> dict[str, list[str]]:
    lines = (ROOT / "seeds/questions.jsonl").read_text().splitlines()
    return {one["question"]: one["answers"] for one in map(json.loads, lines)}


@pytest.fixture
def seeded(http: httpx.Client, corpus: str) -> str:
    documents = []
    for path in sorted((ROOT / "seeds/documents").glob("*.md")):
        title, _, text = path.read_text().partition("\n")
        documents.append({"id": path.name, "corpus": corpus, "title": title.strip("# "), "text": text.strip()})
    assert http.post("/v1/documents", json=documents).json()["refused"] == 0
    return corpus


def test_the_offered_questions_are_answered_right_and_the_last_one_is_not(http: httpx.Client, seeded: str) -> None:
    answers = known()
    for question in offered():
        answer = http.get("/v1/ask", params={"q": question, "corpus": seeded}).json()
        right = answers[question]
        if right:
            assert any(answer["answer"] in one or one in answer["answer"] for one in right), question
        else:
            assert answer["no_answer"], question
    assert answers[offered()[-1]] == []
