"""/v1/search, /v1/explain, questions in batches, and an answer's steps as events."""

import json

import httpx
import pytest

from tests.api.conftest import problem

TEXT = "🦉 The mill was built by Ada Holm in 1871."
QUESTION = "Who built the mill?"


@pytest.fixture
def filled(http: httpx.Client, corpus: str) -> str:
    http.post("/v1/documents", json={"id": "mill", "corpus": corpus, "text": TEXT, "metadata": {"year": 1871}})
    return corpus


def test_a_search_marks_words_by_exact_offsets(http: httpx.Client, filled: str) -> None:
    by_address = http.get("/v1/search", params={"q": QUESTION, "corpus": filled}).json()
    by_body = http.post("/v1/search", json={"question": QUESTION, "corpus": filled, "limit": 1}).json()
    for found in (by_address, by_body):
        (one,) = found["passages"]
        assert (one["document"], one["metadata"]) == ("mill", {"year": 1871})
        assert [TEXT[mark["start"] : mark["end"]] for mark in one["highlights"]] == ["mill", "built"]


def test_an_explanation_has_the_answer_and_its_parts(http: httpx.Client, filled: str) -> None:
    by_address = http.get("/v1/explain", params={"q": QUESTION, "corpus": filled}).json()
    by_body = http.post("/v1/explain", json={"question": QUESTION, "corpus": filled}).json()
    assert by_address["answer"]["answer"] == by_body["spans"][0]["answer"] == "Ada Holm"


def test_a_question_of_a_batch_that_fails_harms_no_other(http: httpx.Client, filled: str) -> None:
    asks = [{"question": QUESTION, "corpus": filled}, {"question": "?"}, {"question": QUESTION, "corpus": "nobody"}]
    results = http.post("/v1/ask/batch", json={"questions": asks}).json()["results"]
    assert [one["status"] for one in results] == [200, 422, 404]
    assert results[0]["answer"]["answer"] == "Ada Holm"
    assert [one["problem"]["code"] for one in results[1:]] == ["empty_question", "unknown_corpus"]
    assert http.post("/v1/ask/batch", json={"questions": []}).status_code == 422
    assert http.post("/v1/ask/batch", json={"questions": asks[:1] * 101}).status_code == 422


def events(reply: httpx.Response) -> list[tuple[str, dict[str, object]]]:
    assert reply.headers["content-type"].startswith("text/event-stream")
    blocks = (block.split("\n") for block in reply.text.strip().split("\n\n"))
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


def test_an_answer_comes_with_its_steps_as_events(http: httpx.Client, filled: str) -> None:
    accept = {"accept": "text/event-stream"}
    question = {"question": QUESTION, "corpus": filled}
    *steps, (name, answer) = events(http.post("/v1/ask", json=question, headers=accept))
    assert [data["step"] for _, data in steps][:3] == ["terms", "rank", "read"]
    assert (name, answer["answer"]) == ("answer", "Ada Holm")
    cached = events(http.get("/v1/ask", params={"q": QUESTION, "corpus": filled}, headers=accept))
    assert [name for name, _ in cached] == ["answer"]


def test_a_fault_before_the_first_step_is_a_problem(http: httpx.Client) -> None:
    reply = http.get("/v1/ask", params={"q": QUESTION, "corpus": "nobody"}, headers={"accept": "text/event-stream"})
    problem(reply, 404, "unknown_corpus")


def test_a_filter_stands_in_the_body_or_as_json_in_the_address(http: httpx.Client, filled: str) -> None:
    good, other = {"metadata": {"year": {"lte": 1871}}}, {"metadata": {"year": 1872}}
    question = {"question": QUESTION, "corpus": filled}
    answer = http.post("/v1/ask", json={**question, "filter": good}).json()
    assert (answer["answer"], answer["metadata"]) == ("Ada Holm", {"year": 1871})
    for path in ("/v1/ask", "/v1/search", "/v1/explain"):
        for filter, is_there in ((good, True), (other, False)):
            by_address = http.get(path, params={"q": QUESTION, "corpus": filled, "filter": json.dumps(filter)}).json()
            by_body = http.post(path, json={**question, "filter": filter}).json()
            for found in (by_address, by_body):
                assert bool(found["n_best" if path == "/v1/ask" else "passages"]) == is_there, path


def test_a_filter_that_is_none_is_a_problem(http: httpx.Client, filled: str) -> None:
    wrong = {"question": QUESTION, "filter": {"metadata": {"year": {"gte": "soon"}}}}
    assert http.post("/v1/ask", json=wrong).json()["code"] == "bad_filter"
    assert http.get("/v1/ask", params={"q": QUESTION, "filter": "{"}).json()["code"] == "bad_filter"
    assert http.post("/v1/search", json={"question": "x", "filter": {"near": 1}}).json()["code"] == "invalid_request"
