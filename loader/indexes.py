"""Waits until every shard has read its passages into its index."""

import asyncio
from collections.abc import Callable

from shardqa.engine import Engine

LOOK_SECONDS = 0.25  # between two looks
TELL_SECONDS = 10.0  # between two reports


async def wait(engine: Engine, tell: Callable[[int], None]) -> None:
    """Returns once no shard is at it any more; `tell` gets the passages read so far, at once and now and then.

    A shard that fails meanwhile is not waited for. Raises ClusterUnavailable when no node answers.
    """
    told = float("-inf")
    clock = asyncio.get_running_loop().time
    while (shards := await engine.shards()) and any(shard.indexing for shard in shards):
        if clock() - told >= TELL_SECONDS:
            told = clock()
            tell(sum(shard.passages for shard in shards))
        await asyncio.sleep(LOOK_SECONDS)
