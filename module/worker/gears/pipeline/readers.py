"""Where a run's records come from, and the records of events and misses.

Keys are read through the module in pages: types in one tick, values in the next.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shardqa.module.worker.calls import Command, Rights, first
from shardqa.module.worker.gears.pipeline.plan import GIVEN, RunPlan
from shardqa.module.worker.gears.pipeline.run import Run
from shardqa.module.worker.gears.pipeline.slot_reader import Elsewhere, SlotReader, glob
from shardqa.module.worker.shard import Shard

PAGE = 500  # keys of one SCAN step and of one chunk of records
SCAN = 1000  # KeysOnlyReader's COUNT, unless it is given
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


@dataclass(frozen=True, slots=True)
class Happened:
    """A keyspace event."""

    event: str
    key: str
    type: str


@dataclass(frozen=True, slots=True)
class Share:
    """What of a cluster a shard reads in an execution."""

    slots: tuple[tuple[int, int], ...]  # ranges, both ends included: those it had at the start
    elsewhere: Elsewhere | None  # reads one that has gone to another shard


async def chunks(shard: Shard, run: Run, plan: RunPlan, share: Share) -> AsyncIterator[list[Any]]:
    """The records of a run on this shard."""
    if shard.cluster.enabled and (keyspace := await slots_of(shard, run, plan)) is not None:
        every = [slot for first, last in share.slots for slot in range(first, last + 1)]
        async for page in keyspace.records(every, share.elsewhere):
            yield page
        return
    match plan.reader:
        case _ if plan.reader == GIVEN:
            yield list(plan.argument)
        case "ShardsIDReader":
            yield [shard.cluster.node if shard.cluster.enabled else "1"]
        case "PythonReader":
            iterator = iter(await run.threads.in_pool(run, plan.argument))
            while chunk := await run.threads.in_pool(run, _take, iterator):
                yield chunk
        case "KeysOnlyReader":
            pattern, exact = await _pattern(run, plan)
            count = int(plan.options.get("count", SCAN))
            async for keys in _keys(shard, run.rights, pattern, exact, count):
                yield [text(key) for key in keys]
        case "StreamReader":
            async for keys in _keys(shard, run.rights, str(plan.argument), False, PAGE, "stream"):
                for key in keys:
                    async for page in _messages(shard, run.rights, key, str(plan.options.get("fromId", "0-0"))):
                        yield page
        case _:
            exact = bool(plan.options.get("noScan", False))
            reader = RecordReader(shard, run.rights, bool(plan.options.get("readValue", True)))
            async for keys in _keys(shard, run.rights, str(plan.argument), exact, PAGE):
                yield await reader.records(keys)


async def slots_of(shard: Shard, run: Run, plan: RunPlan) -> SlotReader | None:
    """For readers of many keys of a cluster; None for all others. Raises ResponseError for who may not SCAN."""
    if plan.reader == "KeysOnlyReader":
        pattern, exact = await _pattern(run, plan)
    elif plan.reader == "KeysReader":
        pattern, exact = str(plan.argument), bool(plan.options.get("noScan", False))
    else:
        return None
    if exact or not GLOB.search(pattern):
        return None
    first(await shard.calls.check(run.rights, [("SCAN", "0")]))
    names_only = plan.reader == "KeysOnlyReader"
    reader = RecordReader(shard, run.rights, bool(plan.options.get("readValue", True)))

    async def read(keys: list[bytes]) -> list[Any]:
        if names_only:
            return [text(key) for key in keys]
        pages = [keys[at : at + PAGE] for at in range(0, len(keys), PAGE)]
        return [record for page in pages for record in await reader.records(page)]

    return SlotReader(shard, glob(pattern.encode("utf-8", "surrogateescape")), read)


def _take(iterator: Iterator[Any]) -> list[Any]:
    return [record for _, record in zip(range(PAGE), iterator)]  # noqa: B905 - the shorter one ends it


async def _pattern(run: Run, plan: RunPlan) -> tuple[str, bool]:
    """What KeysOnlyReader looks for here, and whether that is a key's whole name."""
    generator = plan.options.get("patternGenerator")
    if generator is None:
        return str(plan.argument), bool(plan.options.get("noScan", False))
    pattern, exact = await run.threads.in_pool(run, generator)
    return str(pattern), bool(exact)


async def _keys(
    shard: Shard, rights: Rights, pattern: str, exact: bool, count: int, type: str | None = None
) -> AsyncIterator[list[bytes]]:
    """Keys of this shard that are there; `type` is checked where the pattern is scanned for."""
    if exact or not GLOB.search(pattern):
        key = pattern.encode("utf-8", "surrogateescape")
        if shard.cluster.owns(key) and first(await shard.calls.run_async(rights, [("EXISTS", key)])):
            yield [key]
        return
    cursor = b"0"
    while True:
        command = ("SCAN", cursor, "MATCH", pattern, "COUNT", count, *(("TYPE", type) if type else ()))
        cursor, keys = first(await shard.calls.run_async(rights, [command]))
        if keys:
            yield keys
        if cursor == b"0":
            return


async def _messages(shard: Shard, rights: Rights, key: bytes, start: str) -> AsyncIterator[list[dict[str, Any]]]:
    """The messages of one stream behind the id `start`."""
    start = start if start.startswith(("(", "-")) else f"({start}"
    while True:
        page = first(await shard.calls.run_async(rights, [("XRANGE", key, start, "+", "COUNT", PAGE)]))
        if page:
            yield [message(key, id, fields) for id, fields in page]
        if len(page) < PAGE:
            return
        start = f"({page[-1][0].decode()}"


def message(key: bytes | str, id: bytes, fields: list[bytes]) -> dict[str, Any]:
    """The record of one message of a stream."""
    value = dict(zip(fields[::2], fields[1::2], strict=True))
    return {"key": text(key), "id": text(id), "value": text(value)}


class RecordReader:
    """Records of keys, a page after another: each page is read as if its keys had the type that most had before, and
    what turns out to be of another type, or not there, is asked for once more."""

    def __init__(self, shard: Shard, rights: Rights, read_value: bool) -> None:
        self._shard = shard
        self._rights = rights
        self._read_value = read_value
        self._guess = "hash"

    async def records(self, keys: list[bytes]) -> list[dict[str, Any]]:
        if not self._read_value:
            return [{"key": text(key), "event": None} for key in keys]
        guess = self._guess
        replies = await self._shard.calls.run_async(self._rights, [_read(key, guess) for key in keys])
        # An error tells of another type; nothing of a key that is not there, or an empty string.
        found = {
            key: (guess, reply)
            for key, reply in zip(keys, replies, strict=True)
            if reply and not isinstance(reply, Exception)
        }
        if len(found) < len(keys):
            found |= await self._by_type([key for key in keys if key not in found])
            types = [type for type, _ in found.values() if type in READ]
            self._guess = max(READ, key=types.count)
        return [
            {"key": text(key), "value": _value(*found[key]), "type": found[key][0], "event": None}
            for key in keys
            if key in found
        ]

    async def _by_type(self, keys: list[bytes]) -> dict[bytes, tuple[str, Any]]:
        """Type and value of those that are there."""
        types = await self._shard.calls.run_async(self._rights, [("TYPE", key) for key in keys])
        there = ((key, type) for key, type in zip(keys, types, strict=True) if isinstance(type, bytes))
        named = [(key, text(type)) for key, type in there if type != b"none"]
        values = await self._shard.calls.run_async(self._rights, [_read(key, type) for key, type in named])
        return {key: (type, value) for (key, type), value in zip(named, values, strict=True)}


def _read(key: bytes | str, type: str) -> Command:
    command = READ.get(type, ("EXISTS",))
    return (*command, key, 0, -1) if type == "list" else (*command, key)


def _value(type: str, reply: Any) -> Any:
    """None for types whose value is not read, and when the key was gone or changed type meanwhile."""
    if type not in READ or isinstance(reply, Exception):
        return None
    if type == "hash" and isinstance(reply, list):
        try:
            words = [word.decode() for word in reply]
        except UnicodeDecodeError:
            words = text(reply)
        return dict(zip(words[::2], words[1::2], strict=True))
    return text(reply)


async def event_record(shard: Shard, rights: Rights, happened: Happened, read_value: bool) -> dict[str, Any]:
    """The record of a keyspace event; the value is the key's at this moment."""
    (record,) = await event_records(shard, rights, [happened], read_value)
    return record


async def event_records(
    shard: Shard, rights: Rights, events: Sequence[Happened], read_value: bool
) -> list[dict[str, Any]]:
    """The same of several, read in one go."""
    if not read_value:
        return [{"key": one.key, "event": one.event} for one in events]
    read = [one for one in events if one.type in READ]
    replies = await shard.calls.run_async(rights, [_read(one.key, one.type) for one in read]) if read else []
    values = {id(one): _value(one.type, reply) for one, reply in zip(read, replies, strict=True)}
    return [
        {
            "key": one.key,
            "value": values.get(id(one)),
            "type": None if one.type == "none" else one.type,
            "event": one.event,
        }
        for one in events
    ]
