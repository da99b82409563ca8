"""Connections to the masters of a cluster, with Redis' errors as faults of shardqa.errors.

One asyncio loop owns a Shards. Commands go straight to a node's pool (`ClusterNode.execute_command`): a blocked
GET or trigger holds its connection's pipeline, so each one in flight has a connection of its own, and a dead node
costs two refused connections at most rather than the cluster client's retries, a hung one two seconds once
(liveness.py). Redirects are followed here, too: the client's own loop sends ASKING and the command it is for on
connections that may be two.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import Any, TypeAlias, TypeVar

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, PipelineCommand, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from shardqa import errors, request, streaming, topology
from shardqa.config import Settings
from shardqa.engine import tracing
from shardqa.engine.liveness import Liveness, Unresponsive
from shardqa.errors import (
    AnswerTimeout,
    ClusterUnavailable,
    ShardFailed,
    ShardqaError,
    TooManyRequests,
    UserRefused,
    WritesRefused,
)
from shardqa.streaming import FilePart
from shardqa.transient import is_transient, may_have_a_new_master, may_tell_of_a_failover, write_refusal

Value = TypeVar("Value")
Argument: TypeAlias = str | bytes | int | float | FilePart
CONNECT_SECONDS = 5.0  # the last resort: liveness.py finds a host sooner that does not even refuse
CONNECTIONS = 10_000  # to one node, as many as it takes itself; the API bounds requests, not refusals here
REDIRECTS = 4  # MOVED and ASK followed for one command: a slot moves once, and may move on
SLOW_SECONDS = 1.0  # a command that takes longer is logged
LOOK_SECONDS = 1.0  # that a look at the topology may take before another node is asked first
LOOKS = 4  # the last may take as long as any command
REFRESH_SECONDS = 0.5  # least time between two looks at the topology, however many questions fail meanwhile

log = logging.getLogger("shardqa.engine")
log.addHandler(logging.NullHandler())  # the command line says its faults itself

BY_CODE: dict[str, type[ShardqaError]] = {
    cls.code: cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, ShardqaError)
}


def explain(error: BaseException, node: str) -> ShardqaError:
    """A redis error as the fault it means: functions on shards reply `ERR <code>: <sentence>`."""
    text = str(error)
    code, colon, sentence = text.partition(": ")
    if colon and code in BY_CODE:
        return BY_CODE[code](sentence)
    if isinstance(error, exceptions.AuthenticationError | exceptions.NoPermissionError):
        return UserRefused(
            f"shard {node} refuses this user: {text}; it needs its password and +get +shardqa.get +rg.trigger"
        )
    if text.startswith("BUSY"):
        return TooManyRequests(f"shard {node} has as much waiting as it takes ({text}); try again in a moment")
    if text.startswith("TIMEOUT") or isinstance(error, exceptions.TimeoutError | asyncio.TimeoutError):
        return AnswerTimeout(f"shard {node} did not answer in time ({text or 'no reply'}); ask again later")
    if reason := write_refusal(error):
        return WritesRefused(f"shard {node} stores nothing now, {reason}; 'shardqa doctor' says how to mend it")
    if isinstance(error, exceptions.AskError):
        return ClusterUnavailable(f"a slot of shard {node} is on its way to another ({text}); try again in a moment")
    if is_transient(error):
        return ClusterUnavailable(f"shard {node} can't answer now ({text}); try again in a moment")
    if "nknown command" in text:
        return ClusterUnavailable(f"node {node} runs without the shardqa module ({text}); load it, or use 'shardqa up'")
    return ShardFailed(f"shard {node} failed: {text}")


async def _sent(node: ClusterNode, args: Sequence[Argument], asking: bool) -> Any:
    """The reply to a command, sent once more where its connection ended: a node that was restarted has ended all
    that are kept; one that is down refuses at once. So every command sent from here may run twice.
    """
    try:
        return await _sent_once(node, args, asking)
    except exceptions.ConnectionError as error:
        if type(error) is not exceptions.ConnectionError:  # a reply that redis-py counts among them, such as LOADING
            raise
    _reopen_idle(node)
    return await _sent_once(node, args, asking)


async def _sent_once(node: ClusterNode, args: Sequence[Argument], asking: bool) -> Any:
    try:
        if streaming.is_streamed(args):
            return await streaming.exchange_on(node, args, asking)
        if not asking:
            return await node.execute_command(*args)
        commands = [PipelineCommand(0, "ASKING"), PipelineCommand(1, *args)]
        await node.execute_pipeline(commands)  # on one connection: ASKING holds for the next command of its own
    except RuntimeError as error:  # uvloop's word for a connection that ended while it was made
        if type(error) is not RuntimeError:
            raise
        raise exceptions.ConnectionError(str(error)) from error
    reply = commands[1].result
    if isinstance(reply, Exception):
        raise reply
    return reply


def _reopen_idle(node: ClusterNode) -> None:
    """Has each idle connection opened anew by whoever takes it next. The node's own `disconnect_free_connections`
    closes them while they can still be taken: what is sent then meets one that another task is closing.
    """
    for connection in node._free:
        connection.mark_for_reconnect()


def _note(node: ClusterNode, args: Sequence[Argument], seconds: float, fault: ShardqaError | None = None) -> None:
    """Logs a command that was slow or failed, never the words that people ask."""
    command, ms = " ".join(_words(args)), seconds * 1_000
    extra = {"node": str(node.name), "command": command, "ms": round(ms, 1), "request": request.current.get()}
    what = f"failed: {fault}" if fault is not None else "is slow"
    level = logging.WARNING if fault is not None else logging.INFO
    log.log(level, "shard %s: %s %s (%.0f ms) %s", node.name, command, what, ms, extra["request"], extra=extra)


def _words(args: Sequence[Argument]) -> list[str]:
    """The command's name, and its trigger or the head of its key."""
    name = str(args[0])
    words = args[1:3] if name == "RG.TRIGGERONKEY" else args[1:2]
    return [name, *(_shown(word) for word in words)]


def _shown(word: Argument) -> str:
    text = word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)
    head, brace, _ = text.partition("}")
    return text[:120] if text.startswith("doc:") else f"{head}{brace}"[:80] if brace else text.partition(":")[0][:80]


@dataclass(frozen=True, slots=True)
class Reply:
    """A node's value, or its fault."""

    node: str  # host:port
    value: Any = None
    fault: ShardqaError | None = None


def values_and_failures(
    replies: list[Reply], parse: Callable[[Any], Value], others_are_known: bool = False
) -> tuple[list[tuple[str, Value]], list[str]]:
    """The parsed value of each node that replied, and the nodes that can't be reached; any other fault is raised.

    So is one of these where no node replied, unless the others' values are known.
    """
    values: list[tuple[str, Value]] = []
    failures: list[str] = []
    for reply in replies:
        if isinstance(reply.fault, ClusterUnavailable):
            failures.append(reply.node)
        elif reply.fault is not None:
            raise reply.fault
        else:
            values.append((reply.node, parse(reply.value)))
    if not values and not others_are_known:
        faults = [reply.fault for reply in replies if reply.fault]
        raise faults[0] if faults else ClusterUnavailable("the cluster has no masters; see 'shardqa status'")
    return values, failures


class NoCommands:
    """Stands in place of Redis' list of its commands: whoever sends one knows its node. redis-py asks the first master
    for it, and that may be the one that is down.
    """

    async def initialize(self, node: object = None) -> None:
        """Does nothing: no list is asked for."""


async def _looked(look: Callable[[], Awaitable[object]], longest: float) -> None:
    """Looks at the topology. redis-py asks one node after another, in another order each time, and waits for one that
    hangs: so a look is broken off, and begun again. Raises as `look` does; TimeoutError after the last.
    """
    for _ in range(LOOKS - 1):
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await look()
                return
    async with asyncio.timeout(longest):
        await look()


class Shards:
    """The masters of the cluster that `settings.redis` belongs to."""

    def __init__(self, settings: Settings, cluster: RedisCluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._liveness = Liveness()
        self._refreshing: asyncio.Task[None] | None = None  # at most one look at the topology at a time
        self._next_look = 0.0  # monotonic; none is begun before
        self._slots: dict[str, int] = {}  # one of each node's that was a master
        self._of_shard: dict[str, set[str]] = {}  # by node: those that were seen in one shard with it

    @classmethod
    async def connect(cls, settings: Settings) -> "Shards":
        """Raises ClusterUnavailable when no node answers or the server is no cluster."""
        user, password = settings.credentials
        cluster: RedisCluster = RedisCluster(
            startup_nodes=[ClusterNode(host, port) for host, port in settings.addresses],
            username=user,
            password=password,
            max_connections=CONNECTIONS,
            socket_timeout=None,  # redis-py would begin a task for each command; `_on` has the time in hand
            socket_connect_timeout=CONNECT_SECONDS,
            require_full_coverage=False,
            retry=Retry(NoBackoff(), 0),
            protocol=3,
            **settings.tls_options,
        )
        cluster.commands_parser = NoCommands()  # type: ignore[assignment]
        try:
            await _looked(cluster.initialize, settings.timeout)
        except exceptions.RedisClusterException as error:
            await cluster.aclose()
            if isinstance(error.__cause__, exceptions.AuthenticationError | exceptions.NoPermissionError):
                raise explain(error.__cause__, settings.redis) from error.__cause__
            raise ClusterUnavailable(
                f"no cluster at {settings.redis}: {error}; start one with 'shardqa up' or name a node with --redis"
            ) from error
        except (exceptions.RedisError, OSError) as error:
            await cluster.aclose()
            raise explain(error, settings.redis) from error
        return cls(settings, cluster)

    async def close(self) -> None:
        self._liveness.close()
        if self._refreshing is not None:
            self._refreshing.cancel()
        await self._cluster.aclose()

    def nodes(self) -> list[ClusterNode]:
        """The masters, in an order that does not change while the topology does not."""
        return sorted(self._cluster.get_primaries(), key=lambda node: str(node.name))

    def subscriber(self, attempt: int) -> Redis:
        """A client of its own for pub/sub on any one node, another at each attempt; the caller closes it."""
        nodes = self.nodes()
        node = nodes[attempt % len(nodes)] if nodes else None
        seeds = self._settings.addresses
        host, port = (node.host, node.port) if node else seeds[attempt % len(seeds)]
        user, password = self._settings.credentials
        return Redis(
            host=host,
            port=int(port),
            username=user,
            password=password,
            socket_connect_timeout=CONNECT_SECONDS,
            **self._settings.tls_options,
        )

    async def on(self, node: ClusterNode, *args: Argument, seconds: float | None = None) -> Any:
        """Runs a command on one node, or where that sends it by MOVED or ASK. Raises a ShardqaError.

        `seconds`: for one that may take longer than a question.
        """
        start = perf_counter()
        try:
            with tracing.sent(str(node.host), int(node.port), args):
                reply = await self._on(node, args, seconds)
        except ShardqaError as fault:
            if fault.status >= 500:
                _note(node, args, perf_counter() - start, fault)
            raise
        if (took := perf_counter() - start) >= SLOW_SECONDS:
            _note(node, args, took)
        return reply

    async def _on(self, node: ClusterNode, args: Sequence[Argument], seconds: float | None) -> Any:
        name = str(node.name)
        try:
            async with asyncio.timeout(seconds or self._settings.timeout):
                return await self._redirected(node, args)
        except Unresponsive as error:
            self.refresh()
            raise ClusterUnavailable(f"shard {name} is silent ({error}); see 'shardqa status'") from error
        except (exceptions.RedisError, OSError) as error:
            if not isinstance(error, exceptions.ResponseError) or may_tell_of_a_failover(error):
                self.refresh()
            raise explain(error, name) from error

    async def _redirected(self, node: ClusterNode, args: Sequence[Argument]) -> Any:
        """Raises what the last node raises, MovedError and AskError past REDIRECTS."""
        asking = False
        for _ in range(REDIRECTS):
            try:
                return await self._guarded(node, args, asking)
            except exceptions.AskError as error:  # MovedError is one
                self.refresh()
                asking = not isinstance(error, exceptions.MovedError)
                node = await self._named(error)
            except exceptions.ResponseError as error:
                heir = await self._heir(node) if may_have_a_new_master(error) else None
                if heir is None:
                    raise
                node, asking = heir, False
        return await self._guarded(node, args, asking)

    async def _guarded(self, node: ClusterNode, args: Sequence[Argument], asking: bool) -> Any:
        reply = _sent(node, args, asking)
        if streaming.is_streamed(args):
            return await reply  # while Redis writes a large file it answers no PING
        return await self._liveness.guard(node, reply)

    async def _named(self, error: exceptions.AskError) -> ClusterNode:
        """The node that a redirect names. Raises the redirect when the cluster does not know that node."""
        node = self._cluster.get_node(error.host, error.port)
        if node is None:
            await asyncio.wait([self.refresh()], timeout=2 * LOOK_SECONDS)
            node = self._cluster.get_node(error.host, error.port)
        if node is None:
            raise error
        return node

    async def _heir(self, node: ClusterNode) -> ClusterNode | None:
        """The replica that took over this master's slots, if need be after a look at the topology; None: none did."""
        if (heir := self._known_heir(node)) is None:
            await asyncio.wait([self.refresh()], timeout=2 * LOOK_SECONDS)
            heir = self._known_heir(node)
        return heir

    def _known_heir(self, node: ClusterNode) -> ClusterNode | None:
        now = self._cluster.nodes_manager.slots_cache.get(self._slots.get(str(node.name), -1), [node])[0]
        return now if now != node and now.name in self._of_shard.get(str(node.name), ()) else None

    async def everywhere(self, *args: Argument, but: Collection[str] = ()) -> list[Reply]:
        """Sends a command to every master at once, except those named; replies are in the order of `nodes()`.

        Where masters are missing, which no fault tells, the topology is looked at again soon: a node that is asked
        during a failover does not know the new one yet.
        """
        if len(self._cluster.nodes_manager.slots_cache) < topology.SLOTS:
            self.refresh()
        nodes = [node for node in self.nodes() if node.name not in but]
        return list(await asyncio.gather(*(self.reply(node, *args) for node in nodes)))

    async def reply(self, node: ClusterNode, *args: Argument) -> Reply:
        """Sends a command to one node."""
        try:
            return Reply(str(node.name), value=await self.on(node, *args))
        except ShardqaError as fault:
            return Reply(str(node.name), fault=fault)

    async def by_key(self, key: str, command: str, *args: Argument) -> Any:
        """Runs a command on the master of its key: `command key args`. Raises as `on` does."""
        return await self.on(self.owner(key), command, key, *args)

    def node(self, name: str) -> ClusterNode:
        """A node by its name, replicas included: one that was a master sends on. Raises ClusterUnavailable."""
        node = self._cluster.get_node(node_name=name)
        if node is None:
            raise ClusterUnavailable(f"node {name} is none that the cluster tells of from here; ask again")
        return node

    def owner(self, key: str | bytes) -> ClusterNode:
        """The master that serves `key`'s slot. Raises ClusterUnavailable when none does."""
        try:
            return self._cluster.get_node_from_key(key)  # type: ignore[return-value, arg-type]
        except exceptions.RedisClusterException as error:
            self.refresh()
            raise ClusterUnavailable(f"no master serves the slot of {key!r}: {error}; see 'shardqa status'") from error

    def refresh(self) -> asyncio.Task[None]:
        """Looks at the topology again, once for any number of callers, and returns the look."""
        if self._refreshing is None or self._refreshing.done():
            self._note_shards()
            self._refreshing = asyncio.create_task(self._refresh())
        return self._refreshing

    def _note_shards(self) -> None:
        """Adds to what was seen before: whoever looks in a failover may not hear of the former master."""
        slots = self._cluster.nodes_manager.slots_cache.items()
        for slot, nodes in {id(nodes): (slot, nodes) for slot, nodes in slots}.values():  # a range shares its list
            names = {str(node.name) for node in nodes}
            self._slots[str(nodes[0].name)] = slot
            self._of_shard |= {name: names | self._of_shard.get(name, set()) for name in names}

    async def _look(self) -> None:
        """Asks the nodes learnt, and those of the settings where none of them answers. Raises as redis-py does."""
        manager = self._cluster.nodes_manager
        known = manager.startup_nodes
        others = [(host, port) for host, port in self._settings.addresses if f"{host}:{port}" not in known]
        await manager.initialize(additional_startup_nodes_info=others)

    async def _refresh(self) -> None:
        await asyncio.sleep(self._next_look - monotonic())
        self._next_look = monotonic() + REFRESH_SECONDS
        with suppress(exceptions.RedisError, exceptions.RedisClusterException, OSError):  # the next fault looks again
            await _looked(self._look, self._settings.timeout)
