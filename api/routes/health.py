"""/healthz, /readyz and /metrics: for what watches the process. They are served however busy it is."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, Metric

import shardqa
from shardqa.api import bearer
from shardqa.api.gate import OPEN, Route, operation
from shardqa.api.metrics import exposition
from shardqa.api.shard_metrics import of_corpora, of_models, of_registrations, of_workers
from shardqa.api.state import Shared
from shardqa.engine.activity import WorkerState
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


@router.get("/metrics", response_class=Response, **operation("metrics", "Prometheus metrics"))
async def metrics(state: Shared) -> Response:
    """The sum of all processes that `python -m shardqa.api` runs on this port; what the shards tell of themselves.

    With a key for some corpora or documents, the sizes of these alone.
    """
    if not bearer.sees_all():
        return _plain(exposition(of_corpora((await state.engine.corpora()).corpora)))
    engine, families = state.connection.connected, list[Metric]()
    workers: Sequence[WorkerState] = ()
    if engine is not None:
        counts, corpora = await asyncio.gather(engine.activity.counts(), engine.catalogue.corpora())
        families += [*of_registrations(counts.registrations), *of_models(counts.models), *of_corpora(corpora.corpora)]
        workers = counts.workers
    return _plain(state.metrics.text() + exposition([*families, *of_workers(workers, state.settings.model)]))


def _plain(text: bytes) -> Response:
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
