"""Replies that are kept as bytes say what the route says, and no longer than that is true."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.conftest import problem

QUESTION = "Who founded the mill?"
Ask = Callable[..., httpx.Response]
BY_ROUTE = {"Content-Type": "application/json; charset=utf-8"}  # not the plain form
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def ask(http: httpx.Client, buildings: str) -> Ask:
    def ask(headers: dict[str, str] = JSON, **fields: Any) -> httpx.Response:
        body = json.dumps({"question": QUESTION, "corpus": buildings, **fields})
        return http.post("/v1/ask", content=body, headers=headers)

    ask()
    return ask


def untimed(reply: httpx.Response) -> dict[str, Any]:
    """All but the times."""
    found: dict[str, Any] = reply.json()
    return {name: value for name, value in found.items() if name != "timing"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"n_best": 1},
        {"n_best": 20},
        {"min_score": 0.999},
        {"min_score": 0},
        {"answer_when": "sure"},
        {"question": "WHO  founded the mill"},
    ],
)
def test_a_cached_reply_is_the_routes(ask: Ask, fields: dict[str, Any]) -> None:
    first, again, route = ask(**fields), ask(**fields), ask(BY_ROUTE, **fields)
    assert first.json()["cache"] == route.json()["cache"] == "process"
    assert untimed(first) == untimed(again) == untimed(route)
    assert list(first.json()) == list(route.json())
    assert list(first.json()["timing"]) == list(route.json()["timing"])
    assert {*first.headers} == {*route.headers}
    assert again.headers["x-request-id"] != first.headers["x-request-id"]


def test_a_link_gets_the_same(http: httpx.Client, ask: Ask, corpus: str) -> None:
    found = http.get("/v1/ask", params={"q": QUESTION, "corpus": corpus, "n_best": "2"})
    assert untimed(found) == untimed(ask(n_best=2))
    assert len(found.json()["n_best"]) == 2


def test_times_are_of_this_request(ask: Ask) -> None:
    timing = ask().json()["timing"]
    assert 0 < timing["total"] < 1_000
    assert (timing["rank"], timing["read"]) == (0, 0)


def test_a_document_that_goes_takes_its_replies_along(http: httpx.Client, ask: Ask, corpus: str) -> None:
    assert ask().json()["answer"] == "Ada Holm"
    http.delete("/v1/documents/mill", params={"corpus": corpus})
    assert "Ada Holm" not in [candidate["answer"] for candidate in ask().json()["n_best"]]


def test_fresh_passes_cached_replies_by(ask: Ask) -> None:
    assert ask(fresh=True).json()["cache"] is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"k": 0}, "bad_limit"), ({"n_best": 21}, "bad_limit"), ({"min_score": 2}, "bad_limit"), ({"x": 1}, None)],
)
def test_what_is_wrong_is_told_by_the_route(ask: Ask, fields: dict[str, Any], code: str | None) -> None:
    problem(ask(**fields), 422, code or "invalid_request")


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: json.dumps({"question": text}).encode()))
def test_any_body_gets_what_the_route_says(alone: httpx.Client, body: bytes) -> None:
    plain, route = (alone.post("/v1/ask", content=body, headers=headers) for headers in (JSON, BY_ROUTE))
    assert (plain.status_code, plain.json()["code"]) == (route.status_code, route.json()["code"])


def test_cached_replies_are_counted(http: httpx.Client, ask: Ask) -> None:
    def count() -> float:
        line = 'shardqa_ask_seconds_count{cache="process",phase="total"} '
        lines = http.get("/metrics").text.splitlines()
        return next(float(one.removeprefix(line)) for one in lines if one.startswith(line))

    ask()
    before = count()
    for _ in range(3):
        ask()
    assert count() == before + 3
    assert 'route="/v1/ask",status="200"' in http.get("/metrics").text
