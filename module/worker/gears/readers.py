"""Where a run's records come from, and the records of events and misses.

Keys are read through the module in pages: types in one tick, values in the next.
"""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from shardqa.module.worker.calls import Command, first
from shardqa.module.worker.gears.builder import RunPlan
from shardqa.module.worker.gears.execution import Execution
from shardqa.module.worker.shard import Shard

PAGE = 500  # keys of one SCAN step and of one chunk of records
GLOB = re.compile(r"[*?\[\\]")
READ = {"string": ("GET",), "hash": ("HGETALL",), "list": ("LRANGE",)}  # types whose value a record carries


def text(data: Any) -> Any:
    """Bytes as str where they are UTF-8; containers all through."""
    if isinstance(data, bytes):
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data
    if isinstance(data, list):
        return [text(item) for item in data]
    if isinstance(data, dict):
        return {text(key): text(value) for key, value in data.items()}
    return data


async def chunks(shard: Shard, execution: Execution, plan: RunPlan) -> AsyncIterator[list[Any]]:
    """The records of a run on this shard."""
    match plan.reader:
        case "ShardsIDReader":
            yield [shard.cluster.node]
        case "PythonReader":
            iterator = iter(await execution.threads.in_pool(execution, plan.argument))
            while chunk := await execution.threads.in_pool(execution, _take, iterator):
                yield chunk
        case _:
            async for keys in _keys(shard, execution.user, str(plan.argument), plan.no_scan):
                if plan.reader == "KeysOnlyReader":
                    yield [text(key) for key in keys]
                else:
                    yield await _records(shard, execution.user, keys, plan.read_value)


def _take(iterator: Iterator[Any]) -> list[Any]:
    return [record for _, record in zip(range(PAGE), iterator)]  # noqa: B905 - the shorter one ends it


async def _keys(shard: Shard, user: str, pattern: str, no_scan: bool) -> AsyncIterator[list[bytes]]:
    if no_scan or not GLOB.search(pattern):
        yield [pattern.encode("utf-8", "surrogateescape")]
        return
    cursor = b"0"
    while True:
        cursor, keys = first(await shard.calls.run_async(user, [("SCAN", cursor, "MATCH", pattern, "COUNT", PAGE)]))
        if keys:
            yield keys
        if cursor == b"0":
            return


async def _records(shard: Shard, user: str, keys: list[bytes], read_value: bool) -> list[dict[str, Any]]:
    if not read_value:
        return [{"key": text(key), "event": None} for key in keys]
    types = await shard.calls.run_async(user, [("TYPE", key) for key in keys])
    named = [(key, text(type)) for key, type in zip(keys, types, strict=True) if type != b"none"]
    values = await shard.calls.run_async(user, [_read(key, type) for key, type in named])
    return [
        {"key": text(key), "value": _value(type, value), "type": type, "event": None}
        for (key, type), value in zip(named, values, strict=True)
    ]


def _read(key: bytes | str, type: str) -> Command:
    command = READ.get(type, ("EXISTS",))
    return (*command, key, 0, -1) if type == "list" else (*command, key)


def _value(type: str, reply: Any) -> Any:
    """None for types whose value is not read, and when the key was gone or changed type meanwhile."""
    if type not in READ or isinstance(reply, Exception):
        return None
    if type == "hash" and isinstance(reply, list):
        reply = dict(zip(reply[::2], reply[1::2], strict=True))
    return text(reply)


async def event_record(shard: Shard, user: str, key: str, event: str, type: str, read_value: bool) -> dict[str, Any]:
    """The record of a keyspace event; the value is the key's at this moment."""
    record: dict[str, Any] = {"key": key, "value": None, "type": None if type == "none" else type, "event": event}
    if read_value and type in READ:
        (reply,) = await shard.calls.run_async(user, [_read(key, type)])
        record["value"] = _value(type, reply)
    return record
