"""Trying again what fails in passing: a worker that starts, a slot that moves, a queue that is full."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from redis.exceptions import AuthenticationError, NoPermissionError

from shardqa.errors import AnswerTimeout, ClusterUnavailable, ShardqaError, TooManyRequests

Result = TypeVar("Result")
FIRST_PAUSE = 0.1  # seconds; doubles with every failure
LONGEST_PAUSE = 2.0  # seconds


def is_passing(fault: ShardqaError) -> bool:
    """Whether the same request may succeed later. A refused user or a missing module does not mend itself."""
    if isinstance(fault, TooManyRequests | AnswerTimeout):
        return True
    cause = fault.__cause__
    is_lasting = isinstance(cause, AuthenticationError | NoPermissionError) or "nknown command" in str(cause)
    return isinstance(fault, ClusterUnavailable) and not is_lasting


async def patiently(action: Callable[[], Awaitable[Result]], seconds: float) -> Result:
    """Runs `action` until it succeeds, fails for good, or `seconds` have gone by; then raises its last error."""
    deadline = monotonic() + seconds
    pause = FIRST_PAUSE
    while True:
        try:
            return await action()
        except ShardqaError as fault:
            if not is_passing(fault) or monotonic() + pause > deadline:
                raise
        await asyncio.sleep(
            pause * random.uniform(0.7, 1.3)
        )  # spread, so that those refused together don't return together
        pause = min(pause * 2, LONGEST_PAUSE)
