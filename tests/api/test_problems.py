"""Every error is a problem (RFC 9457) with a code and a way out, whoever raised it."""

import json

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from shardqa import errors
from shardqa.api import faults, problems
from shardqa.api.access import Access
from shardqa.api.metrics import Metrics
from shardqa.api.problems import shown
from shardqa.errors import ShardqaError
from tests.api.conftest import Serve, problem

JSON = {"Content-Type": "application/json"}
ALL_FAULTS = [
    fault
    for module in (errors, faults)
    for fault in vars(module).values()
    if isinstance(fault, type) and issubclass(fault, ShardqaError)
]


def test_every_fault_has_a_title_and_a_way_out_and_no_other_code_has() -> None:
    assert set(problems.TITLES) == {fault.code for fault in ALL_FAULTS}
    assert all(title and remedy for title, remedy in problems.TITLES.values())


def test_an_unknown_address_is_a_problem(alone: httpx.Client) -> None:
    problem(alone.get("/v2/ask"), 404, "no_such_route")


def test_a_browser_sees_a_page_where_nothing_is(alone: httpx.Client) -> None:
    reply = alone.get("/handbook", headers={"Accept": "text/html,application/xhtml+xml"})
    assert (reply.status_code, reply.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "There is nothing at this address" in reply.text


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/v1/ask", "GET, HEAD, POST"), ("/v1/documents/a/b", "DELETE, GET, HEAD, PATCH"), ("/docs", "GET, HEAD")],
)
def test_a_wrong_method_is_told_all_the_right_ones(alone: httpx.Client, path: str, methods: str) -> None:
    reply = alone.put(path, json={})
    problem(reply, 405, "method_not_allowed")
    assert reply.headers["Allow"] == methods


def test_every_wrong_field_is_named(alone: httpx.Client) -> None:
    body = problem(alone.post("/v1/ask", json={}), 422, "invalid_request")
    assert body["errors"] == [
        {"at": "body.question", "message": "Field required", "got": "an object with the fields []"}
    ]
    sent = {"question": 7, "k": "5", "n_best": True, "min_score": "high", "extra": 1}
    body = problem(alone.post("/v1/ask", json=sent), 422, "invalid_request")
    at = [error["at"] for error in body["errors"]]
    assert at == ["body.question", "body.k", "body.n_best", "body.min_score", "body.extra"]


def test_a_refused_value_is_not_sent_back_whole(alone: httpx.Client) -> None:
    reply = alone.post("/v1/ask", json={"question": ["x" * 100_000]})
    problem(reply, 422, "invalid_request")
    assert len(reply.content) < 1_000


def test_a_question_of_a_lone_surrogate_is_refused(alone: httpx.Client) -> None:
    problem(alone.post("/v1/ask", content=b'{"question": "\\ud800"}', headers=JSON), 422, "invalid_request")


@pytest.mark.parametrize("body", [b"", b"{", b'{"question": ', b"\xff\xfe", b"[" * 100_000, b'{"question": "\xff"}'])
def test_a_body_that_is_not_json_is_a_problem(alone: httpx.Client, body: bytes) -> None:
    for path in ("/v1/ask", "/v1/documents"):
        reply = alone.post(path, content=body, headers=JSON)
        assert reply.headers["Content-Type"] == "application/problem+json"
        assert reply.status_code in (400, 422)


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/documents"])
def test_a_form_of_another_site_is_refused(alone: httpx.Client, path: str) -> None:
    text = alone.post(path, content=b'{"question": "a"}', headers={"Content-Type": "text/plain"})
    problem(text, 415, "not_json")
    problem(alone.post(path, data={"question": "a"}), 415, "not_json")


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/v1/ask?q=a&k=many", "query.k"),
        ("GET", "/v1/ask?q=a&limit=3", "this address takes q, corpus, k, n_best, min_score, answer_when, form, fresh"),
        ("POST", "/v1/documents?colpus=mine", "this address takes corpus"),
        ("DELETE", "/v1/documents/a/b?all", "this address takes corpus"),
        ("GET", "/v1/corpora?limit=3", "this address takes none"),
        ("GET", "/v1/ask?q=a&k=3&k=5", "Given 2 times"),
        ("GET", "/v1/ask", "query.q"),  # before the missing cluster
    ],
)
def test_a_wrong_parameter_of_an_address_is_named(alone: httpx.Client, method: str, path: str, message: str) -> None:
    reply = alone.request(method, path, json={} if method == "POST" else None)
    assert message in problem(reply, 422, "invalid_request")["detail"]


def test_every_wrong_parameter_is_named(alone: httpx.Client) -> None:
    body = problem(alone.get("/v1/corpora?a=1&b=2"), 422, "invalid_request")
    assert [error["at"] for error in body["errors"]] == ["query.a", "query.b"]


def test_those_who_probe_may_add_parameters(alone: httpx.Client) -> None:
    assert alone.get("/healthz?probe=1").status_code == alone.get("/metrics?format=text").status_code == 200


def test_a_cluster_that_is_not_there_is_said_and_when_to_come_back(alone: httpx.Client) -> None:
    reply = alone.post("/v1/ask", json={"question": "Who is there?"})
    body = problem(reply, 503, "cluster_unavailable")
    assert "127.0.0.1" in body["detail"]
    assert int(reply.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a" * 90, "a" * 79 + "…"),
        (b"\xff" * 1_000, None),
        (["x" * 1_000] * 3, "a list of 3"),
        ({"b": 1, "a": 2}, "an object with the fields ['a', 'b']"),
        ("\ud800", "\\ud800"),
        (None, "None"),
    ],
)
def test_a_value_is_shown_short_and_printable(value: object, expected: str | None) -> None:
    short = shown(value)
    short.encode()
    assert len(short) <= problems.SHOWN
    assert expected is None or short == expected


async def secretive(scope: Scope, receive: Receive, send: Send) -> None:
    raise ZeroDivisionError("the secret is xylophone")


async def half_done(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise ZeroDivisionError


def test_an_unexpected_fault_keeps_its_cause_to_the_log(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    reply = httpx.get(serve(Access(secretive, Metrics())).url + "/x")
    body = problem(reply, 500, "internal")
    assert "xylophone" not in json.dumps(body)
    assert "the secret is xylophone" in caplog.text
    assert str(reply.headers["X-Request-Id"]) in caplog.text


def test_a_reply_that_broke_off_is_not_taken_for_a_whole_one(serve: Serve) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(serve(Access(half_done, Metrics())).url + "/x")
