"""A reply's problem as an exception: the class of shardqa.errors that the server raised, by its code.

Each has `problem`, the whole reply, where the fault came as one; only what the server's own limits raise, or a proxy
before it, is RequestFailed.
"""

from typing import Any

import httpx2
from pydantic import ValidationError

from shardqa import errors
from shardqa.errors import ClusterUnavailable, ShardqaError
from shardqa.http_schema import Problem

REPLY_SHOWN = 200  # characters of a reply that is no problem
BY_CODE: dict[str, type[ShardqaError]] = {
    cls.code: cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, ShardqaError)
}


class RequestFailed(ShardqaError):
    """The API refused a request; `code` and `status` are the reply's."""

    def __init__(self, message: str, code: str, status: int) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # the class names the fault's kind, and here the server does
        self.status = status  # type: ignore[misc]


class Unreachable(ClusterUnavailable):
    """No API answers at the address."""


def fault_of(reply: httpx2.Response) -> ShardqaError:
    """The fault that a reply of status 400 and above means."""
    problem = _problem(reply)
    if problem is None:
        text = reply.text[:REPLY_SHOWN].strip() or reply.reason_phrase
        return RequestFailed(f"{reply.request.url} replies {reply.status_code}: {text}", "error", reply.status_code)
    own = BY_CODE.get(problem.code)
    message = f"{problem.detail}; {problem.remedy}" if own is None else problem.detail
    fault = own(message) if own is not None else RequestFailed(message, problem.code, problem.status)
    fault.problem = problem.model_dump(exclude_none=True)
    return fault


def _problem(reply: httpx2.Response) -> Problem | None:
    try:
        content: Any = reply.json()
        return Problem.model_validate(content)
    except (ValueError, ValidationError):
        return None


def unreachable(url: str, error: httpx2.TransportError) -> Unreachable:
    why = str(error) or type(error).__name__
    if url.startswith("http://") and isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError):
        why += "; where it serves https, its address begins with https://"
    return Unreachable(f"no API answers at {url}: {why}; start one with 'shardqa up', or name its address")
