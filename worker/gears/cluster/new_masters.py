"""Masters that join the cluster later get what is registered on all of it.

Every worker looks at the masters once a second. Of those that were there before, the one with the lowest id sends to a
new one each session that it has not. RG.REFRESHCLUSTER sends to every master what it lacks. Loop's thread only.
"""

import asyncio
import json

from redis import ResponseError

from shardqa.topology import Node
from shardqa.worker import resp
from shardqa.worker.gears.cluster.distribution import Distribution, NotDistributed
from shardqa.worker.gears.cluster.peers import Neighbours
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.sessions.pickling import CannotTravel
from shardqa.worker.gears.sessions.sessions import Sessions


class NewMasters:
    def __init__(self, neighbours: Neighbours, sessions: Sessions, distribution: Distribution, log: WorkerLog) -> None:
        self._cluster = neighbours.cluster
        self._peers = neighbours.peers
        self._sessions = sessions
        self._distribution = distribution
        self._log = log
        self._known: set[str] | None = None  # ids of masters; None before the first look
        self._failed: dict[str, str] = {}  # id of a master -> what was logged of it last
        self._looking = asyncio.Lock()
        self._peers.handle_with(SESSIONS=self._on_sessions)

    async def look(self) -> None:
        async with self._looking:
            others = await self._cluster.other_masters()
            ids = {node.id for node in others}
            if self._known is None:
                self._known = ids
            old, new = self._known & ids, [node for node in others if node.id not in self._known]
            self._known = old | {node.id for node in new if not await self._is_left_to_send(node, old)}

    async def send_all(self) -> None:
        """Sends every master the sessions that it lacks."""
        async with self._looking:
            for node in await self._cluster.other_masters():
                await self._send(node)

    async def _is_left_to_send(self, node: Node, others: set[str]) -> bool:
        cluster = self._cluster
        leads = cluster.role == "master" and bool(cluster.own_slots()) and cluster.node == min({cluster.node, *others})
        return leads and not await self._send(node)

    async def _send(self, node: Node) -> bool:
        """Sends a master the sessions that it lacks; returns whether it has all of them now."""
        sessions = [session for session in self._sessions if session.registrations and not session.watches]
        if not sessions or self._cluster.role != "master":
            return True
        try:
            present = set(json.loads(await self._peers.send(node, "SESSIONS")))
            for session in sessions:
                if session.id not in present:
                    await self._distribution.introduce(session, node)
                    self._log(f"session {session.id} was sent to shard {node.address}, which had joined later")
        except (ResponseError, NotDistributed, CannotTravel) as error:
            if self._failed.get(node.id) != str(error):
                self._log(f"shard {node.address} has not all sessions yet: {error}", "warning")
            self._failed[node.id] = str(error)
            return False
        return True

    async def _on_sessions(self, _sender: str, _arguments: list[bytes]) -> bytes:
        return resp.encode(json.dumps([session.id for session in self._sessions]))
