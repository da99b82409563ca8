"""Work of this process that goes on behind its reply. How far it is stands in Redis (`TaskStates`)."""

import asyncio
import logging
from collections.abc import Coroutine

from shardqa.engine.task_states import TaskStates
from shardqa.errors import ShardqaError, TooManyRequests
from shardqa.http_schema import Task

MOST = 4  # at once, in one process: each may hold a body of the largest size
NOTED_SECONDS = 1.0  # between two states

log = logging.getLogger("shardqa.api")


class Background:
    def __init__(self) -> None:
        self._running = set[asyncio.Task[None]]()

    async def start(self, states: TaskStates, task: Task, work: Coroutine[None, None, None]) -> None:
        """Begins `work`, which keeps `task` up to date. Raises TooManyRequests, ClusterUnavailable, WritesRefused."""
        try:
            if len(self._running) >= MOST:
                raise TooManyRequests(f"{len(self._running)} tasks are under way; this process has {MOST} at once")
            await states.note(task)
        except ShardqaError:
            work.close()
            raise
        running = asyncio.create_task(_run(states, task, work))
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Ends the tasks under way; their state is then `broken`."""
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


async def _run(states: TaskStates, task: Task, work: Coroutine[None, None, None]) -> None:
    working = asyncio.create_task(work)
    try:
        is_wanted = True
        while is_wanted and not (await asyncio.wait({working}, timeout=NOTED_SECONDS))[0]:
            is_wanted = await _noted(states, task)
        working.cancel()
        await asyncio.wait({working})
        task.stage = "done"
        if working.cancelled():
            task.stage = "cancelled"
        elif (fault := working.exception()) is not None:
            task.stage, task.detail = "broken", str(fault)
            log.error("the task %s failed", task.id, exc_info=fault)
    except asyncio.CancelledError:
        working.cancel()
        task.stage, task.detail = "broken", "the API process was stopped; do it again: what is there is only compared"
    await _noted(states, task)


async def _noted(states: TaskStates, task: Task) -> bool:
    try:
        return await states.note(task)
    except ShardqaError as fault:
        log.warning("how far the task %s is can't be stored: %s", task.id, fault)
        return True
