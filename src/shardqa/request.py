"""The id of the request that a task works for: it goes from HTTP through the engine to the shards' logs."""

import re
from contextvars import ContextVar

MAX_ID = 64
ID = re.compile(rf"[0-9A-Za-z-]{{1,{MAX_ID}}}")
FIELD = "request"  # of the statistics that a Rank brings along

current: ContextVar[str] = ContextVar("shardqa_request", default="")  # empty outside of HTTP


def checked(id_: object) -> str:
    """An id that came from elsewhere, fit for a line of a log; empty where it is none."""
    return id_ if isinstance(id_, str) and ID.fullmatch(id_) else ""
