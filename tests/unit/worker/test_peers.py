"""Messages between workers: each proves whose the first one is, over the connections that messages take as well."""

import asyncio
from typing import Any, cast

from shardqa.topology import Node
from shardqa.worker import resp
from shardqa.worker.calls import parse
from shardqa.worker.gears.cluster.peers import Peers


class FewConnections:
    """A cluster of two nodes, with two connections from each to the other."""

    def __init__(self, node: str, peers: dict[str, Peers]) -> None:
        self.node = node
        self._peers = peers
        self._free = asyncio.Semaphore(2)

    async def node_of(self, id: str) -> Node:
        return cast(Node, type("Known", (), {"id": id}))

    async def ask(self, node: Node, command: Any, _patience: float) -> Any:
        async with self._free:
            words = [word if isinstance(word, bytes) else str(word).encode() for word in command[1:]]
            await asyncio.sleep(0)
            return parse(await self._peers[node.id].receive(words), 1)[0]


def test_many_first_messages_both_ways_leave_room_for_the_questions() -> None:
    async def answer(_sender: str, _arguments: list[bytes]) -> bytes:
        return resp.OK

    async def replies() -> list[Any]:
        peers: dict[str, Peers] = {}
        for name in "ab":
            peers[name] = Peers(cast(Any, FewConnections(name, peers)))
            for verb in "RUN", "ALIVE":
                peers[name].handle_with(**{verb: answer})
        sent = [
            peers[one].send(cast(Node, type("To", (), {"id": other})), "RUN")
            for one, other in 5 * [("a", "b"), ("b", "a")]
        ]
        return await asyncio.wait_for(asyncio.gather(*sent), 10)

    assert {bytes(reply) for reply in asyncio.run(replies())} == {b"OK"}
