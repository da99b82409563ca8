"""The nodes of a cluster as one of them sees them: roles, slots, who replicates whom.

Everything is read from CLUSTER NODES. CLUSTER SLOTS and SHARDS say the same in a handier form, but crash Valkey before
9.0.1 when a module calls them, as the worker does.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from redis import Redis

SLOTS = 16384
MOVING = re.compile(r"\[(\d+)-[<>]-")  # [93->-id] is leaving, [77-<-id] is coming


@dataclass(frozen=True, slots=True)
class Node:
    id: str  # 40 hex digits
    host: str
    port: int
    role: str  # "master" | "replica"
    master: str | None  # id of a replica's master
    slots: tuple[tuple[int, int], ...]  # ranges, both ends included, ascending
    moving: frozenset[int]  # slots on their way here or away; only the node's own line tells of them
    flags: frozenset[str]
    connected: bool

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def owns(self, slot: int) -> bool:
        return any(first <= slot <= last for first, last in self.slots)

    def slot_count(self) -> int:
        return sum(last - first + 1 for first, last in self.slots)


def parse(reply: str) -> list[Node]:
    """The reply of CLUSTER NODES, masters by their first slot, each followed by its replicas."""
    nodes = [_parse_line(line) for line in reply.splitlines() if line.strip()]
    masters = sorted((n for n in nodes if n.role == "master"), key=lambda n: (n.slots or ((SLOTS, SLOTS),), n.port))
    nodes_in_order: list[Node] = []
    for master in masters:
        replicas = [n for n in nodes if n.master == master.id]
        nodes_in_order += [master, *sorted(replicas, key=lambda n: (n.host, n.port))]
    return nodes_in_order + [n for n in nodes if n not in nodes_in_order]


def _parse_line(line: str) -> Node:
    id_, address, flags_, master, _ping, _pong, _epoch, link, *slots = line.split()
    flags = frozenset(flags_.split(","))
    host, _, port = address.split("@")[0].split(",")[0].rpartition(":")
    return Node(
        id=id_,
        host=host or "127.0.0.1",  # a node that has met nobody does not know its own address
        port=int(port),
        role="replica" if "slave" in flags else "master",
        master=None if master == "-" else master,
        slots=tuple(_range(s) for s in slots if not s.startswith("[")),
        moving=frozenset(int(slot) for slot in MOVING.findall(" ".join(slots))),
        flags=flags,
        connected=link == "connected",
    )


def _range(slots: str) -> tuple[int, int]:
    first, _, last = slots.partition("-")
    return int(first), int(last or first)


def myself(nodes: list[Node]) -> Node:
    """The node that said it."""
    return next(node for node in nodes if "myself" in node.flags)


def read(client: Redis) -> list[Node]:
    """The topology as this node sees it, without half-met nodes. Raises redis.RedisError (outside cluster mode too)."""
    reply = client.execute_command("CLUSTER", "NODES")
    return [n for n in parse(reply.decode(errors="replace")) if "handshake" not in n.flags]


def even_ranges(shards: int) -> list[tuple[int, int]]:
    """The slots of each of `shards` masters, both ends included."""
    cuts = [SLOTS * i // shards for i in range(shards + 1)]
    return [(a, b - 1) for a, b in pairwise(cuts)]
