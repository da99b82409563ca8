"""Slots that move between the nodes of a cluster, by CLUSTER SETSLOT and MIGRATE."""

from typing import Any

from redis import Redis

from shardqa import topology
from tests.nodes import wait_until


def move(slot: int, nodes: list[Redis]) -> None:
    """One slot of two masters with all its keys to the one that has it not."""
    agree(nodes)
    taker, giver = sorted(nodes, key=lambda node: topology.myself(topology.read(node)).owns(slot))
    begin_move(slot, giver, taker)
    end_move(slot, giver, taker)


def begin_move(slot: int, giver: Redis, taker: Redis) -> None:
    """None of its keys has moved then."""
    taker.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", _id(giver))
    giver.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", _id(taker))


def end_move(slot: int, giver: Redis, taker: Redis) -> None:
    """The keys that are left, and the slot."""
    while names := giver.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10):
        migrate(giver, taker, names)
    for node in (taker, giver):
        node.execute_command("CLUSTER", "SETSLOT", slot, "NODE", _id(taker))


def migrate(giver: Redis, taker: Redis, names: list[Any]) -> None:
    to = topology.myself(topology.read(taker))
    giver.execute_command("MIGRATE", to.host, to.port, "", 0, 60_000, "KEYS", *names)


def agree(nodes: list[Redis]) -> None:
    """Waits until the nodes know the same owners and configuration epochs.

    A node that takes a slot raises its epoch above those that it knows. Where it does not know the giver's yet, late
    gossip of the giver wins over its own: each then says that the other has the slot, and none has it.
    """
    wait_until(lambda: len({_view(node) for node in nodes}) == 1, "the nodes agree on owners and epochs")


def _view(node: Redis) -> frozenset[tuple[bytes, ...]]:
    """Each node's id, its configuration epoch and its settled slots."""
    lines = [line.split() for line in node.execute_command("CLUSTER", "NODES").splitlines()]
    return frozenset(
        (words[0], words[6], *(part for part in words[8:] if not part.startswith(b"["))) for words in lines
    )


def _id(node: Redis) -> str:
    return topology.myself(topology.read(node)).id
