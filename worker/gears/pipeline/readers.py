"""The readers of runs, and the records of events and misses.

Keys are read through the module in pages: types in one tick, values in the next.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shardqa.worker.calls import Calls, Command, Rights, first
from shardqa.worker.gears.pipeline.plan import GIVEN, GIVEN_TO_ALL, RunPlan
from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.pipeline.slot_reader import Elsewhere, SlotReader, glob
from shardqa.worker.nodes import Cluster
from shardqa.worker.runtime import KeyEvent

KEYS_PER_SCAN = 500  # keys of one SCAN step and of one chunk of records
SCAN = 1000  # KeysOnlyReader's COUNT, unless it is given
GLOB = re.compile(r"[*?\[\\]")
READ = {"string": ("GET",), "hash": ("HGETALL",), "list": ("LRANGE",)}  # types whose value a record carries


def text(data: Any) -> Any:
    """Returns bytes as str where they are UTF-8, also within containers."""
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
class Share:
    """The slots of a cluster that one shard reads in an execution."""

    slots: tuple[tuple[int, int], ...]  # ranges, both ends included: those it had at the start
    elsewhere: Elsewhere | None  # reads one that has gone to another shard


class Readers:
    """The sources of the records of plans on this shard. Loop's thread only."""

    def __init__(self, calls: Calls, cluster: Cluster) -> None:
        self._calls = calls
        self._cluster = cluster

    async def chunks(self, run: Run, plan: RunPlan, share: Share) -> AsyncIterator[list[Any]]:
        """Yields the records of a run on this shard."""
        if self._cluster.enabled and (keyspace := await self.slots_of(run, plan)) is not None:
            every = [slot for first, last in share.slots for slot in range(first, last + 1)]
            async for page in keyspace.records(every, share.elsewhere):
                yield page
            return
        match plan.reader:
            case _ if plan.reader in (GIVEN, GIVEN_TO_ALL):
                yield list(plan.argument)
            case "ShardsIDReader":
                yield [self._cluster.node if self._cluster.enabled else "1"]
            case "PythonReader":
                iterator = iter(await run.threads.in_pool(run, plan.argument))
                while chunk := await run.threads.in_pool(run, _take, iterator):
                    yield chunk
            case "KeysOnlyReader":
                pattern, exact = await _pattern(run, plan)
                async for keys in self._keys(run.rights, pattern, exact, plan.options.get("count", SCAN)):
                    yield [text(key) for key in keys]
            case "StreamReader":
                start = str(plan.options.get("fromId", "0-0"))
                async for keys in self._keys(run.rights, str(plan.argument), False, KEYS_PER_SCAN, "stream"):
                    for key in keys:
                        async for page in self._messages(run.rights, key, start):
                            yield page
            case _:
                exact = bool(plan.options.get("noScan", False))
                reader = RecordReader(self._calls, run.rights, bool(plan.options.get("readValue", True)))
                none = True
                async for keys in self._keys(run.rights, str(plan.argument), exact, KEYS_PER_SCAN):
                    none = False
                    yield await reader.records(keys)
                if exact and none and self._cluster.owns(str(plan.argument)):
                    yield [{"key": str(plan.argument), "value": None, "type": "empty", "event": None}]

    async def slots_of(self, run: Run, plan: RunPlan) -> SlotReader | None:
        """Returns the reader of many keys of a cluster, else None. Raises ResponseError for who may not SCAN."""
        if plan.reader == "KeysOnlyReader":
            pattern, exact = await _pattern(run, plan)
        elif plan.reader == "KeysReader":
            pattern, exact = str(plan.argument), bool(plan.options.get("noScan", False))
        else:
            return None
        if exact or not GLOB.search(pattern):
            return None
        first(await self._calls.check(run.rights, [("SCAN", "0")]))
        names_only = plan.reader == "KeysOnlyReader"
        reader = RecordReader(self._calls, run.rights, bool(plan.options.get("readValue", True)))

        async def read(keys: list[bytes]) -> list[Any]:
            if names_only:
                return [text(key) for key in keys]
            pages = [keys[at : at + KEYS_PER_SCAN] for at in range(0, len(keys), KEYS_PER_SCAN)]
            return [record for page in pages for record in await reader.records(page)]

        return SlotReader(self._calls, glob(pattern.encode("utf-8", "surrogateescape")), read)

    async def _keys(
        self, rights: Rights, pattern: str, exact: bool, count: int, type: str | None = None
    ) -> AsyncIterator[list[bytes]]:
        """Yields keys that this shard has; `type` is checked where the pattern is scanned for."""
        if exact or not GLOB.search(pattern):
            key = pattern.encode("utf-8", "surrogateescape")
            if self._cluster.owns(key) and first(await self._calls.run_async(rights, [("EXISTS", key)])):
                yield [key]
            return
        cursor = b"0"
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", count, *(("TYPE", type) if type else ()))
            cursor, keys = first(await self._calls.run_async(rights, [command]))
            if keys:
                yield keys
            if cursor == b"0":
                return

    async def _messages(self, rights: Rights, key: bytes, start: str) -> AsyncIterator[list[dict[str, Any]]]:
        """Yields the messages of one stream behind the id `start`."""
        start = start if start.startswith(("(", "-")) else f"({start}"
        while True:
            page = first(await self._calls.run_async(rights, [("XRANGE", key, start, "+", "COUNT", KEYS_PER_SCAN)]))
            if page:
                yield [message(key, id, fields) for id, fields in page]
            if len(page) < KEYS_PER_SCAN:
                return
            start = f"({page[-1][0].decode()}"


def _take(iterator: Iterator[Any]) -> list[Any]:
    return [record for _, record in zip(range(KEYS_PER_SCAN), iterator)]  # noqa: B905 - the shorter one ends it


async def _pattern(run: Run, plan: RunPlan) -> tuple[str, bool]:
    """Returns what KeysOnlyReader looks for on this shard, and whether that is a key's whole name."""
    if not isinstance(count := plan.options.get("count", SCAN), int) or count < 1:
        raise ValueError(f"count: value is not an integer from 1 on: {count!r}")
    generator = plan.options.get("patternGenerator")
    if generator is None:
        return str(plan.argument), bool(plan.options.get("noScan", False))
    pattern, exact = await run.threads.in_pool(run, generator)
    return str(pattern), bool(exact)


def message(key: bytes | str, id: bytes, fields: list[bytes]) -> dict[str, Any]:
    """Returns the record of one message of a stream."""
    value = dict(zip(fields[::2], fields[1::2], strict=True))
    return {"key": text(key), "id": text(id), "value": text(value)}


class RecordReader:
    """Reads records of keys page by page: each page as if its keys had the type that most had before; missing keys
    and those of another type are read once more."""

    def __init__(self, calls: Calls, rights: Rights, read_value: bool) -> None:
        self._calls = calls
        self._rights = rights
        self._read_value = read_value
        self._guess = "hash"

    async def records(self, keys: list[bytes]) -> list[dict[str, Any]]:
        if not self._read_value:
            return [{"key": text(key), "event": None} for key in keys]
        guess = self._guess
        replies = await self._calls.run_async(self._rights, [_read(key, guess) for key in keys])
        # An error tells of another type; nothing of a key that is not there, or an empty string.
        values = {
            key: (guess, reply)
            for key, reply in zip(keys, replies, strict=True)
            if reply and not isinstance(reply, Exception)
        }
        if len(values) < len(keys):
            values |= await self._by_type([key for key in keys if key not in values])
            types = [type for type, _ in values.values() if type in READ]
            self._guess = max(READ, key=types.count)
        return [
            {"key": text(key), "value": _value(*values[key]), "type": values[key][0], "event": None}
            for key in keys
            if key in values
        ]

    async def _by_type(self, keys: list[bytes]) -> dict[bytes, tuple[str, Any]]:
        """Returns the type and value of the keys that exist."""
        types = await self._calls.run_async(self._rights, [("TYPE", key) for key in keys])
        there = ((key, type) for key, type in zip(keys, types, strict=True) if isinstance(type, bytes))
        pairs = [(key, text(type)) for key, type in there if type != b"none"]
        values = await self._calls.run_async(self._rights, [_read(key, type) for key, type in pairs])
        return {key: (type, value) for (key, type), value in zip(pairs, values, strict=True)}


def _read(key: bytes | str, type: str) -> Command:
    command = READ.get(type, ("EXISTS",))
    return (*command, key, 0, -1) if type == "list" else (*command, key)


def _value(type: str, reply: Any) -> Any:
    """Returns a key's value; None for types that are not read, and for a key that is gone or of another type now."""
    if type not in READ or isinstance(reply, Exception):
        return None
    if type == "hash" and isinstance(reply, list):
        try:
            words = [word.decode() for word in reply]
        except UnicodeDecodeError:
            words = text(reply)
        return dict(zip(words[::2], words[1::2], strict=True))
    return text(reply)


async def event_records(
    calls: Calls, rights: Rights, events: Sequence[KeyEvent], read_value: bool = True
) -> list[dict[str, Any]]:
    """Returns the records of keyspace events, read at once; the values are those of this moment."""
    if not read_value:
        return [{"key": event.key, "event": event.event} for event in events]
    readable = [event for event in events if event.type in READ]
    replies = await calls.run_async(rights, [_read(event.key, event.type) for event in readable]) if readable else []
    values = {id(event): _value(event.type, reply) for event, reply in zip(readable, replies, strict=True)}
    return [
        {
            "key": event.key,
            "value": values.get(id(event)),
            "type": "empty" if event.type == "none" else event.type,
            "event": event.event,
        }
        for event in events
    ]
