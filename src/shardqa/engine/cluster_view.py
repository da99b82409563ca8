"""The cluster as a page shows it: each node with its slots, its state, and how long a PING to it takes."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from time import perf_counter

from redis.asyncio.cluster import ClusterNode

from shardqa import filters, keys, topology
from shardqa.description import CorporaOfShard
from shardqa.engine.connected import Connected
from shardqa.errors import ClusterUnavailable, ShardqaError
from shardqa.filters import DocumentFilter
from shardqa.schema import ClusterInfo, NodeInfo
from shardqa.topology import Node

NODE_SECONDS = 1.5  # for all that one node is asked: the page is there within two seconds, whatever hangs


@dataclass(frozen=True, slots=True)
class Counted:
    """What the sizes of nodes are of."""

    corpora: Collection[str] | None  # None: all
    filter: str  # canonical


class ClusterView(Connected):
    async def cluster(
        self, corpora: Collection[str] | None = None, filter: DocumentFilter | None = None
    ) -> ClusterInfo:
        """Every node, with the sizes of these corpora (None: of all) and of what `filter` lets through.

        Raises ClusterUnavailable where no master tells the topology.
        """
        nodes = await self._topology()
        addresses = {node.id: node.address for node in nodes}
        counted = Counted(corpora, filters.canonical(filter))
        found = await asyncio.gather(*(self._node(node, addresses, counted) for node in nodes))
        return ClusterInfo(model=self.settings.model, nodes=list(found))

    async def _topology(self) -> list[Node]:
        fault: ShardqaError | None = None
        for master in self.masters.nodes():
            reply = await self.masters.reply(master, "CLUSTER", "NODES")
            if reply.fault is None:
                text = reply.value if isinstance(reply.value, str) else reply.value.decode(errors="replace")
                return [node for node in topology.parse(text) if not node.flags & {"handshake", "noaddr"}]
            fault = reply.fault
        raise ClusterUnavailable(f"no master tells the cluster's nodes: {fault or 'none is known'}; is one running?")

    async def _node(self, node: Node, addresses: dict[str, str], counted: "Counted") -> NodeInfo:
        info = NodeInfo(
            node=node.address,
            role="replica" if node.role == "replica" else "master",
            master=addresses.get(node.master or ""),
            slots=list(node.slots),
            moving=len(node.moving),
        )
        connection = self.masters.known(node.host, node.port)
        if connection is None:
            info.error = "it is not reached from here"
            return info
        try:
            async with asyncio.timeout(NODE_SECONDS):
                await self._fill(info, connection, counted)
        except TimeoutError:
            info.error = f"it did not answer within {NODE_SECONDS:g} s"
        except ShardqaError as fault:
            info.error = str(fault)
        return info

    async def _fill(self, info: NodeInfo, node: ClusterNode, counted: "Counted") -> None:
        start = perf_counter()
        await self.masters.on(node, "PING")
        info.ms = round(1e3 * (perf_counter() - start), 3)
        told = await self.masters.reply(node, "INFO", "shardqa")
        info.worker = None if told.fault is not None else _worker(told.value)
        if info.role == "master":
            await self._fill_shard(info, node, counted)

    async def _fill_shard(self, info: NodeInfo, node: ClusterNode, counted: "Counted") -> None:
        words = [counted.filter] if counted.filter else []
        told = CorporaOfShard.parse(await self.masters.on(node, "RG.TRIGGER", "Corpora", *words))
        info.tag, info.indexing, info.refuses = told.shard.tag, told.shard.indexing, told.shard.refuses
        parts = [part for name, part in told.corpora.items() if counted.corpora is None or name in counted.corpora]
        info.documents = sum(part.documents for part in parts)
        info.passages = sum(part.passages for part in parts)
        stored = await self.masters.reply(node, "EXISTS", keys.model(self.settings.model, info.tag))
        info.has_reader = None if stored.fault is not None else bool(stored.value)


def _worker(info: object) -> str:
    """Its state as INFO tells it: redis-py gives a dictionary or, of a node of a cluster, the text."""
    if isinstance(info, dict):
        return str(info.get("shardqa_worker_state", "no module"))
    text = info.decode(errors="replace") if isinstance(info, bytes) else str(info)
    found = [line.partition(":")[2] for line in text.splitlines() if line.startswith("shardqa_worker_state:")]
    return found[0].strip() if found else "no module"
