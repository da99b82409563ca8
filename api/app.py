"""The ASGI app. A question passes these files, in this order:

access              outermost: request id, log line, metrics, headers, unforeseen faults
limits              SendDeadlines: a client that reads no reply is given up
hosts               CrossOrigin: pages of named origins; before it Starlette's gzip of large replies
gate                the route that was found says what it needs: hosts, then authentication, then limits (body, place)
reply_cache         a reply that is kept as bytes goes out here
routes/ask          everything else: parameters, steps as events
authorized_engine   the engine as far as the key allows

`python -m shardqa.api` serves it with the settings it is meant for; `uvicorn --factory shardqa.api.app:create_app` too.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

import shardqa
from shardqa import extras
from shardqa.api import openapi, problems, requests
from shardqa.api.access import Access
from shardqa.api.background import Background
from shardqa.api.connection import Connection
from shardqa.api.file_readers import FileReaders
from shardqa.api.gate import Gate
from shardqa.api.hosts import CrossOrigin
from shardqa.api.limits import SendDeadlines
from shardqa.api.metrics import Metrics
from shardqa.api.routes import ask, cluster, corpora, documents, feedback, files, health, page, questions, search, tasks
from shardqa.api.routes.openai import router as openai
from shardqa.api.state import State
from shardqa.config import Settings
from shardqa.engine import tracing

LEAST_COMPRESSED = 4_096  # bytes of a reply: to compress an answer would take longer than to find it in a cache

log = logging.getLogger("shardqa.api")


def start_spans() -> None:
    try:
        tracing.configure()
    except ImportError as error:
        log.warning("no spans are sent, %s: %s", error, extras.remedy("otel"))


def create_app(settings: Settings | None = None) -> FastAPI:
    """Makes an app with metrics and a connection of its own; `settings` are by default those of the environment.

    Raises ValueError when `settings.redis` is not HOST:PORT; whether a cluster is there shows in /readyz.
    """
    settings = settings if settings is not None else Settings()
    assert settings.addresses
    metrics = Metrics()
    connection = Connection(settings, metrics)

    state = State(settings, metrics, connection, FileReaders(), Gate(settings, connection, metrics), Background())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if tracing.is_wanted():  # of each process its own: the exporter's thread does not survive a fork
            start_spans()
        await connection.open()
        try:
            yield
        finally:
            await state.background.close()
            await connection.close()

    app = FastAPI(
        title="shardqa",
        version=shardqa.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # ids may end in a slash
        generate_unique_id_function=openapi.operation_id,
        middleware=[
            Middleware(Access, metrics=metrics),
            Middleware(SendDeadlines),
            Middleware(GZipMiddleware, minimum_size=LEAST_COMPRESSED, compresslevel=4),
            *([Middleware(CrossOrigin, origins=settings.origins)] if settings.origins else []),
        ],
    )
    app.state.shardqa = state
    problems.install(app)
    openapi.install(app)
    openings = {"openai": openai, "feedback": feedback.router, "questions": questions.router}
    routers = [one.router for one in (ask, search, documents, files, tasks, corpora, cluster)]
    for router in [*routers, *(openings[name] for name in settings.openings)]:
        app.include_router(router, dependencies=[Depends(requests.known_only)])
    app.include_router(health.router)  # with any query: those who probe and scrape may add to it
    page.mount(app)
    return app
