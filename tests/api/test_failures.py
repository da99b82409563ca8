"""The API while its cluster breaks: shards that end, workers that die, load past the limit."""

import contextlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from shardqa.cluster import local, processes
from shardqa.cluster.local import LocalCluster
from tests.api.conftest import Server, StartApi, problem, wait_for_status

HOUSES = 60  # documents, so that every shard has some


def houses(corpus: str) -> list[dict[str, Any]]:
    return [
        {"id": f"house-{n}", "corpus": corpus, "text": f"House {n} of the old street was built by mason {n * 37}."}
        for n in range(HOUSES)
    ]


def test_a_shard_that_ended_makes_answers_partial_and_the_api_degraded(
    start_cluster: Callable[..., LocalCluster], start_api: StartApi
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


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/documents"])
def test_clients_that_leave_at_once_do_no_harm(http: httpx.Client, api: Server, corpus: str, path: str) -> None:
    sent = {"/v1/ask": {"question": "Who left?", "corpus": corpus}, "/v1/documents": houses(corpus)}[path]
    for _ in range(10):
        with contextlib.suppress(httpx.TimeoutException):
            httpx.post(api.url + path, json=sent, timeout=httpx.Timeout(10, read=0.001))
    assert http.post("/v1/documents", json=houses(corpus)).json()["taken"] == HOUSES
    assert "Traceback" not in api.log()
