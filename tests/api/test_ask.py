"""The whole way over HTTP: documents in, questions asked, answers with their exact places, corpora dropped."""

import json
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from tests.api.conftest import MILL, TOWER, Fields, Put, StartApi, cluster_client, problem, wait_for_status
from tests.nodes import free_port, wait_until

Ask = Callable[..., Fields]


@pytest.fixture
def ask(http: httpx.Client, buildings: str) -> Ask:
    """Asks about the mill and the tower."""

    def ask(question: str, **fields: Any) -> Fields:
        reply = http.post("/v1/ask", json={"question": question, "corpus": buildings, **fields})
        assert reply.status_code == 200, reply.text
        answer: Fields = reply.json()
        return answer

    return ask


def test_a_question_is_answered_with_its_exact_place(ask: Ask, http: httpx.Client, corpus: str) -> None:
    answer = ask("Who founded the mill?")
    document = http.get("/v1/documents/mill", params={"corpus": corpus}).json()
    assert answer["answer"] == "Ada Holm"
    assert document["text"] == MILL
    assert MILL[answer["start"] : answer["end"]] == "Ada Holm"
    passage = answer["passage"]
    assert passage[answer["start"] - answer["passage_start"] : answer["end"] - answer["passage_start"]] == "Ada Holm"
    assert (answer["document"], answer["title"], answer["no_answer"]) == ("mill", "The mill", False)


def test_every_candidate_is_cut_from_its_document(ask: Ask) -> None:
    texts = {"mill": MILL, "tower": TOWER}
    candidates = ask("What happened in 1904?", n_best=20)["n_best"]
    assert len(candidates) > 1
    for one in candidates:
        assert texts[one["document"]][one["start"] : one["end"]] == one["answer"]
        assert 0 <= one["score"] <= 1


def test_what_the_documents_do_not_say_is_not_answered(ask: Ask) -> None:
    answer = ask("What is the capital of Mongolia?")
    assert (answer["no_answer"], answer["answer"], answer["document"]) == (True, None, None)
    assert (answer["n_best"], answer["parts"]) == ([], [])


def test_the_parts_of_an_answer_are_exact_excerpts_that_hold_it(ask: Ask) -> None:
    answer = ask("Who founded the mill?")
    assert any(one["start"] <= answer["start"] and answer["end"] <= one["end"] for one in answer["parts"])
    for one in answer["parts"]:
        assert MILL[one["start"] : one["end"]] == one["text"]
        assert (one["document"], one["title"], one["place"]) == ("mill", "The mill", None)
        assert 0 <= one["score"] <= 1
    assert [one["start"] for one in answer["parts"]] == sorted(one["start"] for one in answer["parts"])


def test_where_no_answer_is_sure_the_parts_are_the_best_sentences(ask: Ask) -> None:
    answer = ask("Who built the mill and the tower?", min_score=1)
    texts = {"mill": MILL, "tower": TOWER}
    assert answer["no_answer"]
    assert 1 <= len(answer["parts"]) <= 3
    assert all(texts[one["document"]][one["start"] : one["end"]] == one["text"] for one in answer["parts"])
    scores = [one["score"] for one in answer["parts"]]
    assert scores == sorted(scores, reverse=True)
    assert ask("Who built the mill and the tower?", min_score=1)["parts"] == answer["parts"], "kept with it"


def test_a_minimum_score_turns_an_answer_into_none(ask: Ask) -> None:
    assert ask("Who founded the mill?", min_score=0)["answer"] == "Ada Holm"
    answer = ask("Who founded the mill?", min_score=1)
    assert answer["no_answer"]
    assert answer["n_best"][0]["answer"] == "Ada Holm"


def test_the_second_time_is_cached_and_fresh_passes_the_cache_by(ask: Ask) -> None:
    first = ask("Who founded the mill?")
    second = ask("  who FOUNDED the mill ")
    assert (first["cached"], second["cached"]) == (False, True)
    assert (second["answer"], second["start"]) == (first["answer"], first["start"])
    assert ask("Who founded the mill?", fresh=True)["cached"] is False


def test_the_times_add_up_and_the_shards_are_named(ask: Ask) -> None:
    answer = ask("Who founded the mill?")
    timing = answer["timing"]
    assert 0 < timing["terms"] + timing["rank"] + timing["read"] <= timing["total"]
    assert answer["n_best"][0]["shard"] in {shard["tag"] for shard in answer["shards"]}
    assert (answer["partial"], answer["failed"]) == (False, [])


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"question": ""}, 422, "empty_question"),
        ({"question": " ?! "}, 422, "empty_question"),
        ({"question": "why " * 400_000}, 422, "question_too_long"),
        ({"question": "Who?", "k": 0}, 422, "bad_limit"),
        ({"question": "Who?", "k": 10_000}, 422, "bad_limit"),
        ({"question": "Who?", "n_best": 21}, 422, "bad_limit"),
        ({"question": "Who?", "min_score": 1.5}, 422, "bad_limit"),
        ({"question": "Who?", "corpus": "no such corpus"}, 422, "bad_corpus_name"),
        ({"question": "Who?", "corpus": "nobody-made-this"}, 404, "unknown_corpus"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_question_that_cannot_be_asked_is_told_why(
    http: httpx.Client, fields: Fields, status: int, code: str
) -> None:
    problem(http.post("/v1/ask", json=fields), status, code)


def test_a_question_of_any_characters_is_safe(ask: Ask) -> None:
    for question in ("\x00\x01 what", "{b0001}:who?", "水 'or' 1=1; FLUSHALL\r\n", "𝕨ho 👩‍👩‍👧"):
        assert ask(question)["question"] == question


@pytest.mark.parametrize("fields", [{"id": "tower"}, {}], ids=["by its id", "by its text"])
def test_an_equal_document_is_not_written_again(put: Put, fields: dict[str, str]) -> None:
    first, second = put(TOWER, **fields), put(TOWER, **fields)
    assert (first.status_code, first.json()["changed"]) == (201, True)
    assert (second.status_code, second.json()["changed"]) == (200, False)
    assert first.json()["document"] == second.json()["document"]


@pytest.mark.parametrize("name", ["a/b/c", "a b", "ключ", "水/🌾", "100%", "x?y#z", "{tag}", "a:b:7", "trailing/"])
def test_any_id_finds_its_document(http: httpx.Client, corpus: str, put: Put, name: str) -> None:
    put(TOWER, id=name, source="https://example.org/tower", metadata={"pages": 3, "名": ["x"]})
    address = f"/v1/documents/{quote(name, safe='')}"
    found = http.get(address, params={"corpus": corpus}).json()
    assert (found["id"], found["text"], found["metadata"]) == (name, TOWER, {"pages": 3, "名": ["x"]})
    assert http.delete(address, params={"corpus": corpus}).status_code == 204
    problem(http.get(address, params={"corpus": corpus}), 404, "unknown_document")
    problem(http.delete(address, params={"corpus": corpus}), 404, "unknown_document")


def test_a_list_tells_the_outcome_of_each(http: httpx.Client, corpus: str) -> None:
    documents: list[Any] = [
        {"id": "good", "corpus": corpus, "text": TOWER},
        {"id": "empty", "corpus": corpus, "text": " \n"},
        {"id": "good", "corpus": corpus, "text": MILL},
        {"id": "x" * 600, "corpus": corpus, "text": MILL},
        {"id": "elsewhere", "corpus": "Not a name", "text": MILL},
        {"id": "wrong", "text": 7, "size": 1},
        "not even an object",
    ]
    reply = http.post("/v1/documents", json=documents)
    outcomes = reply.json()
    assert reply.status_code == 207
    assert (outcomes["taken"], outcomes["refused"]) == (1, 6)
    codes = [one.get("problem", {}).get("code") for one in outcomes["results"]]
    expected = ["bad_document", "duplicate_document", "bad_document_id", "bad_corpus_name", *["invalid_request"] * 2]
    assert codes == [None, *expected]
    found = http.get("/v1/documents/good", params={"corpus": corpus})
    assert found.json()["text"] == TOWER


def nested(levels: int) -> Fields:
    """Objects within objects."""
    found: Fields = {}
    for _ in range(levels - 1):
        found = {"in": found}
    return found


def test_one_document_of_a_list_that_is_too_deep_leaves_the_others_alone(http: httpx.Client, corpus: str) -> None:
    sent = [{"id": f"n{n}", "corpus": corpus, "text": TOWER, "metadata": nested(n)} for n in (1, 32, 33, 260, 900)]
    sent.append({"id": "large", "corpus": corpus, "text": TOWER, "metadata": {"a": "x" * 65_536}})
    outcomes = http.post("/v1/documents", json=sent).json()
    codes = [one.get("problem", {}).get("code") for one in outcomes["results"]]
    assert codes == [None, None, *["bad_document"] * 4]
    for n in (1, 32):
        reply = http.get(f"/v1/documents/n{n}", params={"corpus": corpus})
        assert (reply.status_code, reply.json()["metadata"]) == (200, nested(n))


def test_metadata_of_another_writer_that_is_too_deep_leaves_the_document_readable(
    http: httpx.Client, corpus: str, cluster: LocalCluster
) -> None:
    with cluster_client(cluster) as client:
        client.hset(keys.doc(corpus, "deep"), mapping={"text": TOWER, "metadata": json.dumps(nested(900))})
    reply = http.get("/v1/documents/deep", params={"corpus": corpus})
    assert (reply.status_code, reply.json()["text"], reply.json()["metadata"]) == (200, TOWER, {})


def test_the_corpus_of_the_address_is_that_of_documents_that_name_none(http: httpx.Client, corpus: str) -> None:
    address, other = f"/v1/documents?corpus={corpus}", f"{corpus}-other"
    listed = http.post(address, json=[{"id": "a", "text": MILL}, {"id": "b", "corpus": other, "text": MILL}])
    single = http.post(address, json={"id": "c", "text": MILL})
    outcomes = [result["ingested"] for result in listed.json()["results"]] + [single.json()]
    assert [(one["document"], one["corpus"]) for one in outcomes] == [("a", corpus), ("b", other), ("c", corpus)]


@pytest.mark.parametrize("sent", [b"[]", b"7", b'"text"', b"null", b'{"text": "\\ud800"}'])
def test_what_is_no_document_is_refused(http: httpx.Client, sent: bytes) -> None:
    reply = http.post("/v1/documents", content=sent, headers={"Content-Type": "application/json"})
    problem(reply, *((422, "bad_limit") if sent == b"[]" else (400, "bad_json")))


def test_a_document_past_the_bound_is_refused(put: Put) -> None:
    problem(put("word " * 10_000_001, id="huge"), 413, "document_too_large")


def test_a_title_of_megabytes_is_refused_and_leaves_nothing(http: httpx.Client, corpus: str, put: Put) -> None:
    reply = problem(put("The mill ground rye.", id="titled", title="mill " * 4_000_000), 422, "bad_document")
    assert "its title has 20,000,000 bytes, more than 512" in reply["detail"]
    assert http.get("/v1/documents/titled", params={"corpus": corpus}).status_code == 404
    problem(put("word " * 14_000_000, id="huger"), 413, "body_too_large")


def test_a_corpus_is_listed_with_its_sizes_once_it_has_a_document(http: httpx.Client, corpus: str, put: Put) -> None:
    def listed() -> Fields:
        return next(one for one in http.get("/v1/corpora").json()["corpora"] if one["name"] == corpus)

    put(TOWER)
    before = listed()
    put(MILL)
    after = listed()
    assert (before["documents"], after["documents"]) == (1, 2)
    assert after["characters"] == len(TOWER) + len(MILL)
    assert after["epoch"] != before["epoch"]


def fill(http: httpx.Client, corpus: str, count: int) -> None:
    sent = [{"id": f"n{n}", "text": f"Mill {n} is old.", "metadata": {"n": n}} for n in range(count)]
    assert http.post("/v1/documents", params={"corpus": corpus}, json=sent).json()["taken"] == count


def test_a_dropped_corpus_is_gone_for_questions_at_once_and_then_for_good(http: httpx.Client, corpus: str) -> None:
    fill(http, corpus, 5)
    assert http.get(f"/v1/corpora/{corpus}").json()["corpus"]["documents"] == 5
    reply = http.delete(f"/v1/corpora/{corpus}")
    assert (reply.status_code, reply.json()["documents"]) == (202, 5)
    assert reply.headers["location"] == f"/v1/corpora/{corpus}"
    assert http.get("/v1/ask", params={"q": "Which mill?", "corpus": corpus}).json()["code"] == "unknown_corpus"
    wait_until(lambda: http.get(f"/v1/corpora/{corpus}").status_code == 404, "it is gone")
    assert http.delete(f"/v1/corpora/{corpus}").json()["code"] == "unknown_corpus"
    assert http.get("/v1/documents", params={"corpus": corpus}).json()["code"] == "unknown_corpus"


def test_questions_and_runs_of_models_are_measured(ask: Ask, http: httpx.Client) -> None:
    ask("Who founded the mill?")
    ask("Who founded the mill?")
    runs = re.compile(r'^shardqa_model_runs_total{model="model_[^"]+",node="127.0.0.1:\d+"} [1-9]', re.MULTILINE)
    wait_until(lambda: runs.search(http.get("/metrics").text), "workers say what they ran, once a second")
    metrics = http.get("/metrics").text
    assert 'shardqa_ask_seconds_count{cache="none",phase="read"}' in metrics
    assert 'shardqa_ask_seconds_count{cache="process",phase="total"}' in metrics
    assert 'shardqa_answers_total{outcome="answered",partial="false"}' in metrics
    assert "shardqa_cluster_connected 1.0" in metrics
    assert 'shardqa_model_run_seconds_bucket{le="+Inf",model="model_' in metrics


def forwarding(port: int, target: int) -> socket.socket:
    """Passes the bytes of one port on to another, until the listener is closed."""
    listener = socket.create_server(("127.0.0.1", port))

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, far = listener.accept()[0], socket.create_connection(("127.0.0.1", target))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=copy, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError), sink:
        while data := source.recv(65536):
            sink.sendall(data)


def test_an_api_that_started_first_finds_the_cluster_later(cluster: LocalCluster, start_api: StartApi) -> None:
    late_port = free_port()
    server = start_api(redis=f"127.0.0.1:{late_port}")
    with server.client() as client:
        assert client.get("/readyz").status_code == 503
        with forwarding(late_port, int(cluster.seed().rpartition(":")[2])):
            assert wait_for_status(client, "/readyz", 200).json()["status"] == "ready"
