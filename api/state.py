"""What the routes of one app share, reached through FastAPI's dependencies."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from shardqa.api.connection import Connection
from shardqa.api.entry import Guarded
from shardqa.api.faults import NotJson
from shardqa.api.file_readers import FileReaders
from shardqa.api.metrics import Metrics
from shardqa.config import Settings

JSON, LINES = "application/json", "application/x-ndjson"


@dataclass(frozen=True)
class State:
    settings: Settings
    metrics: Metrics
    connection: Connection
    readers: FileReaders

    @property
    def engine(self) -> Guarded:
        """As this request may use it. Raises ClusterUnavailable; asked for inside a route, so that a wrong request is
        told first."""
        return Guarded(self.connection.engine)


def _state(request: Request) -> State:
    state = request.app.state.shardqa
    assert isinstance(state, State)
    return state


def json_or_lines(request: Request) -> None:
    """The same, and lines of JSON."""
    if content_type(request) not in (JSON, LINES):
        sent = request.headers.get("content-type", "")
        raise NotJson(f"the Content-Type is {sent[:80]!r}, and {JSON} or {LINES} is wanted")


def content_type(request: Request) -> str:
    """Without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def json_only(request: Request) -> None:
    """Refuses bodies of another type. Forms on other sites can't send JSON unasked, so their posts stay out too."""
    if content_type(request) != JSON:
        sent = request.headers.get("content-type", "")
        raise NotJson(f"the Content-Type is {sent[:80]!r}, and {JSON} is wanted")


Shared = Annotated[State, Depends(_state)]
