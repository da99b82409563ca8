"""Health, readiness, metrics, headers, the description and the log."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest

from shardqa.api.app import create_app
from shardqa.config import Settings
from tests.api.conftest import Server, environment, problem, refused_start
from tests.faults.subject import resident
from tests.nodes import free_port, wait_until

KEPT = 50.0  # megabytes that a process may hold of bodies it has refused


def test_without_a_cluster_the_process_is_alive_and_says_why_it_is_not_ready(alone: httpx.Client) -> None:
    assert alone.get("/healthz").json() == {"status": "alive"}
    assert "127.0.0.1" in problem(alone.get("/readyz"), 503, "cluster_unavailable")["detail"]


def test_requests_are_counted_by_the_route_not_the_address(alone: httpx.Client) -> None:
    for name in ("one", "two"):
        alone.get(f"/v1/documents/{name}")
        alone.get(f"/nowhere/{name}")
    metrics = alone.get("/metrics").text
    assert 'shardqa_http_requests_total{method="GET",route="/v1/documents/{id:path}",status="503"}' in metrics
    assert 'route="unmatched",status="404"' in metrics
    assert "/nowhere" not in metrics
    assert "shardqa_cluster_connected 0.0" in metrics


def test_memory_of_large_bodies_goes_back_to_the_system(lonely: Server, alone: httpx.Client) -> None:
    before, body = resident(lonely.pid or 0), b"[" + 30_000_000 * b" "
    headers = {"Content-Type": "application/json"}
    with ThreadPoolExecutor(4) as pool:
        replies = pool.map(lambda _: alone.post("/v1/documents", content=body, headers=headers), range(8))
        assert [problem(reply, 400, "bad_json")["detail"] for reply in replies]
    assert before is not None
    wait_until(lambda: (resident(lonely.pid or 0) or 0) < before + KEPT, "the bodies' memory given back")


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


def references(value: object) -> set[str]:
    """All that a description refers to."""
    if isinstance(value, dict):
        own = {str(value["$ref"])} if "$ref" in value else set[str]()
        return own.union(*map(references, value.values()))
    return set[str]().union(*map(references, value)) if isinstance(value, list) else set()


def test_the_description_refers_to_nothing_that_it_lacks(alone: httpx.Client) -> None:
    description = alone.get("/openapi.json").json()
    names = {reference.removeprefix("#/components/") for reference in references(description)}
    assert names
    assert names <= {f"{kind}/{name}" for kind in ("schemas", "responses") for name in description["components"][kind]}


def test_the_description_says_of_every_operation_what_its_errors_are(alone: httpx.Client) -> None:
    description = alone.get("/openapi.json").json()
    for operations in description["paths"].values():
        for operation in operations.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
            assert operation["summary"]
    codes = {entry["code"] for entry in description["x-problems"]}
    assert {"unknown_corpus", "too_many_requests", "bad_json", "internal"} <= codes
    assert description["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert description["paths"]["/v1/ask"]["post"]["security"] == [{}, {"key": ["ask"]}]


def test_generated_clients_have_stable_names_and_an_address(alone: httpx.Client) -> None:
    description = alone.get("/openapi.json").json()
    ids = {
        f"{method.upper()} {path}": operation["operationId"]
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
    }
    assert len(set(ids.values())) == len(ids)
    assert (ids["POST /v1/ask"], ids["PUT /v1/files/{name}"], ids["GET /healthz"]) == (
        "post_ask",
        "put_file",
        "healthz",
    )
    assert [server["url"] for server in description["servers"]] == ["/"]


def test_every_body_of_json_has_an_example_that_is_taken(alone: httpx.Client) -> None:
    bodies = {
        path: operations["post"]["requestBody"]["content"]["application/json"]
        for path, operations in alone.get("/openapi.json").json()["paths"].items()
        if "application/json" in operations.get("post", {}).get("requestBody", {}).get("content", {})
    }
    assert len(bodies) == 5
    for path, body in bodies.items():
        reply = alone.post(path, json=body["example"])
        outcomes = reply.json().get("results", [{"status": reply.status_code}])
        assert {outcome["status"] for outcome in outcomes} == {503}, (
            path
        )  # nothing is wrong but that no cluster is there


def test_every_reply_of_json_has_an_example_of_its_schema_and_names_likely_problems(alone: httpx.Client) -> None:
    description = alone.get("/openapi.json").json()
    operations = [one for of_path in description["paths"].values() for one in of_path.values()]
    shown = 0
    for operation in operations:
        replies = [reply for status, reply in operation["responses"].items() if status[0] == "2"]
        contents = [
            one["content"]["application/json"] for one in replies if "application/json" in one.get("content", {})
        ]
        examples = [one for one in contents if "example" in one]
        assert bool(examples) == bool(contents), operation["summary"]
        for one in examples:
            jsonschema.validate(one["example"], {**one["schema"], "components": description["components"]})
            shown += 1
        assert "security" not in operation or {"401", "403", "429", "503"} <= set(operation["responses"])
    assert shown > 20
    problems = description["components"]["responses"]
    assert problems["unknown_document"]["content"]["application/problem+json"]["example"]["status"] == 404


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


@pytest.mark.parametrize(
    ("flags", "variables", "message"),
    [
        ("", {"SHARDQA_K": "0"}, "k"),
        *(("", {"WEB_CONCURRENCY": count}, f"WEB_CONCURRENCY is {count!r}") for count in ("two", "0", "-1", "")),
        ("--tls-cert node.pem", {}, "give --tls-cert and --tls-key"),
        ("--tls-cert node.pem --tls-key nowhere.key", {}, "nowhere.key is no file"),
        ("--tls-cert node.pem --tls-key client.key", {}, "node.pem and client.key can't serve https"),
        ("--tls-cert names --tls-key node.key", {}, "names and node.key can't serve https"),
    ],
)
def test_what_can_not_be_served_stops_the_start_with_the_way_out(
    certificate_folder: Path, flags: str, variables: dict[str, str], message: str
) -> None:
    env = environment() | variables
    assert message in refused_start(*flags.split(), folder=certificate_folder, env=env)


def test_two_apps_in_one_process_count_for_themselves() -> None:
    first, second = (create_app(Settings(redis=f"127.0.0.1:{free_port()}")) for _ in range(2))
    first.state.shardqa.metrics.rejected.labels("too_many_requests").inc()
    assert b"too_many_requests" in first.state.shardqa.metrics.text()
    assert b"too_many_requests" not in second.state.shardqa.metrics.text()


def test_a_choice_has_a_name_and_the_server_a_version(alone: httpx.Client) -> None:
    described = alone.get("/openapi.json").json()
    form = described["components"]["schemas"]["Question"]["properties"]["form"]
    assert {"$ref": "#/components/schemas/FormChoice"} in form["anyOf"]
    assert alone.get("/v1/version").json()["version"] == described["info"]["version"]
