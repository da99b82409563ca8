"""The index follows the keyspace, against a keyspace of this file."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

import pytest
from redis import ResponseError

from shardqa import keys
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.keyspace_sync import AT_START, FIELDS, PREFIX, KeyspaceSync
from shardqa.gears_functions.shard.open_changes import OpenChanges
from shardqa.worker.runtime import Runtime

DOC = keys.doc("c", "mill")
PASSAGE = keys.passage("c", "mill", 0)


class Keyspace:
    """Plays a replica's Runtime for KeyspaceSync, on a dict of hashes."""

    def __init__(self, hashes: dict[str, dict[str, str]]) -> None:
        self.hashes = hashes
        self.resync: Callable[[str], Awaitable[None]] | None = None

    def role(self) -> str:
        return "replica"

    def log(self, text: str, level: str = "notice") -> None: ...

    def stat(self, name: str, value: int) -> None: ...

    def watch(self, prefix: str, changed: Any, resync: Callable[[str], Awaitable[None]]) -> None:
        if prefix == PREFIX:
            self.resync = resync

    async def call(self, *args: Any) -> Any:
        await asyncio.sleep(0)
        if args[0] == "HGET":
            value = self.hashes.get(args[1], {}).get(args[2])
            return None if value is None else value.encode()
        _, _, _, pattern, *_ = args
        return b"0", [name.encode() for name in self.hashes if fnmatchcase(name, pattern)]

    async def calls(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        await asyncio.sleep(0)
        return [self._reply(command) for command in commands]

    def _reply(self, command: Sequence[Any]) -> Any:
        if command[0] == "HGET":
            return self.hashes.get(command[1].decode(), {}).get(command[2], "").encode()
        if command[0] != "HMGET":
            return ResponseError("ERR This instance has cluster support disabled")
        found = self.hashes.get(command[1].decode(), {})
        return [found[field].encode() if field in found else None for field in FIELDS]


class Shard:
    def __init__(self) -> None:
        passage = {"title": "Mill", "text": "Ada built it.", "end": "13", "bytes": "13", "metadata": ""}
        keyspace = Keyspace({DOC: {"passages": "1"}, PASSAGE: passage})
        runtime, changes = cast(Runtime, keyspace), OpenChanges()
        epochs = ShardEpochs(runtime)
        self.sync = KeyspaceSync(runtime, epochs, changes)
        self.lock = DocumentLock(changes, epochs, self.sync)
        self.keyspace = keyspace

    async def start(self) -> None:
        async def settle_all() -> None: ...

        self.sync.follow(settle_all)
        assert self.keyspace.resync is not None
        await self.keyspace.resync(AT_START)


@pytest.fixture
def shard() -> Shard:
    return Shard()


async def test_a_document_that_is_being_replaced_is_found_right_after_a_start(shard: Shard) -> None:
    async with shard.lock.hold(DOC):
        await shard.start()
        await shard.sync.synced()
        assert PASSAGE in shard.sync.index("c")


async def test_a_document_that_is_being_removed_is_not_found_once_it_is_gone(shard: Shard) -> None:
    async with shard.lock.hold(DOC):
        await shard.start()
        del shard.keyspace.hashes[PASSAGE], shard.keyspace.hashes[DOC]
    assert PASSAGE not in shard.sync.index("c")
