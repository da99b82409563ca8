"""Synonyms and pinned answers of a corpus, over HTTP and from files."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from shardqa.cluster.local import LocalCluster
from shardqa.engine.corpus_words import rules_of, with_synonyms
from tests.api.conftest import problem
from tests.conftest import Output

SYNONYMS = """# what people say here, and what the handbook says
pto, paid time off
rto, return to office
wfh => working from home
sla, service level agreement
nda, non-disclosure agreement
hra, health reimbursement account
gc, gas chromatograph
lims, sample register
"""
DOCUMENTS = {
    "paid time off": "Every employee has 24 days of paid time off a year.",
    "return to office": "The return to office begins on the second Monday of March.",
    "working from home": "Working from home is allowed on three days of each week.",
    "service level agreement": "The service level agreement promises a first reply within four hours.",
    "non-disclosure agreement": "The non-disclosure agreement ends five years after the last delivery.",
    "health reimbursement account": "A health reimbursement account receives 600 euros on the first of January.",
    "gas chromatograph": "The gas chromatograph stands in room B12 and is served by Ida Moen.",
    "sample register": "The sample register is kept by the night shift.",
    "leave of absence": "Every employee has ten days of leave of absence a year for care.",
    "office hours": "The office opens at seven, and the last day of the week is Friday.",
    "contract": "A contract of delivery ends two years after its start unless it is renewed.",
    "balance": "The balance stands in room B9 and is served by Tom Reed.",
}
ASKED = {
    "How many days of PTO does an employee have?": "24",
    "When does RTO begin?": "second Monday of March",
    "On how many days is WFH allowed?": "three",
    "What does the SLA promise?": "four hours",
    "When does the NDA end?": "five years",
    "How much does an HRA receive?": "600 euros",
    "Where does the GC stand?": "B12",
    "Who keeps the LIMS?": "night shift",
}
LEAST_GAIN = 3  # of the 8 questions


@pytest.fixture
def handbook(http: httpx.Client, corpus: str) -> str:
    documents = [{"id": name, "title": name.capitalize(), "text": text} for name, text in DOCUMENTS.items()]
    assert http.post("/v1/documents", params={"corpus": corpus}, json=documents).status_code == 200
    return corpus


def right_answers(http: httpx.Client, corpus: str) -> list[str]:
    """The questions that are answered right."""
    replies = {question: http.get("/v1/ask", params={"q": question, "corpus": corpus}).json() for question in ASKED}
    return [question for question, right in ASKED.items() if right in (replies[question]["answer"] or "")]


def test_acronyms_are_answered_once_the_corpus_knows_them(
    http: httpx.Client, handbook: str, cluster: LocalCluster, tmp_path: Path, program: Callable[..., Output]
) -> None:
    before = right_answers(http, handbook)
    file = tmp_path / "synonyms.txt"
    file.write_text(SYNONYMS)
    words = ("corpus", "set", f"synonyms={file}", "--corpus", handbook, "--redis", cluster.seed(), "--json")
    assert program(*words).json == {"corpus": handbook, "synonyms": 8}
    http.put(f"/v1/corpora/{handbook}/words", json=http.get(f"/v1/corpora/{handbook}/words").json())
    after = right_answers(http, handbook)
    print(f"right: {len(before)} of {len(ASKED)} without, {len(after)} with synonyms")
    assert len(after) >= len(before) + LEAST_GAIN, (before, after)
    asked = http.get("/v1/explain", params={"q": "When does RTO begin?", "corpus": handbook}).json()["asked"]
    assert asked == "when does rto begin (return to office)"


def test_a_pinned_question_has_its_place(http: httpx.Client, handbook: str) -> None:
    pin = {"question": "Whom do I call at night?", "document": "sample register", "quote": "the night shift"}
    address, question = f"/v1/corpora/{handbook}/words", {"question": "whom do I call at night", "corpus": handbook}
    assert http.put(address, json={"pins": [pin]}).json()["unmatched"] == []
    answer = http.post("/v1/ask", json=question).json()
    assert (answer["answer"], answer["pinned"], answer["document"]) == ("the night shift", True, "sample register")
    assert answer["start"] == DOCUMENTS["sample register"].index("the night")
    hidden = http.post("/v1/ask", json={**question, "filter": {"title": "Contract"}}).json()
    assert not hidden["pinned"]
    http.post("/v1/documents", json={"corpus": handbook, "id": "sample register", "text": "Nobody keeps it."})
    assert not http.post("/v1/ask", json=question).json()["pinned"]
    assert http.put(address, json={"pins": [pin]}).json()["unmatched"] == [pin["question"]]
    http.put(address, json={})
    assert http.get(address).json() == {"synonyms": [], "pins": [], "keep_files": True}
    problem(http.put(address, json={"synonyms": ["pto"]}), 422, "bad_words")


def test_synonyms_go_one_way_or_both() -> None:
    rules = [rule for line in ("pto, paid time off", "k8s => kubernetes") for rule in rules_of(line)]
    asked = ["how much pto", "paid time off", "is k8s up", "kubernetes", "ptolemy"]
    assert [with_synonyms(text, rules) for text in asked] == [
        "how much pto (paid time off)",
        "paid time off (pto)",
        "is k8s up (kubernetes)",
        "kubernetes",
        "ptolemy",
    ]
