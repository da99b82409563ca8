"""Spans of OpenTelemetry: off, and not even imported, until `use` or `configure` is called.

They hold names, numbers and corpora, and never what people ask.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")  # OpenTelemetry's own variables
NOTHING: AbstractContextManager[None] = nullcontext()

_tracer: Any = None


def use(tracer: Any) -> None:
    """An opentelemetry.trace.Tracer; None switches spans off."""
    global _tracer
    _tracer = tracer


def is_wanted() -> bool:
    """Whether the environment names a collector."""
    return any(os.environ.get(name) for name in ENDPOINTS)


def configure() -> None:
    """Sends spans to the collector that the environment names. Raises ImportError without the extra `otel`."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = os.environ.get("OTEL_SERVICE_NAME", "shardqa")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    use(provider.get_tracer("shardqa"))


def span(name: str, **attributes: Any) -> AbstractContextManager[Any]:
    """Opens a span around a part of the work; an exception that leaves it is noted on it."""
    if _tracer is None:
        return NOTHING
    manager: AbstractContextManager[Any] = _tracer.start_as_current_span(name, attributes=attributes)
    return manager


def sent(host: str, port: int, words: Sequence[Any]) -> AbstractContextManager[Any]:
    """Opens a span around a command, named by it and a function alone: other words hold what people ask."""
    if _tracer is None:
        return NOTHING
    from opentelemetry.trace import SpanKind

    name = " ".join(map(str, words[: 2 if words[0] == "RG.TRIGGER" else 1]))
    attributes = {"db.system.name": "redis", "db.operation.name": name, "server.address": host, "server.port": port}
    manager: AbstractContextManager[Any] = _tracer.start_as_current_span(
        name, kind=SpanKind.CLIENT, attributes=attributes
    )
    return manager


def served(name: str, headers: Mapping[str, str]) -> AbstractContextManager[Any]:
    """Opens a span around a request, below the caller's span where `traceparent` names one."""
    if _tracer is None:
        return NOTHING
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = TraceContextTextMapPropagator().extract(headers)
    manager: AbstractContextManager[Any] = _tracer.start_as_current_span(name, context=parent, kind=SpanKind.SERVER)
    return manager


def note(current: Any, **attributes: Any) -> None:
    """Sets attributes of a span; nothing where there is none."""
    if current is not None:
        current.set_attributes(attributes)
