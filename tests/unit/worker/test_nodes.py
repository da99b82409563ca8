"""Commands to another shard, over redis-py's connections."""

import asyncio
import inspect
from typing import Any

import pytest
from redis.asyncio.connection import AbstractConnection

from shardqa.topology import Node
from shardqa.worker.nodes import Cluster

SELF, PEER = "a" * 40, "b" * 40


class NothingConfigured:
    async def run_async(self, *_: Any) -> list[Any]:
        return [[]]


async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each command after a while."""
    while line := await reader.readline():
        if line.startswith(b"*"):
            await asyncio.sleep(0.2)
            writer.write(b"+OK\r\n")
    writer.close()


async def test_a_reply_has_no_deadline_but_its_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    """redis-py's own is 5 seconds: a part of a function that takes longer would be lost."""
    defaults: dict[str, Any] = inspect.unwrap(AbstractConnection.__init__).__kwdefaults__
    assert defaults["socket_timeout"] == 5
    monkeypatch.setitem(defaults, "socket_timeout", 0.05)
    async with await asyncio.start_server(late, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        node = Node(PEER, "127.0.0.1", port, "master", None, ((0, 16383),), frozenset(), frozenset(), True)
        cluster: Any = Cluster(NothingConfigured(), SELF, True, "master")  # type: ignore[arg-type]
        assert await cluster.ask(node, ("GET", "a"), 60.0) == b"OK"
        assert "did not answer" in str(await cluster.ask(node, ("GET", "a"), 0.05))
        await cluster._clients[node.address].aclose()


class Forming:
    """Says at the first look that the node is alone, and then that the cluster has formed."""

    def __init__(self) -> None:
        self.looks = 0

    async def run_async(self, *_: Any) -> list[bytes]:
        self.looks += 1
        peer = f"{PEER} 127.0.0.1:7001@17001 master - 0 0 2 connected 8192-16383\n" if self.looks > 1 else ""
        return [f"{SELF} 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-8191\n{peer}".encode()]


async def test_the_other_masters_are_looked_for_until_each_slot_has_one() -> None:
    calls: Any = Forming()
    cluster = Cluster(calls, SELF, True, "master")
    await cluster.refresh()
    assert [node.id for node in await cluster.other_masters()] == [PEER]
    await cluster.other_masters()
    assert calls.looks == 2
