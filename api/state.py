"""The state that the routes of one app share, reached through FastAPI's dependencies."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from shardqa.api.authorized_engine import AuthorizedEngine
from shardqa.api.background import Background
from shardqa.api.connection import Connection
from shardqa.api.file_readers import FileReaders
from shardqa.api.gate import Gate
from shardqa.api.metrics import Metrics
from shardqa.config import Settings


@dataclass(frozen=True)
class State:
    settings: Settings
    metrics: Metrics
    connection: Connection
    readers: FileReaders
    gate: Gate
    background: Background

    def corpus_of(self, name: str | None) -> str:
        """Returns the corpus that a request names, else the server's default."""
        return self.settings.corpus if name is None else name

    @property
    def engine(self) -> AuthorizedEngine:
        """Returns the engine as far as the request's key allows. Raises ClusterUnavailable.

        Asked for inside a route, so that a wrong request is refused first.
        """
        return AuthorizedEngine(self.connection.engine)


def _state(request: Request) -> State:
    state = request.app.state.shardqa
    assert isinstance(state, State)
    return state


Shared = Annotated[State, Depends(_state)]
