"""The API while its cluster breaks: shards that end, workers that die, load past the limit."""

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from shardqa.cluster import local, processes

from .conftest import Server, wait_for_status  # noqa: TID251 (this package is tests/api)
from .test_problems import problem  # noqa: TID251 (this package is tests/api)

if TYPE_CHECKING:
    from shardqa.cluster.local import LocalCluster

HOUSES = 60  # documents, so that every shard has some


def houses(corpus: str) -> list[dict[str, Any]]:
    return [
        {"id": f"house-{n}", "corpus": corpus, "text": f"House {n} of the old street was built by mason {n * 37}."}
        for n in range(HOUSES)
    ]


def test_a_shard_that_ended_makes_answers_partial_and_the_api_degraded(
    start_cluster: Callable[..., "LocalCluster"], start_api: Callable[..., Server]
) -> None:
    cluster = start_cluster(shards=3)
    with start_api(redis=cluster.seed(), timeout=20).client() as client:
        assert client.post("/v1/documents", json=houses("street")).json()["taken"] == HOUSES
        ask = {"question": "Who built a house of the old street?", "corpus": "street", "k": 20}
        assert client.post("/v1/ask", json=ask).json()["partial"] is False
        processes.kill(cluster.state.nodes[1].process)  # type: ignore[arg-type]
        partial = client.post("/v1/ask", json={**ask, "fresh": True}).json()
        assert partial["partial"] is True
        assert [name.rpartition(":")[2] for name in partial["failed"]] == [str(cluster.state.nodes[1].port)]
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        outcomes = client.post("/v1/documents", json=houses("street-2")).json()
        codes = {one["problem"]["code"] for one in outcomes["results"] if "problem" in one}
        assert codes == {"cluster_unavailable"}
        assert 0 < outcomes["refused"] < HOUSES
        local.stop(cluster.data)
        problem(client.post("/v1/ask", json={**ask, "fresh": True}), 503, "cluster_unavailable")
        assert client.get("/healthz").status_code == 200
        problem(wait_for_status(client, "/readyz", 503), 503, "cluster_unavailable")


def test_more_questions_than_the_limit_are_refused_and_none_is_lost(
    cluster: "LocalCluster", start_api: Callable[..., Server], corpus: str
) -> None:
    server = start_api(redis=cluster.seed(), concurrency=2, timeout=30)
    with server.client() as client:
        assert client.post("/v1/documents", json=houses(corpus)).json()["taken"] == HOUSES

        def ask(n: int) -> httpx.Response:
            return client.post("/v1/ask", json={"question": f"Who built house {n}?", "corpus": corpus})

        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(ask, range(24)))
        statuses = [reply.status_code for reply in replies]
        assert set(statuses) == {200, 429}
        for reply in replies:
            if reply.status_code == 429:
                problem(reply, 429, "too_many_requests")
        assert ask(1).status_code == 200
        rejected = f'shardqa_http_rejected_total{{code="too_many_requests"}} {statuses.count(429)}.0'
        assert rejected in client.get("/metrics").text


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/documents"])
def test_clients_that_leave_at_once_do_no_harm(http: httpx.Client, api: Server, corpus: str, path: str) -> None:
    sent = {"/v1/ask": {"question": "Who left?", "corpus": corpus}, "/v1/documents": houses(corpus)}[path]
    for _ in range(10):
        with contextlib.suppress(httpx.TimeoutException):
            httpx.post(api.url + path, json=sent, timeout=httpx.Timeout(10, read=0.001))
    assert http.post("/v1/documents", json=houses(corpus)).json()["taken"] == HOUSES
    assert "Traceback" not in api.log()
