"""Messages between the workers of a cluster, and the proof that a message comes from one of them.

A message is `RG._PEER <sender> <token> <verb> <argument>…` on an ordinary connection to the other master. A worker
makes one random token for each peer and for its own life. Who gets a token it does not know asks the node that the
sender claims to be, at the address at which the cluster itself knows that node, whether it made this token for this
peer. So a client can't pass for a peer, whatever its rights are: the real node denies the token. The command is kept
out of MONITOR and of the slow log, where a token could be read.

Loop's thread only.
"""

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import TryAgainError

from shardqa.topology import Node
from shardqa.worker import resp
from shardqa.worker.calls import Argument
from shardqa.worker.nodes import Cluster

COMMAND = "RG._PEER"
VOUCH = "VOUCH"  # the one verb that needs no proof: did you make this token for me?
TOKEN = 32  # random bytes
REPLY_SECONDS = 30.0  # seconds for one message: every verb answers at once, but a node that computes may be late

# verbs that may come twice
REPEATED = {"REQUIRE", "PAUSE", "PREPARE", "DISCARD", "UNREGISTER", "DROP", "ABORT", "ABORTED"}

Handler = Callable[[str, list[bytes]], Awaitable[bytes]]  # (the sender's node id, the arguments) -> RESP


class NoPeer(Exception):
    """The sender that a message names is no node of this cluster, or did not send it."""


class Peers:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: dict[str, str] = {}  # node id -> the token we made for it
        self._proven: dict[str, str] = {}  # node id -> the token it vouched for
        self._asking: dict[str, asyncio.Lock] = {}  # node id -> one question at a time
        self._greeting: dict[str, asyncio.Lock | None] = {}  # node id -> for its first message; None: it had one
        self._handlers: dict[str, Handler] = {}

    def handle_with(self, **by_verb: Handler) -> None:
        assert not self._handlers.keys() & by_verb.keys()
        self._handlers.update(by_verb)

    async def send(self, node: Node, verb: str, *arguments: Argument, patience: float = REPLY_SECONDS) -> Any:
        """Returns the reply of one peer. Raises redis.ResponseError, which names a node that did not answer."""
        token = self._made.setdefault(node.id, secrets.token_hex(TOKEN))
        greeting = self._greeting.setdefault(node.id, asyncio.Lock())
        if greeting is not None:
            await self._greet(node, token, greeting, patience)
        message = (COMMAND, self._cluster.node, token, verb, *arguments)
        reply = await self._cluster.ask(node, message, patience)
        if isinstance(reply, TryAgainError) and verb in REPEATED:
            reply = await self._cluster.ask(node, message, patience)  # of the next worker
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def _greet(self, node: Node, token: str, greeting: asyncio.Lock, patience: float) -> None:
        """Greets a peer by one message, while others wait: many could take all connections and leave none for the
        peer's question about our token. The others go on, whatever its answer."""
        async with greeting:
            if self._greeting[node.id] is greeting:
                reply = await self._cluster.ask(node, (COMMAND, self._cluster.node, token, "ALIVE", ""), patience)
                self._greeting[node.id] = asyncio.Lock() if isinstance(reply, Exception) else None

    async def send_all(
        self, nodes: Sequence[Node], verb: str, *arguments: Argument, patience: float = REPLY_SECONDS
    ) -> list[Any | BaseException]:
        messages = (self.send(node, verb, *arguments, patience=patience) for node in nodes)
        return list(await asyncio.gather(*messages, return_exceptions=True))

    async def receive(self, arguments: list[bytes]) -> bytes:
        """Answers RG._PEER, which anybody may send."""
        if len(arguments) < 3:
            return resp.error(f"ERR wrong number of arguments for '{COMMAND}' command")
        sender, token, verb = (word.decode("utf-8", "replace") for word in arguments[:3])
        if verb == VOUCH:
            return self._vouch(sender, arguments[3:])
        try:
            await self._prove(sender, token)
        except NoPeer as error:
            return resp.error(f"NOPERM {error}")
        handler = self._handlers.get(verb)
        if handler is None:
            return resp.error(f"ERR message {verb[:40]!r} is unknown here; the nodes run different versions of shardqa")
        return await handler(sender, arguments[3:])

    def _vouch(self, asker: str, arguments: list[bytes]) -> bytes:
        own = self._made.get(asker)
        good = own is not None and len(arguments) == 1 and hmac.compare_digest(own.encode(), arguments[0])
        return resp.encode(int(good))

    async def _prove(self, sender: str, token: str) -> None:
        if len(token) != 2 * TOKEN:
            raise NoPeer(f"{COMMAND} is for the nodes of this cluster")
        if self._is_proven(sender, token):
            return
        node = await self._cluster.node_of(sender)
        if node is None or sender == self._cluster.node:
            raise NoPeer(f"{sender[:40]!r} is no other node of this cluster")
        async with self._asking.setdefault(sender, asyncio.Lock()):
            if self._is_proven(sender, token):
                return
            question = (COMMAND, self._cluster.node, "", VOUCH, token)
            if await self._cluster.ask(node, question, REPLY_SECONDS) != 1:
                raise NoPeer(f"node {sender} did not send this")
            self._proven[sender] = token

    def _is_proven(self, sender: str, token: str) -> bool:
        proven = self._proven.get(sender)
        return proven is not None and hmac.compare_digest(proven.encode(), token.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The cluster as this node knows it, and messages to its other workers."""

    cluster: Cluster
    peers: Peers
