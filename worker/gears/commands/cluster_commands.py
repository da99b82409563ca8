"""RG.INFOCLUSTER, RG.REFRESHCLUSTER, and messages of peers."""

from typing import Any

from shardqa.topology import Node
from shardqa.worker import resp
from shardqa.worker.gears.cluster.new_masters import NewMasters
from shardqa.worker.gears.cluster.peers import Neighbours
from shardqa.worker.gears.commands.rg_commands import RgCommand
from shardqa.worker.gears.pipeline.run import Run


class ClusterCommands:
    def __init__(self, neighbours: Neighbours, new_masters: NewMasters) -> None:
        self._cluster = neighbours.cluster
        self._peers = neighbours.peers
        self._new_masters = new_masters

    def table(self) -> dict[str, RgCommand]:
        return {
            "RG.INFOCLUSTER": RgCommand(self._info),
            "RG.REFRESHCLUSTER": RgCommand(self._refresh),
            "RG._PEER": RgCommand(lambda _, arguments: self._peers.receive(arguments), 0, None, binary=True),
        }

    async def _info(self, _run: Run, _words: list[str]) -> bytes:
        cluster = self._cluster
        if not cluster.enabled:
            return b"+no cluster mode\r\n"
        await cluster.refresh()
        masters = [node for node in cluster.nodes() if node.role == "master" and node.slots]
        return resp.encode(["MyId", cluster.node, "MyRunId", cluster.node, [_shard(node) for node in masters]])

    async def _refresh(self, _run: Run, _words: list[str]) -> bytes:
        """Looks at the topology, as once a second anyway, and sends every master the sessions that it lacks."""
        await self._cluster.refresh()
        await self._new_masters.send_all()
        return resp.OK


def _shard(node: Node) -> list[Any]:
    fields = resp.pairs(id=node.id, ip=node.host, port=node.port, unixSocket="None", runid=node.id)
    return fields + resp.pairs(minHslot=node.slots[0][0], maxHslot=node.slots[-1][1])
