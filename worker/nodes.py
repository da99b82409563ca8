"""The cluster as this node knows it: its tag, and ordinary connections to the other masters.

The topology is read through the module once a second (and when the role changes), so `hashtag()` costs nothing
and is at most a second behind. Connections belong to the event loop's thread.
"""

import asyncio
import functools
import itertools
import string
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from redis import AuthenticationError, RedisError, ResponseError
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot

from shardqa import streaming, topology
from shardqa.errors import BadModel
from shardqa.topology import SLOTS, Node
from shardqa.worker.calls import WORKER, Argument, Calls, first
from shardqa.worker.peer_sockets import Connecting, PeerConnection

NODES = ("CLUSTER", "NODES")
REFRESH = 1.0  # seconds between two looks at the topology
CONNECT_TIMEOUT = 5.0  # seconds, with the first words: a loop that is busy is late with them
REPLY_TIMEOUT = 10.0  # seconds a peer may take
OWNER_TIMEOUT = 120.0  # seconds for a command on one key, a large document it may be
CONNECTIONS = 16  # to one peer; one more waits for a free one
LETTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase


@functools.cache
def tags() -> tuple[str, ...]:
    """Returns the tag of every slot, as RedisGears' `hashtag()` gives it: the shortest string of LETTERS that hashes to
    the slot, the first in their order among equals ('06S' for slot 0); three letters reach every slot.
    """
    by_slot: dict[int, str] = {}
    every = itertools.chain.from_iterable(itertools.product(LETTERS, repeat=length) for length in (1, 2, 3))
    while len(by_slot) < SLOTS:
        tag = "".join(next(every))
        by_slot.setdefault(key_slot(tag.encode()), tag)
    return tuple(by_slot[slot] for slot in range(SLOTS))


class Cluster:
    def __init__(self, calls: Calls, node: str, is_enabled: bool, role: str) -> None:
        self._calls = calls
        self.node = node  # this node's id, 40 hex digits
        self.enabled = is_enabled
        self.role = role  # 'master' or 'replica'; changed by the reading thread, read by all
        self._nodes: list[Node] | None = None  # None before the first look
        self._master: Node | None = None  # of this shard: this node or whom it replicates
        self._clients: dict[str, Redis] = {}  # by address
        self._connecting = Connecting.inherited()

    def hashtag(self) -> str:
        """Returns a tag of a slot of this shard. Any thread. Raises redis.ResponseError when it owns none."""
        if not self.enabled:
            return tags()[0]
        if self._nodes is None:
            self._learn(first(self._calls.run(WORKER, [NODES])))
        if self._master is None or not self._master.slots:
            raise ResponseError("CLUSTERDOWN this node owns no slots and so has no hashtag; add it to the cluster")
        return tags()[self._master.slots[0][0]]

    async def refresh(self) -> None:
        """Reads the topology; an error (the keyspace loads) keeps the last one."""
        if self.enabled:
            with suppress(ResponseError):
                self._learn(first(await self._calls.run_async(WORKER, [NODES])))

    def _learn(self, reply: bytes) -> None:
        """Any thread."""
        nodes = topology.parse(bytes(reply).decode("utf-8", "replace"))
        by_id = {node.id: node for node in nodes}
        own = by_id.get(self.node)
        self._master = own if own is None or own.master is None else by_id.get(own.master)
        self._nodes = nodes  # last: who sees it sees the master too

    async def other_masters(self) -> list[Node]:
        """Lists the other masters in the order of their lowest slots.

        While some slot has no known master (the cluster has just formed, say) it looks anew at each call: who goes by
        what was seen a second ago leaves out a shard without a word.
        """
        if not self.enabled:
            return []
        if sum(node.slot_count() for node in self._nodes or ()) < SLOTS:
            await self.refresh()
        own = self._master.id if self._master else None
        return [node for node in self._nodes or () if node.role == "master" and node.slots and node.id != own]

    async def ask_peers(self, command: Sequence[Argument]) -> list[Any | Exception]:
        """Sends a command to every other master at once; what fails is an exception in its place."""
        nodes = await self.other_masters()
        return list(await asyncio.gather(*(self.ask(node, command, REPLY_TIMEOUT) for node in nodes)))

    async def ask_owner(self, key: str, command: Sequence[Argument]) -> Any:
        """Asks the other master that has the key's slot. Raises ResponseError."""
        return first([await self.ask(await self._owner(key), command, OWNER_TIMEOUT)])

    async def send_to_owner(self, key: str, command: Sequence[Any], patience: float) -> Any:
        """Sends a command with files in it (streaming.py). Raises ResponseError."""
        node = await self._owner(key)

        async def send(client: Redis) -> Any:
            connection = await client.connection_pool.get_connection()
            try:
                return await streaming.exchange_async(connection, command)
            finally:
                await client.connection_pool.release(connection)

        return first([await self._on(node, send, patience)])

    async def _owner(self, key: str) -> Node:
        slot = int(key_slot(key.encode("utf-8", "surrogateescape")))
        node = next((node for node in await self.other_masters() if node.owns(slot)), None)
        if node is None:
            raise ResponseError(f"TRYAGAIN no other master has slot {slot}")
        return node

    async def node_of(self, id: str) -> Node | None:
        """The node of this id as the cluster knows it now; a new one is looked for once."""
        for look in range(2):
            node_there = next((node for node in self._nodes or () if node.id == id), None)
            if node_there is not None or look == 1 or not self.enabled:
                return node_there
            await self.refresh()
        return None

    def own_slots(self) -> tuple[tuple[int, int], ...]:
        """Ranges of slots of this shard, both ends included."""
        return self._master.slots if self._master else ()

    def owns(self, key: str | bytes) -> bool:
        """Whether the key's slot is this shard's."""
        if not self.enabled:
            return True
        slot = int(key_slot(key if isinstance(key, bytes) else key.encode("utf-8", "surrogateescape")))
        return any(low <= slot <= high for low, high in self.own_slots())

    def nodes(self) -> list[Node]:
        """The nodes last seen; empty outside cluster mode."""
        return list(self._nodes or ())

    async def ask(self, node: Node, command: Sequence[Argument], patience: float) -> Any | Exception:
        """The reply of one node; an error is an exception in its place."""

        async def send(client: Redis) -> Any:
            return await client.execute_command(*command)  # type: ignore[no-untyped-call, unused-ignore]

        return await self._on(node, send, patience)

    async def _on(self, node: Node, send: Callable[[Redis], Awaitable[Any]], patience: float) -> Any | Exception:
        try:
            async with asyncio.timeout(patience):
                return await send(await self._client(node))
        except (RedisError, OSError, TimeoutError, BadModel) as error:
            if isinstance(error, AuthenticationError):
                self._clients.pop(node.address, None)  # the password may have changed: the next try reads it anew
            if isinstance(error, ResponseError):
                return error
            return ResponseError(f"ERR shard {node.address} did not answer: {str(error) or type(error).__name__}")

    async def _client(self, node: Node) -> Redis:
        client = self._clients.get(node.address)
        if client is None:
            username, password = await self._config("masteruser"), await self._config("masterauth")
            pool = BlockingConnectionPool(
                max_connections=CONNECTIONS,
                timeout=None,  # who waits for a connection does so within its own patience
                host=node.host,
                port=node.port,
                username=username,
                password=password,
                protocol=2,
                socket_connect_timeout=CONNECT_TIMEOUT,
                socket_timeout=None,  # redis-py's own is 5 seconds; `patience` is the only one here
                retry=Retry(NoBackoff(), 0),  # a message must not come twice; connections are checked before use
                **self._way_to(node),
            )
            # Another may have made one meanwhile: one pool a node, or the bound is none.
            client = self._clients.setdefault(node.address, Redis.from_pool(pool))
        return client

    def _way_to(self, node: Node) -> dict[str, Any]:
        """Returns the options of redis-py's pool by which it makes a connection."""
        if self._connecting is None:
            return {}
        return {"connection_class": PeerConnection, "connecting": self._connecting, "node": node}

    async def _config(self, name: str) -> str | None:
        reply = first(await self._calls.run_async(WORKER, [("CONFIG", "GET", name)]))
        return bytes(reply[1]).decode() or None if reply else None
