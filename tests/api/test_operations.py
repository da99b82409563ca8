"""Health, readiness, metrics, headers, the description and the log."""

import subprocess
import sys

import httpx
import pytest

from shardqa.api.app import create_app
from shardqa.config import Settings
from tests.nodes import free_port, wait_until

from .conftest import Server  # noqa: TID251 (this package is tests/api)


def test_the_process_is_alive_without_a_cluster(alone: httpx.Client) -> None:
    assert alone.get("/healthz").json() == {"status": "alive"}


def test_it_is_not_ready_without_a_cluster_and_says_why(alone: httpx.Client) -> None:
    reply = alone.get("/readyz")
    assert reply.status_code == 503
    assert "127.0.0.1" in reply.json()["detail"]


def test_requests_are_counted_by_the_route_not_the_address(alone: httpx.Client) -> None:
    for name in ("one", "two"):
        alone.get(f"/v1/documents/{name}")
        alone.get(f"/nowhere/{name}")
    metrics = alone.get("/metrics").text
    assert 'shardqa_http_requests_total{method="GET",route="/v1/documents/{id:path}",status="503"}' in metrics
    assert 'route="unmatched",status="404"' in metrics
    assert "/nowhere" not in metrics
    assert "shardqa_cluster_connected 0.0" in metrics


def test_head_gives_the_headers_of_get(alone: httpx.Client) -> None:
    reply = alone.head("/healthz")
    assert (reply.status_code, reply.content) == (200, b"")
    assert reply.headers["Content-Length"] == str(len(alone.get("/healthz").content))


@pytest.mark.parametrize("path", ["/", "/healthz", "/nowhere", "/static/ask.js", "/v1/ask"])
def test_every_reply_forbids_foreign_scripts_and_frames(alone: httpx.Client, path: str) -> None:
    headers = alone.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_description_refers_to_nothing_that_it_lacks(alone: httpx.Client) -> None:
    described = alone.get("/openapi.json").json()
    references = set[str]()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            references.update(value[key] for key in value if key == "$ref")
            for part in value.values():
                collect(part)
        elif isinstance(value, list):
            for part in value:
                collect(part)

    collect(described)
    assert references
    assert {reference.removeprefix("#/components/schemas/") for reference in references} <= set(
        described["components"]["schemas"]
    )


def test_every_operation_says_what_its_errors_look_like(alone: httpx.Client) -> None:
    for operations in alone.get("/openapi.json").json()["paths"].values():
        for operation in operations.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
            assert operation["summary"]


def test_the_description_lists_the_codes_of_problems(alone: httpx.Client) -> None:
    codes = {entry["code"] for entry in alone.get("/openapi.json").json()["x-problems"]}
    assert {"unknown_corpus", "too_many_requests", "bad_json", "internal"} <= codes


def test_every_operation_that_a_key_guards_says_what_the_key_must_allow(alone: httpx.Client) -> None:
    described = alone.get("/openapi.json").json()
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    scopes = {
        (method, path): operation.get("security")
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    assert scopes["post", "/v1/ask"] == [{}, {"key": ["ask"]}]
    assert scopes["delete", "/v1/documents/{id}"] == [{}, {"key": ["ingest"]}]
    assert scopes["delete", "/v1/corpora/{corpus}"] == [{}, {"key": ["admin"]}]
    assert scopes["get", "/metrics"] == [{}, {"key": ["metrics"]}]
    assert scopes["get", "/healthz"] is None


def logged(server: Server, reply: httpx.Response) -> list[str]:
    """The lines of a request; they come a moment after its reply."""
    id = reply.headers["X-Request-Id"]
    found = wait_until(lambda: [line for line in server.log().splitlines() if id in line], "the request is logged")
    assert isinstance(found, list)
    return found


def test_the_log_has_one_line_per_request_and_no_question(lonely: Server, alone: httpx.Client) -> None:
    (line,) = logged(lonely, alone.get("/v1/ask", params={"q": "where-is-my-secret"}))
    assert "GET /v1/ask 503" in line
    assert "where-is-my-secret" not in lonely.log()


def test_an_address_cannot_forge_a_log_line(lonely: Server, alone: httpx.Client) -> None:
    logged(lonely, alone.get("/x%0A2026-01-01%20INFO%20all%20is%20well"))
    assert "\n2026-01-01 INFO all is well" not in lonely.log()


def test_an_address_of_redis_without_a_port_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        create_app(Settings(redis="nowhere"))


def test_a_wrong_setting_ends_the_start_with_a_sentence() -> None:
    command = [sys.executable, "-m", "shardqa.api"]
    ended = subprocess.run(command, env={"SHARDQA_K": "0"}, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "k" in ended.stderr


def test_two_apps_in_one_process_count_for_themselves() -> None:
    first, second = (create_app(Settings(redis=f"127.0.0.1:{free_port()}")) for _ in range(2))
    first.state.shardqa.metrics.rejected.labels("too_many_requests").inc()
    assert b"too_many_requests" in first.state.shardqa.metrics.text()
    assert b"too_many_requests" not in second.state.shardqa.metrics.text()
