"""Runs coroutines side by side and ends all of them when one fails.

asyncio.TaskGroup cancels once and then waits; redis-py's reads with a timeout may swallow a cancellation, and the group
would wait for ever. Here the cancellation is repeated until every task has ended.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

AGAIN_SECONDS = 0.1  # between two cancellations of the same task


async def run_all(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Runs all coroutines to their end; when one raises, cancels and awaits the others, and raises its exception."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    if not tasks:
        return
    try:
        ends, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _end(tasks)
    for task in ends:
        task.result()


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=AGAIN_SECONDS)
