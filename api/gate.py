"""The one gate: what a route declares that it needs, and what a request must pass before the route sees it.

Each route names the scope that a key must have for it (`needs`), or says that it is for everybody (`OPEN`); one that
does neither is refused when it is made. The gate judges the route that was found, so it does not matter how an address
is spelt. It stands before FastAPI reads the body, as its dependencies would not.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, Security, params
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.types import Receive, Scope, Send

from shardqa.api import bearer
from shardqa.api.authentication import Authentication
from shardqa.api.connection import Connection
from shardqa.api.connection_limits import owner_of
from shardqa.api.hosts import Hosts
from shardqa.api.limits import MAX_BODY, Limits
from shardqa.api.metrics import Metrics
from shardqa.api.requests import taking
from shardqa.config import Settings
from shardqa.engine import api_keys

KEY = HTTPBearer(
    scheme_name="key",
    bearerFormat="sq-…",
    description="An API key, made by 'shardqa keys create'. By default requests from the machine itself need none.",
    auto_error=False,  # the gate has judged it
)


def _everybody() -> None:
    """The dependency of a route that is for everybody."""


OPEN: Any = Depends(_everybody)  # the dependency of a route that reads nobody's documents


def needs(scope: api_keys.Scope) -> Any:
    """The dependency of a route for which a key must allow `scope`."""
    return Security(KEY, scopes=[scope])


def operation(scope: api_keys.Scope, summary: str, model: Any = None, takes: Sequence[str] = ()) -> dict[str, Any]:
    """The options of a route for keys with a scope, which answers with a `model` and takes bodies of these types.

    Without a `model` it is what the function says that it returns.
    """
    guards = [needs(scope), *([taking(*takes)] if takes else [])]
    return {"summary": summary, "dependencies": guards, **({"response_model": model} if model else {})}


class Gate:
    """Checks Host and Origin, then the key, then gives a place among the requests being served."""

    def __init__(self, settings: Settings, connection: Connection, metrics: Metrics) -> None:
        self._hosts = Hosts(settings.hosts, settings.origins)
        self._authentication = Authentication(settings, connection)
        self.limits = Limits(settings.concurrency, metrics)

    @asynccontextmanager
    async def passed(self, scope: Scope, right: api_keys.Scope) -> AsyncIterator[None]:
        """Runs the block as the bearer of the key. Raises what `Hosts.check` and `Authentication.bearer` do."""
        self._hosts.check(scope)
        token = bearer.key.set(key := await self._authentication.bearer(scope, right))
        bearer.client.set(key.id if key else owner_of(scope["client"][0]) if scope["client"] else "")
        try:
            yield
        finally:
            bearer.key.reset(token)

    @asynccontextmanager
    async def admitted(self, scope: Scope, right: api_keys.Scope) -> AsyncIterator[None]:
        """Runs the block as `passed` does, with a place where a key is needed. Raises TooManyRequests as well."""
        async with self.passed(scope, right):
            with self.limits.place():
                yield


class Route(APIRoute):
    """A route behind the gate. Raises TypeError where it does not declare what it needs."""

    def __init__(self, path: str, *positional: Any, **options: Any) -> None:
        super().__init__(path, *positional, **options)
        self.needed = _declared(path, self.dependencies)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.needed is None or scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        gate: Gate = scope["app"].state.shardqa.gate
        async with gate.passed(scope, self.needed):
            await gate.limits.serve(self.admitted, self.max_body_size or MAX_BODY, scope, receive, send)

    async def admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request that has passed."""
        await super().handle(scope, receive, send)


def _declared(path: str, dependencies: list[params.Depends]) -> api_keys.Scope | None:
    scopes = [scope for one in dependencies if isinstance(one, params.Security) for scope in one.scopes or ()]
    is_open = OPEN in dependencies
    if is_open == bool(scopes) or len(scopes) > 1 or not set(scopes) <= set(api_keys.SCOPES):
        raise TypeError(f"the route {path} declares {scopes}; give it needs(one of {api_keys.SCOPES}), or OPEN")
    return None if is_open else next(one for one in api_keys.SCOPES if one == scopes[0])
