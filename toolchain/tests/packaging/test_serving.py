"""Events of serverless platforms: questions get exact answers, everything else an error that says why."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardqa.errors import DocumentTooLarge, QuestionTooLong
from shardqa.models import shipped
from shardqa_toolchain.packaging.answering import MAX_CHARACTERS, MAX_PASSAGES, Answerer
from shardqa_toolchain.packaging.serving import Server

PASSAGE = "The biologist Marta Ilves, who planned the reed beds, counted 4,800 adult fish."
QUESTION = "Who planned the reed beds?"
ANSWER = "Marta Ilves"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def server() -> Server:
    return Server(Answerer(shipped.folder()))


def code_of(reply: dict[str, Any]) -> str:
    return str(reply["error"]["code"])


def test_a_question_gets_the_words_of_the_passage_with_their_place(server: Server) -> None:
    reply = server.event({"question": QUESTION, "passage": PASSAGE})
    assert reply["answer"] == ANSWER == PASSAGE[reply["start"] : reply["end"]]
    assert 0 < reply["score"] < 1
    assert reply["no_answer"] is False


def test_a_passage_that_does_not_say_gets_no_answer(server: Server) -> None:
    reply = server.event({"question": "Who wrote Hamlet?", "passage": "Ferries leave the pier at nine."})
    assert reply["no_answer"] is True
    assert reply["answer"] is reply["start"] is reply["end"] is None


def test_of_several_passages_the_one_that_answers_is_named(server: Server) -> None:
    reply = server.event({"question": QUESTION, "passages": ["Ferries leave at nine.", PASSAGE]})
    assert (reply["passage"], reply["answer"]) == (1, ANSWER)


def test_what_stands_at_the_end_of_a_long_passage_is_read(server: Server) -> None:
    text = "The ferry left the pier on time and came back at night. " * 120 + PASSAGE
    reply = server.event({"question": QUESTION, "passage": text})
    assert text[reply["start"] : reply["end"]] == reply["answer"]
    assert ANSWER in reply["answer"]


def test_places_count_characters_after_any_unicode(server: Server) -> None:
    text = "🐟🐟 Přístav, 港, e\u0301. " + PASSAGE
    reply = server.event({"question": QUESTION, "passage": text})
    assert text[reply["start"] : reply["end"]] == reply["answer"] == ANSWER


def test_an_http_event_is_answered_as_http(server: Server) -> None:
    body = json.dumps({"question": QUESTION, "passage": PASSAGE})
    for event in (
        {"version": "2.0", "body": body},
        {"body": base64.b64encode(body.encode()).decode(), "isBase64Encoded": True},
    ):
        reply = server.event(event)
        assert reply["statusCode"] == 200
        assert json.loads(reply["body"])["answer"] == ANSWER


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "text",
        {},
        {"question": QUESTION},
        {"question": None, "passage": PASSAGE},
        {"question": QUESTION, "passage": 7},
        {"question": QUESTION, "passage": PASSAGE, "passages": [PASSAGE]},
        {"question": QUESTION, "passages": PASSAGE},
        {"question": QUESTION, "passages": [PASSAGE, None]},
        {"question": "\ud800", "passage": PASSAGE},
    ],
)
def test_an_event_of_another_form_is_told_so(server: Server, event: object) -> None:
    assert code_of(server.event(event)) == "bad_data"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"question": " ?? ", "passage": PASSAGE}, "empty_question"),
        ({"question": "why " * 200, "passage": PASSAGE}, "question_too_long"),
        ({"question": QUESTION, "passage": " \n"}, "bad_document"),
        ({"question": QUESTION, "passage": "\ud800"}, "bad_document"),
        ({"question": QUESTION, "passages": []}, "bad_limit"),
        ({"question": QUESTION, "passages": [PASSAGE] * (MAX_PASSAGES + 1)}, "bad_limit"),
        ({"question": QUESTION, "passage": "a" * (MAX_CHARACTERS + 1)}, "document_too_large"),
    ],
)
def test_a_question_that_cannot_be_read_is_told_why(server: Server, event: object, code: str) -> None:
    assert code_of(server.event(event)) == code


@pytest.mark.parametrize(
    "event",
    [
        {"body": "{", "isBase64Encoded": False},
        {"body": None},
        {"body": "[" * 100_000},
        {"body": "no base64!", "isBase64Encoded": True},
        {"body": "/w==", "isBase64Encoded": True},
        {"requestContext": {"http": {"method": "GET"}}},
        {"body": "\ud800"},
    ],
)
def test_an_http_body_that_is_no_question_is_told_so_as_http(server: Server, event: object) -> None:
    reply = server.event(event)
    assert reply["statusCode"] == 422
    assert code_of(json.loads(reply["body"])) == "bad_data"


def test_faults_keep_their_http_status(server: Server) -> None:
    long = json.dumps({"question": "why " * 200, "passage": PASSAGE}).encode()
    large = json.dumps({"question": QUESTION, "passage": "a" * (MAX_CHARACTERS + 1)}).encode()
    assert server.http("POST", long)[0] == QuestionTooLong.status
    assert server.http("POST", large)[0] == DocumentTooLarge.status


def test_only_post_is_answered_over_http(server: Server) -> None:
    status, reply = server.http("GET", b"")
    assert (status, code_of(reply)) == (405, "method_not_allowed")


def test_a_passage_without_words_gets_no_answer(server: Server) -> None:
    reply = server.event({"question": QUESTION, "passage": "\u200b\u200b"})
    assert (reply["no_answer"], reply["score"]) == (True, 0.0)


@settings(max_examples=100)
@given(json_values)
def test_no_event_ends_the_function(server: Server, event: object) -> None:
    json.dumps(server.event(event))


@settings(max_examples=20)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_an_answer_is_always_the_text_at_its_place(server: Server, text: str) -> None:
    reply = server.event({"question": QUESTION, "passage": text})
    if "error" not in reply and reply["answer"] is not None:
        assert text[reply["start"] : reply["end"]] == reply["answer"]
