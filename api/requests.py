"""Checks of a request (content type, query parameters, whether its client is still there), and replies of one type."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from shardqa.api import problems
from shardqa.api.faults import ClientLeft, NotJson

JSON, LINES = "application/json", "application/x-ndjson"

Result = TypeVar("Result")


def content_type(request: Request) -> str:
    """Returns the type of the Content-Type header without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def taking(*types: str) -> Any:
    """Refuses bodies of other types. Forms on other sites can't send JSON unasked, so their posts stay out, too."""

    def check(request: Request) -> None:
        if content_type(request) not in types:
            own_type = request.headers.get("content-type", "")
            raise NotJson(f"the Content-Type is {own_type[:80]!r}, and {' or '.join(types)} is wanted")

    return Depends(check)


def known_only(request: Request) -> None:
    """Refuses query parameters that a route does not take: a misspelt one would silently do nothing.

    Raises RequestValidationError, which names every parameter at fault.
    """
    counts = Counter(name for name, _ in request.query_params.multi_items())
    if not counts:
        return
    parameters = _known_parameters(request)
    errors = [
        {"type": "query", "loc": ("query", name), "msg": message, "input": request.query_params[name]}
        for name, count in counts.items()
        if (message := _parameter_fault(name, count, parameters))
    ]
    if errors:
        raise RequestValidationError(errors)


def _parameter_fault(name: str, count: int, parameters: list[str]) -> str:
    if name not in parameters:
        return f"Not known here; this address takes {', '.join(parameters) or 'none'}"
    return f"Given {count} times; give it once" if count > 1 else ""


def _known_parameters(request: Request) -> list[str]:
    """Returns the parameters that the description of the address names."""
    method = "get" if request.method == "HEAD" else request.method.lower()
    operation = problems.operations(request)[method]
    return [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]


def as_json(
    model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None, without_none: bool = False
) -> Response:
    return Response(model.model_dump_json(exclude_none=without_none), status, headers, JSON)


def revalidated(request: Request, body: str | bytes, headers: Mapping[str, str], media_type: str) -> Response:
    """Returns the reply with a weak ETag (gzip may come between); 304 where the client has the same."""
    content = body.encode() if isinstance(body, str) else body
    tag = etag(content)
    fields = {"ETag": tag, "Cache-Control": "private, no-cache", **headers}
    tags = {one.strip() for one in request.headers.get("if-none-match", "").split(",")}
    return Response(status_code=304, headers=fields) if tag in tags else Response(content, 200, fields, media_type)


def etag(content: bytes) -> str:
    return f'W/"{blake2b(content, digest_size=12).hexdigest()}"'


async def until_disconnect(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Returns the result of `work`, cancelled once the client closes its connection. Raises ClientLeft then."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientLeft
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
