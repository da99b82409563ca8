"""The cluster from outside: which nodes it has and how they do, and whether its shards can answer."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from time import perf_counter

from redis.asyncio.cluster import ClusterNode

from shardqa import filters, keys, topology
from shardqa.config import Settings
from shardqa.description import CorporaOfShard, ShardDescription
from shardqa.engine import activity
from shardqa.engine.connections import Reply, Shards
from shardqa.errors import ClusterUnavailable, ShardqaError
from shardqa.filters import DocumentFilter
from shardqa.schema import ClusterInfo, NodeInfo, ShardInfo
from shardqa.topology import Node

NODE_SECONDS = 1.5  # for all that one node is asked: the page is there within two seconds, whatever hangs
LOOK_SECONDS = 1.8  # for a look at one shard: whoever watches the process waits for two


@dataclass(frozen=True, slots=True)
class Counted:
    """The documents that the sizes of nodes are of."""

    corpora: Collection[str] | None  # None: all
    filter: str  # canonical


class ClusterView:
    def __init__(self, settings: Settings, shards: Shards) -> None:
        self._model = settings.model
        self._shards = shards

    async def shards(self) -> list[ShardInfo]:
        """Lists every master, with its tag when its functions answer."""
        return [_shard_info(reply) for reply in await self._shards.everywhere("RG.TRIGGER", "Shard")]

    async def problems(self) -> list[str]:
        """A sentence for each shard that can't answer or take documents; empty when all can."""
        return (await self.readiness())[1]

    async def readiness(self) -> tuple[bool, list[str]]:
        """Whether some shard can answer, and the problems, within LOOK_SECONDS."""
        nodes = self._shards.nodes()
        if not nodes:
            return False, ["the cluster has no masters"]
        looks = await asyncio.gather(*(self._look(node) for node in nodes))
        problems = [f"{node.name}: {problem}" for node, (_, problem) in zip(nodes, looks, strict=True) if problem]
        return any(answers for answers, _ in looks), problems

    async def _look(self, node: ClusterNode) -> tuple[bool, str | None]:
        """Whether this shard can answer, and its problems."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                shard = _shard_info(await self._shards.reply(node, "RG.TRIGGER", "Shard"))
                problem = await self._problem(shard)
        except TimeoutError:
            return False, f"it did not answer within {LOOK_SECONDS:g} s"
        return problem is None, problem or _refusal(shard)

    async def _problem(self, shard: ShardInfo) -> str | None:
        """The reason why one shard can't answer."""
        if shard.tag is None:
            return shard.error
        if shard.indexing:
            return f"it reads its passages into its index, {shard.passages:,} so far"
        key = keys.model(self._model, shard.tag)
        try:
            has_reader = bool(await self._shards.by_key(key, "EXISTS"))
        except ShardqaError as fault:
            return str(fault)
        return None if has_reader else f"the reader {key!r} is not stored; run 'shardqa prepare'"

    async def nodes(self, corpora: Collection[str] | None = None, filter: DocumentFilter | None = None) -> ClusterInfo:
        """Lists every node, with the sizes of these corpora (None: of all) and of what `filter` lets through.

        Raises ClusterUnavailable where no master tells the topology.
        """
        nodes = await self._topology()
        addresses = {node.id: node.address for node in nodes}
        scope = Counted(corpora, filters.canonical(filter))
        infos = await asyncio.gather(*(self._node(node, addresses, scope) for node in nodes))
        return ClusterInfo(model=self._model, nodes=list(infos))

    async def _topology(self) -> list[Node]:
        fault: ShardqaError | None = None
        for master in self._shards.nodes():
            reply = await self._shards.reply(master, "CLUSTER", "NODES")
            if reply.fault is None:
                text = reply.value if isinstance(reply.value, str) else reply.value.decode(errors="replace")
                return [node for node in topology.parse(text) if not node.flags & {"handshake", "noaddr"}]
            fault = reply.fault
        raise ClusterUnavailable(f"no master tells the cluster's nodes: {fault or 'none is known'}; is one running?")

    async def _node(self, node: Node, addresses: dict[str, str], scope: Counted) -> NodeInfo:
        info = NodeInfo(
            node=node.address,
            role="replica" if node.role == "replica" else "master",
            master=addresses.get(node.master or ""),
            slots=list(node.slots),
            moving=len(node.moving),
        )
        try:
            async with asyncio.timeout(NODE_SECONDS):
                await self._fill(info, self._shards.node(node.address), scope)
        except TimeoutError:
            info.error = f"it did not answer within {NODE_SECONDS:g} s"
        except ShardqaError as fault:
            info.error = str(fault)
        return info

    async def _fill(self, info: NodeInfo, node: ClusterNode, scope: Counted) -> None:
        start = perf_counter()
        await self._shards.on(node, "PING")
        info.ms = round(1e3 * (perf_counter() - start), 3)
        reply = await self._shards.reply(node, "INFO", "memory", "shardqa")
        if reply.fault is None:
            counts = activity.fields(reply.value)
            info.worker = str(counts.get("shardqa_worker_state", "no module"))
            if scope.corpora is None and not scope.filter:
                info.memory = int(str(counts.get("used_memory", 0)))
                info.restarts = int(str(counts.get("shardqa_worker_restarts", 0)))
                info.aside = int(str(counts.get("shardqa_documents_aside", 0)))
                info.answers_kept = int(str(counts.get("shardqa_hook_hits", 0)))
                info.answers_read = int(str(counts.get("shardqa_miss_count", 0)))
                info.reading_ms = int(str(counts.get("shardqa_miss_us_sum", 0))) / 1e3
        if info.role == "master":
            await self._fill_shard(info, node, scope)

    async def _fill_shard(self, info: NodeInfo, node: ClusterNode, scope: Counted) -> None:
        words = [scope.filter] if scope.filter else []
        corpora = CorporaOfShard.parse(await self._shards.on(node, "RG.TRIGGER", "Corpora", *words))
        info.tag, info.indexing, info.refuses = corpora.shard.tag, corpora.shard.indexing, corpora.shard.refuses
        parts = [part for name, part in corpora.corpora.items() if scope.corpora is None or name in scope.corpora]
        info.documents = sum(part.documents for part in parts)
        info.passages = sum(part.passages for part in parts)
        reply = await self._shards.reply(node, "EXISTS", keys.model(self._model, info.tag))
        info.has_reader = None if reply.fault is not None else bool(reply.value)


def _refusal(shard: ShardInfo) -> str | None:
    if shard.refuses is None:
        return None
    return f"it stores nothing ({shard.refuses}): questions are answered, answers not kept, documents refused"


def _shard_info(reply: Reply) -> ShardInfo:
    if reply.fault is not None:
        return ShardInfo(node=reply.node, tag=None, error=str(reply.fault))
    shard = ShardDescription.parse(reply.value)
    return ShardInfo(
        node=reply.node, tag=shard.tag, indexing=shard.indexing, passages=shard.passages, refuses=shard.refuses
    )
