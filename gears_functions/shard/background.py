"""Work that a shard does in the background, again and again, while its session lives. The worker's loop only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from redis import ResponseError

from shardqa.errors import ShardqaError

if TYPE_CHECKING:
    from shardqa.gears_functions.runtime import KeyEvent, Runtime
    from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync

FAILED = 5.0  # seconds after a fault: an index that is being read, a model or slot on its way, memory that is full


def go_on(
    runtime: Runtime, sync: KeyspaceSync, prefix: str, work: Callable[[], Awaitable[float]], problem: str
) -> None:
    """Calls `work`, which does a part once the index is there and returns how many seconds later the next is due.

    It begins and ends with the session, since what a watch awaits is cancelled then; the events of `prefix` are passed
    over: `work` looks for itself. `problem` stands before a fault in the log.
    """

    async def pass_over(events: Sequence[KeyEvent]) -> None:
        pass

    async def live(reason: str) -> None:
        while True:
            try:
                await sync.synced()
                pause = await work()
            except (ResponseError, ShardqaError) as error:
                runtime.log(f"{problem}: {error}", "verbose")
                pause = FAILED
            await asyncio.sleep(pause)

    runtime.watch(prefix, pass_over, live)
