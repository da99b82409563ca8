"""The log as JSON, and one request's id in every process that worked for it; spans of OpenTelemetry."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from shardqa.cluster import redis_server
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine, tracing
from shardqa.schema import Document
from tests.api.conftest import Server, StartApi
from tests.nodes import free_port, wait_until

QUESTION = "When was the mill of Brennick built?"


def lines(server: Server) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log().splitlines()]


def of_request(server: Server, id_: str) -> list[dict[str, Any]]:
    return [line for line in lines(server) if line.get("request") == id_]


def test_each_line_is_an_object_with_time_level_and_message(start_api: StartApi) -> None:
    server = start_api(redis=f"127.0.0.1:{free_port()}", log="json")
    with server.client() as client:
        id_ = client.get("/healthz").headers["x-request-id"]
    (line,) = wait_until(lambda: of_request(server, id_), "the request is logged")
    wanted = {"level": "info", "logger": "shardqa.api.access", "method": "GET", "path": "/healthz", "status": 200}
    assert {name: line[name] for name in wanted} == wanted
    assert line["message"].startswith("GET /healthz 200 ")
    for one in lines(server):
        assert {"time", "level", "logger", "message"} <= one.keys()


async def test_a_question_that_fails_has_its_id_in_the_logs_of_api_and_shards(
    engine: Engine, cluster: LocalCluster, start_api: StartApi, corpus: str
) -> None:
    await engine.documents.put(Document(id="mill", text="The mill of Brennick was built in 1820 by Ada Holm."))
    server = start_api(redis=cluster.seed(), model="nobodys-reader", log="json")
    with server.client() as client:
        wait_until(lambda: "shardqa_cluster_connected 1.0" in client.get("/metrics").text, "the cluster is reached")
        reply = ask(client, corpus)
    id_ = reply.headers["x-request-id"]
    assert id_ in reply.json()["instance"]
    noted = wait_until(lambda: len(of_request(server, id_)) >= 2 and of_request(server, id_), "both lines are there")
    (shard,) = [line for line in noted if line["logger"] == "shardqa.engine"]
    assert shard["command"].startswith("GET answer:")
    assert shard["node"].startswith("127.0.0.1:")
    assert QUESTION.casefold().rstrip("?") not in server.log().casefold()
    said = [line for log in redis_logs(cluster) for line in log.splitlines() if id_ in line]
    assert said
    assert "GET answer: failed" in said[0]
    assert f"corpus {corpus}" in said[0]
    assert not [line for line in said if "brennick" in line]


def ask(client: Any, corpus: str) -> Any:
    return client.post("/v1/ask", json={"question": QUESTION, "corpus": corpus})


def redis_logs(cluster: LocalCluster) -> list[str]:
    return [(cluster.data / node.folder / redis_server.LOG).read_text(errors="replace") for node in cluster.state.nodes]


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider.get_tracer("shardqa"))
    yield exporter
    tracing.use(None)


async def test_a_question_is_a_span_with_one_for_each_step_and_each_command_to_a_shard(
    engine: Engine, cluster: LocalCluster, exported: InMemorySpanExporter
) -> None:
    await engine.documents.put(Document(id="mill", text="The mill of Brennick was built in 1820 by Ada Holm."))
    answer = await engine.ask(QUESTION)
    spans = exported.get_finished_spans()
    sent = [span for span in spans if span.kind == SpanKind.CLIENT]
    assert {"RG.TRIGGER Terms", "RG.TRIGGER Rank", "GET"} <= {span.name for span in sent}
    ports = {int(str((span.attributes or {})["server.port"])) for span in sent}
    assert ports <= {port for _, port in cluster.addresses}
    steps = {span.name: span for span in spans if span.kind == SpanKind.INTERNAL}
    assert set(steps) == {"ask", "cache", "retrieve", "read", "merge"}
    whole = steps.pop("ask")
    assert whole.attributes is not None
    assert (whole.attributes["cache"], whole.attributes["corpus"]) == ("none", answer.corpus)
    for span in steps.values():
        assert span.parent is not None
        assert span.parent.span_id == whole.context.span_id
    assert "Brennick" not in str([span.to_json() for span in spans])


async def test_a_question_that_fails_marks_its_span(engine: Engine, exported: InMemorySpanExporter) -> None:
    with pytest.raises(Exception, match="there is no corpus"):
        await engine.ask(QUESTION, corpus="nothing-here")
    failed = {span.name for span in exported.get_finished_spans() if not span.status.is_ok and span.events}
    assert "ask" in failed


async def test_without_a_tracer_nothing_is_noted(engine: Engine) -> None:
    assert tracing.span("ask") is tracing.NOTHING
    assert not tracing.is_wanted()
