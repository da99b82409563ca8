"""Sockets to other nodes: the module connects them, since this process may open none (docs/frames.md, The peers).

Loop's thread only.
"""

import asyncio
import os
import socket
import struct
from typing import Any

from redis.asyncio import Connection

from shardqa.topology import Node

VARIABLE = "SHARDQA_PEERS_FD"  # names the descriptor; absent where a test plays the module
NODE_ID = 40  # hex digits
ANSWER = struct.Struct("<Qi")  # id of the request, errno


class Connecting:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._channel.setblocking(False)
        self._requests: dict[int, asyncio.Future[socket.socket]] = {}
        self._count = 0
        self._reading = False

    @classmethod
    def inherited(cls) -> "Connecting | None":
        number = os.environ.get(VARIABLE)
        return None if number is None else cls(socket.socket(fileno=int(number)))

    async def connect(self, node: Node) -> socket.socket:
        """A connected socket, the caller's. Raises OSError, also for what is no node of the cluster."""
        loop = asyncio.get_running_loop()
        if not self._reading:
            loop.add_reader(self._channel, self._answered)
            self._reading = True
        self._count += 1
        id = self._count
        self._requests[id] = loop.create_future()
        try:
            self._channel.send(struct.pack("<Q", id) + node.id.encode().ljust(NODE_ID)[:NODE_ID])
            return await self._requests[id]
        finally:
            del self._requests[id]

    def _answered(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._channel, ANSWER.size, 1)
        if not data:
            asyncio.get_running_loop().remove_reader(self._channel)  # the module has gone, and this process follows
            return
        id, error = ANSWER.unpack(data)
        connections = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        waiting = self._requests.get(id)
        if waiting is None or waiting.done():  # who asked has given up
            for connection in connections:
                connection.close()
        elif error or not connections:
            waiting.set_exception(OSError(error, os.strerror(error)))
        else:
            waiting.set_result(connections[0])


class PeerConnection(Connection):
    """A connection of redis-py over a socket that the module has connected."""

    def __init__(self, *, connecting: Connecting, node: Node, **options: Any) -> None:
        super().__init__(**options)
        self._connecting = connecting
        self._node = node
        self._connected: socket.socket | None = None

    def _connection_arguments(self) -> dict[str, Any]:
        return {"sock": self._connected}

    async def _connect(self) -> None:
        async with asyncio.timeout(self.socket_connect_timeout):
            self._connected = await self._connecting.connect(self._node)
        await super()._connect()  # type: ignore[no-untyped-call, unused-ignore]
