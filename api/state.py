"""What the routes of one app share, reached through FastAPI's dependencies."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from shardqa.api.connection import Connection
from shardqa.api.faults import NotJson
from shardqa.api.metrics import Metrics
from shardqa.config import Settings
from shardqa.engine import Engine


@dataclass(frozen=True)
class State:
    settings: Settings
    metrics: Metrics
    connection: Connection

    @property
    def engine(self) -> Engine:
        """Raises ClusterUnavailable; asked for inside a route, so that a wrong request is told first."""
        return self.connection.engine


def _state(request: Request) -> State:
    state = request.app.state.shardqa
    assert isinstance(state, State)
    return state


def json_only(request: Request) -> None:
    """Refuses bodies of another type. Forms on other sites can't send JSON unasked, so their posts stay out too."""
    sent = request.headers.get("content-type", "")
    if sent.partition(";")[0].strip().lower() != "application/json":
        raise NotJson(f"the Content-Type is {sent[:80]!r}, and application/json is wanted")


Shared = Annotated[State, Depends(_state)]
