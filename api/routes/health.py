"""/healthz, /readyz and /metrics: for what watches the process. They are served however busy it is."""

import asyncio

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

import shardqa
from shardqa.api import bearer, corpus_metrics, model_metrics, node_metrics, registration_metrics
from shardqa.api.gate import OPEN, Route, needs
from shardqa.api.state import Shared
from shardqa.errors import ClusterUnavailable
from shardqa.http_schema import Health, Ready, Version

router = APIRouter(tags=["operations"], route_class=Route)


@router.get("/healthz", summary="Is the process alive?", dependencies=[OPEN])
async def healthz() -> Health:
    return Health()


@router.get("/v1/version", summary="Which version is this?", dependencies=[OPEN])
async def get_version(state: Shared) -> Version:
    return Version(version=shardqa.__version__, model=state.settings.model)


@router.get("/readyz", response_model=Ready, summary="Can questions be answered?", dependencies=[OPEN])
async def readyz(state: Shared) -> Ready:
    """503 while no shard can answer; the detail lists what is missing."""
    can_answer, missing = await state.connection.readiness()
    if not can_answer:
        raise ClusterUnavailable("; ".join(missing))
    return Ready(status="degraded" if missing else "ready", problems=missing)


@router.get("/metrics", summary="Prometheus metrics", response_class=Response, dependencies=[needs("metrics")])
async def metrics(state: Shared) -> Response:
    """The sum of all processes that `python -m shardqa.api` runs on this port; what the shards tell of themselves.

    With a key for some corpora or documents, the sizes of these alone.
    """
    own, engine, counts = state.metrics.text(), state.connection.connected, None
    if not bearer.sees_all():
        return Response(
            corpus_metrics.text((await state.engine.corpora()).corpora), media_type=CONTENT_TYPE_PLAIN_0_0_4
        )
    if engine is not None:
        counts, corpora = await asyncio.gather(engine.activity.counts(), engine.catalogue.corpora())
        own += registration_metrics.text(counts.registrations) + model_metrics.text(counts.models)
        own += corpus_metrics.text(corpora.corpora)
    own += node_metrics.text(counts.workers if counts else [], state.settings.model)
    return Response(own, media_type=CONTENT_TYPE_PLAIN_0_0_4)
