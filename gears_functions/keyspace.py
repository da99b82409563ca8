"""The keys of this shard, a SCAN's page at a time."""

from collections.abc import AsyncIterator

from shardqa.worker.runtime import Argument, Runtime


async def names(runtime: Runtime, pattern: str, count: int, *more: Argument) -> AsyncIterator[list[str]]:
    """Yields the names of keys that match; `count` and `more` are SCAN's. Raises redis.ResponseError."""
    cursor = b"0"
    while True:
        cursor, page = await runtime.call("SCAN", cursor, "MATCH", pattern, "COUNT", count, *more)
        yield [name.decode("utf-8", "surrogateescape") for name in page]
        if cursor == b"0":
            return
