"""Retries transient errors: a worker that starts, a slot that moves, a queue that is full."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from shardqa.errors import ShardqaError
from shardqa.transient import is_transient_fault

Result = TypeVar("Result")
FIRST_PAUSE = 0.1  # seconds; doubles with every failure
LONGEST_PAUSE = 2.0  # seconds
WORKER_SECONDS = 90.0  # for workers that still start: importing their libraries takes some, more on a busy machine


async def retry(action: Callable[[], Awaitable[Result]], seconds: float) -> Result:
    """Runs `action` until it succeeds, fails for good, or `seconds` have gone by; then raises its last error."""
    deadline = monotonic() + seconds
    pause = FIRST_PAUSE
    while True:
        try:
            return await action()
        except ShardqaError as fault:
            if not is_transient_fault(fault) or monotonic() + pause > deadline:
                raise
        # spread, so that those refused together don't return together
        await asyncio.sleep(pause * random.uniform(0.7, 1.3))
        pause = min(pause * 2, LONGEST_PAUSE)
