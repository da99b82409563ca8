"""Refuses query parameters that a route does not take: a misspelt one would silently do nothing."""

from collections import Counter

from fastapi import Request
from fastapi.exceptions import RequestValidationError

from shardqa.api import problems


def known_only(request: Request) -> None:
    """Raises RequestValidationError, which names every parameter at fault."""
    counts = Counter(name for name, _ in request.query_params.multi_items())
    if not counts:
        return
    known = _known(request)
    errors = [
        {"type": "query", "loc": ("query", name), "msg": message, "input": request.query_params[name]}
        for name, count in counts.items()
        if (message := _fault(name, count, known))
    ]
    if errors:
        raise RequestValidationError(errors)


def _fault(name: str, count: int, known: list[str]) -> str:
    if name not in known:
        return f"Not known here; this address takes {', '.join(known) or 'none'}"
    return f"Given {count} times; give it once" if count > 1 else ""


def _known(request: Request) -> list[str]:
    """As the address's description has them."""
    method = "get" if request.method == "HEAD" else request.method.lower()
    operation = problems.operations(request)[method]
    return [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
