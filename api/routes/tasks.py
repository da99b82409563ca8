"""/v1/tasks: how far work is that goes on behind its reply, and its end."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from shardqa.api import problems, streaming
from shardqa.api.gate import Route, operation
from shardqa.api.requests import as_json
from shardqa.api.state import Shared, State
from shardqa.http_schema import Task, Tasks

PAUSE = 0.5  # seconds between two looks

router = APIRouter(prefix="/v1", tags=["documents"], route_class=Route)

Id = Annotated[str, Path(description="The task's id.")]


@router.get("/tasks", **operation("ingest", "List tasks", Tasks))
async def get_tasks(
    state: Shared, corpus: Annotated[str | None, Query(description="Without it, the default corpus.")] = None
) -> Response:
    """Files that are being read for a corpus; those that have ended are found by their id alone."""
    return as_json(await state.engine.tasks.under_way(state.corpus_of(corpus)), without_none=True)


@router.get(
    "/tasks/{id}",
    responses={200: {"content": {streaming.EVENTS: {"schema": {"type": "string"}}}}},
    **operation("ingest", "Look at a task", Task),
)
async def get_task(id: Id, request: Request, state: Shared) -> Response:
    """Tells how far it is. With `Accept: text/event-stream`, `step` for each change until its end, then `task`."""
    if not streaming.wanted(request.scope):
        return as_json(await state.engine.tasks.of(id), without_none=True)
    request_id = problems.request_id(request.scope)
    return await streaming.steps(
        partial(_followed, id, state),
        lambda task: streaming.event("task", task),
        lambda error: streaming.event("problem", problems.explain(error, request_id)),
    )


@router.delete("/tasks/{id}", **operation("ingest", "Cancel a task", Task))
async def delete_task(id: Id, state: Shared) -> Response:
    """It ends within seconds; what it has done stays. One that has ended stays as it is."""
    return as_json(await state.engine.tasks.cancel(id), without_none=True)


async def _followed(id: str, state: State, tell: Callable[[BaseModel], None]) -> Task:
    before = None
    while (task := await state.engine.tasks.of(id)).stage in ("running", "cancelling"):
        if task != before:
            tell(task)
        before = task
        await asyncio.sleep(PAUSE)
    return task
