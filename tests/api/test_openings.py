"""The routes that a server has where it is told so: OpenAI's chat, feedback, questions asked."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from shardqa.cluster.local import LocalCluster
from shardqa.config import Settings
from tests.api.conftest import Fields, OpenPage, Put, Server, StartApi, problem, running_api

MILL = "Ada Holm built the mill in 1871."
OLD = "It was sold in 1902."


@pytest.fixture(scope="module")
def open_api(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("open")
    with running_api(folder, redis=cluster.seed(), timeout=30, http_openings="openai,feedback") as server:
        yield server


@pytest.fixture
def api(open_api: Server, corpus: str) -> Server:
    with open_api.client() as http:
        document = {"id": "a mill", "text": f"{MILL} {OLD}", "title": "The mill", "metadata": {"year": 1871}}
        assert http.post(f"/v1/documents?corpus={corpus}", json=document).status_code == 201
    return open_api


def chat(corpus: str, question: object, **others: object) -> Fields:
    messages = [{"role": "system", "content": "x"}, {"role": "user", "content": question}]
    return {"model": corpus, "messages": messages, **others}


def test_a_chat_is_answered_in_the_documents_own_words_with_citations(api: Server, corpus: str) -> None:
    with api.client() as http:
        assert corpus in [one["id"] for one in http.get("/v1/models").json()["data"]]
        body = http.post("/v1/chat/completions", json=chat(corpus, "Who built the mill?", temperature=1)).json()
        message = body["choices"][0]["message"]
        assert message["content"].startswith(MILL)
        cited = message["annotations"][0]["url_citation"]
        assert message["content"][cited["start_index"] : cited["end_index"]].startswith(MILL)
        assert http.get(cited["url"]).json()["id"] == "a mill"
        parts = [{"type": "text", "text": "zzz?"}]
        nothing = http.post("/v1/chat/completions", json=chat(corpus, parts)).json()["choices"][0]["message"]
        assert (nothing["content"], nothing["annotations"]) == ("No answer was found in the documents.", [])
        problem(http.post("/v1/chat/completions", json=chat("nowhere", "Who?")), 404, "unknown_corpus")


def test_a_chat_comes_as_events_where_that_is_wanted(api: Server, corpus: str) -> None:
    with api.client() as http:
        text = http.post("/v1/chat/completions", json=chat(corpus, "Who built the mill?", stream=True)).text
    *chunks, end = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    deltas = [json.loads(chunk)["choices"][0] for chunk in chunks]
    assert (deltas[0]["delta"]["content"][: len(MILL)], deltas[-1]["finish_reason"], end) == (MILL, "stop", "[DONE]")


def test_what_readers_say_is_what_an_evaluation_asks(api: Server, cluster: LocalCluster, corpus: str) -> None:
    def evaluated() -> Fields:
        words = ["eval", "ask", "--from-feedback", "--corpus", corpus, "--redis", cluster.seed(), "--json"]
        command = [sys.executable, "-m", "shardqa_toolchain", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return dict(json.loads(done.stdout))

    assert "nobody said" in evaluated()["detail"]
    with api.client() as http:
        for answers in (["Tom Reed"], ["Ada Holm"]):
            said = {"question": "Who built the mill?", "corpus": corpus, "answers": answers, "document": "a mill"}
            assert http.post("/v1/feedback", json=said).status_code == 204
    result = evaluated()
    assert (result["questions"], result["right"]) == (1, 100.0), "the last word counts"


def test_the_pages_thumbs_tell_the_server(api: Server, corpus: str, open_page: OpenPage) -> None:
    page = open_page(api, f"/?corpus={corpus}&q=Who built the mill?")
    with page.expect_response("**/v1/feedback") as told:
        page.get_by_role("button", name="Right", exact=True).click()
    assert told.value.status == 204


def test_a_server_has_them_only_where_it_is_told_so(start_api: StartApi, cluster: LocalCluster) -> None:
    with start_api(redis=cluster.seed()).client() as http:
        assert {http.post(path, json={}).status_code for path in ("/retrieval", "/v1/feedback")} == {404}
    with pytest.raises(ValidationError, match="'dity' is no opening; there are openai, feedback, questions"):
        Settings(http_openings="dity")


def test_questions_of_a_corpus_are_listed_the_refused_first(
    cluster: LocalCluster, start_api: StartApi, put: Put, corpus: str, open_page: OpenPage
) -> None:
    put(MILL, id="mill")
    server = start_api(redis=cluster.seed(), timeout=30, http_openings="questions")
    with server.client() as http:
        for question in ("Who built the mill?", "How deep is the well?", "How deep is the well?"):
            assert http.post("/v1/ask", json={"question": question, "corpus": corpus, "fresh": True}).status_code == 200
        listed = http.get(f"/v1/corpora/{corpus}/questions").json()["questions"]
        page = open_page(server, f"/corpus/{corpus}")
        page.get_by_role("link", name="How deep is the well?").wait_for()
        assert [(one["question"], one["refused"], one["times"]) for one in listed] == [
            ("How deep is the well?", True, 2),
            ("Who built the mill?", False, 1),
        ]
        http.delete(f"/v1/corpora/{corpus}")
        assert http.get(f"/v1/corpora/{corpus}/questions").json() == {"questions": []}
