"""What this node knows of its cluster: its tag, and ordinary connections to the other masters.

The slot table is read through the module once a second (and when the role changes), so `hashtag()` costs nothing
and is at most a second behind. Connections belong to the event loop's thread.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis import AuthenticationError, RedisError, ResponseError
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from shardqa.module.worker.calls import Argument, Calls, first
from shardqa.module.worker.gears.hashtags import tag_of_slot

REFRESH = 1.0  # seconds between two looks at the slot table
CONNECT_TIMEOUT = 1.0  # seconds
REPLY_TIMEOUT = 10.0  # seconds a peer may take
CONNECTIONS = 16  # to one peer; one more waits for a free one


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Range:
    """One slot range and its nodes, the master first."""

    start: int
    end: int
    nodes: tuple[Node, ...]


class Cluster:
    def __init__(self, calls: Calls, node: str, enabled: bool, role: str) -> None:
        self._calls = calls
        self.node = node  # this node's id, 40 hex digits
        self.enabled = enabled
        self.role = role  # 'master' or 'replica'; changed by the reading thread, read by all
        self._ranges: tuple[Range, ...] | None = None
        self._clients: dict[Node, Redis] = {}

    def hashtag(self) -> str:
        """Any thread. Raises redis.ResponseError when this shard owns no slots."""
        if not self.enabled:
            return tag_of_slot(0)
        if self._ranges is None:
            self._ranges = parse_slots(first(self._calls.run("", [("CLUSTER", "SLOTS")])))
        own = [r.start for r in self._ranges if any(node.id == self.node for node in r.nodes)]
        if not own:
            raise ResponseError("CLUSTERDOWN this node owns no slots and so has no hashtag; add it to the cluster")
        return tag_of_slot(min(own))

    async def refresh(self) -> None:
        """Reads the slot table; an error (the keyspace loads) keeps the last one."""
        if self.enabled:
            with suppress(ResponseError):
                self._ranges = parse_slots(first(await self._calls.run_async("", [("CLUSTER", "SLOTS")])))

    async def other_masters(self) -> list[Node]:
        """In the order of their lowest slots."""
        if not self.enabled:
            return []
        if self._ranges is None:
            await self.refresh()
        mine = {r.nodes[0].id for r in self._ranges or () if any(node.id == self.node for node in r.nodes)}
        masters = dict.fromkeys(r.nodes[0] for r in sorted(self._ranges or (), key=lambda r: r.start))
        return [node for node in masters if node.id not in mine]

    async def ask_peers(self, command: Sequence[Argument], patience: float = REPLY_TIMEOUT) -> list[Any | Exception]:
        """The same command on every other master at once; what fails is an exception in its place."""
        nodes = await self.other_masters()
        return list(await asyncio.gather(*(self._ask(node, command, patience) for node in nodes)))

    async def _ask(self, node: Node, command: Sequence[Argument], patience: float) -> Any | Exception:
        try:
            async with asyncio.timeout(patience):
                client = await self._client(node)
                return await client.execute_command(*command)  # type: ignore[no-untyped-call, unused-ignore]
        except (RedisError, OSError, TimeoutError) as error:
            if isinstance(error, AuthenticationError):
                self._clients.pop(node, None)  # the password may have changed: the next try reads it anew
            if isinstance(error, ResponseError):
                return error
            return ResponseError(f"ERR shard {node.host}:{node.port} did not answer: {error or type(error).__name__}")

    async def _client(self, node: Node) -> Redis:
        client = self._clients.get(node)
        if client is None:
            client = Redis(
                host=node.host,
                port=node.port,
                username=await self._config("masteruser"),
                password=await self._config("masterauth"),
                protocol=2,
                max_connections=CONNECTIONS,
                socket_connect_timeout=CONNECT_TIMEOUT,
                retry=Retry(NoBackoff(), 0),  # a run must not happen twice; pooled connections are checked before use
            )
            self._clients[node] = client
        return client

    async def _config(self, name: str) -> str | None:
        reply = first(await self._calls.run_async("", [("CONFIG", "GET", name)]))
        return bytes(reply[1]).decode() or None if reply else None


def parse_slots(reply: list[Any]) -> tuple[Range, ...]:
    """Of CLUSTER SLOTS: [start, end, [host, port, id, …], …] each."""
    return tuple(
        Range(start, end, tuple(Node(_text(n[2]), _text(n[0]), n[1]) for n in nodes)) for start, end, *nodes in reply
    )


def _text(value: Any) -> str:
    return bytes(value).decode() if value else ""
