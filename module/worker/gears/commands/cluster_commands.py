"""RG.INFOCLUSTER and RG.REFRESHCLUSTER."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardqa.module.worker import resp
from shardqa.topology import Node

if TYPE_CHECKING:
    from shardqa.module.worker.gears.cluster.new_masters import Newcomers
    from shardqa.module.worker.shard import Shard


async def info_cluster(shard: Shard) -> bytes:
    cluster = shard.cluster
    if not cluster.enabled:
        return b"+no cluster mode\r\n"
    await cluster.refresh()
    masters = [node for node in cluster.nodes() if node.role == "master" and node.slots]
    return resp.encode(["MyId", cluster.node, "MyRunId", cluster.node, [_shard(node) for node in masters]])


def _shard(node: Node) -> list[Any]:
    low, high = node.slots[0][0], node.slots[-1][1]
    return [
        *("id", node.id, "ip", node.host, "port", node.port, "unixSocket", "None", "runid", node.id),
        *("minHslot", low, "maxHslot", high),
    ]


async def refresh_cluster(shard: Shard, newcomers: Newcomers) -> bytes:
    """The worker looks at the topology once a second anyway; here every master gets the sessions that it lacks, too."""
    await shard.cluster.refresh()
    await newcomers.send_all()
    return resp.OK
