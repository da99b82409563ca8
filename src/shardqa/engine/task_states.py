"""Long work that goes on behind its reply: what is known of it is in Redis, for every API process and after restarts.

Its process renews a mark of life. Work that has not ended and has no mark is broken; who cancels it writes that there.
"""

from contextlib import suppress

from shardqa import keys
from shardqa.engine.connections import Shards
from shardqa.engine.files import as_bytes
from shardqa.errors import UnknownTask
from shardqa.http_schema import Task

KEPT_SECONDS = 86_400  # from the last change on
MARK_SECONDS = 10  # without a sign of life, after which work counts as broken
ALIVE, CANCELLED = b"alive", b"cancelled"
BROKEN = "the process that did this ended; do it again: what is there already is only compared"


class TaskStates:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    async def note(self, task: Task) -> bool:
        """Stores how far the work is; whether it shall go on. Raises ClusterUnavailable, WritesRefused."""
        key = keys.task_mark(task.id)
        await self._shards.by_key(key, "SET", ALIVE, "NX", "EX", MARK_SECONDS)  # before the state: readers go by it
        mark = await self._shards.by_key(key, "GETEX", "EX", MARK_SECONDS)
        await self._shards.by_key(keys.task(task.id), "SET", task.model_dump_json(), "EX", KEPT_SECONDS)
        index = keys.tasks(task.corpus)
        await self._shards.by_key(index, "SADD" if task.stage == "running" else "SREM", task.id)
        await self._shards.by_key(index, "EXPIRE", KEPT_SECONDS)
        return as_bytes(mark or b"") != CANCELLED

    async def under_way(self, corpus: str) -> list[Task]:
        """Lists those of a corpus that go on, without the outcomes of their files. Raises ClusterUnavailable."""
        tasks = list[Task]()
        for id in await self._shards.by_key(keys.tasks(corpus), "SMEMBERS"):
            with suppress(UnknownTask):
                tasks.append(await self.of(as_bytes(id).decode()))
        return [one.model_copy(update={"results": []}) for one in tasks if one.stage in ("running", "cancelling")]

    async def of(self, id: str) -> Task:
        """Raises UnknownTask, ClusterUnavailable."""
        mark = await self._shards.by_key(keys.task_mark(id), "GET")
        value = await self._shards.by_key(keys.task(id), "GET")
        if value is None:
            raise UnknownTask(f"there is no task {id!r}; one is kept for a day")
        task = Task.model_validate_json(value)
        if task.stage != "running" or as_bytes(mark or b"") == ALIVE:
            return task
        if mark is not None:
            return task.model_copy(update={"stage": "cancelling"})
        return task.model_copy(update={"stage": "broken", "detail": BROKEN})

    async def cancel(self, id: str) -> Task:
        """Ends it soon; one that has ended stays as it is. Raises as `of`."""
        await self._shards.by_key(keys.task_mark(id), "SET", CANCELLED, "XX", "KEEPTTL")
        return await self.of(id)
