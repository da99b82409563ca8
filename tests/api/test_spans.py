"""Spans of requests, by the variables that OpenTelemetry itself has: sent to a collector, below the caller's span."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.api.conftest import StartApi
from tests.nodes import free_port, wait_until


class Collector(ThreadingHTTPServer):
    spans: list[Span]


@pytest.fixture
def collector() -> Iterator[Collector]:
    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
            server.spans += [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = Collector(("127.0.0.1", 0), Take)
    server.spans = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_requests_reach_the_collector_below_the_callers_span(
    collector: Collector, start_api: StartApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    server = start_api(redis=f"127.0.0.1:{free_port()}")
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with server.client() as client:
        reply = client.get("/healthz", headers={"traceparent": f"00-{trace}-{parent}-01"})
    (span,) = wait_until(lambda: list(collector.spans), "the span was sent")
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.name) == (trace, parent, "GET /healthz")
    noted = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
    assert noted["http.response.status_code"] == 200
    assert noted["shardqa.request"] == reply.headers["x-request-id"]
