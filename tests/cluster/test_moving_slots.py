"""While a slot is on its way to another shard: what belongs to it is found, and no shard answers for another."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from shardqa import topology
from shardqa.answer import Document
from shardqa.cluster import node, tags
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import WrongShard
from shardqa.shards import Shards
from tests.conftest import settings_of

NAMES = ["Ada", "Bruno", "Clara", "Doris", "Emil", "Frida", "Georg", "Hanna"]
TEXTS = {name: f"The lighthouse of {name}by was built by {name} Lund in 1850." for name in NAMES}


@pytest.fixture(scope="module")
def two(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Two shards whose slots these tests open, and close again."""
    return start_cluster(shards=2)


@contextmanager
def leaving(cluster: LocalCluster, tag: str) -> Iterator[None]:
    """The tag's slot is on its way to the other shard, and none of its keys has moved."""
    slot = tags.slot(f"{{{tag}}}")
    with ExitStack() as stack:
        clients = [stack.enter_context(node.connected(port)) for _, port in cluster.addresses]
        giver, taker = sorted(topology.read(clients[0]), key=lambda found: not found.owns(slot))
        by_port = {port: client for client, (_, port) in zip(clients, cluster.addresses, strict=True)}
        by_port[taker.port].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", giver.id)
        by_port[giver.port].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", taker.id)
        yield
        for client in clients:
            client.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")


async def test_commands_by_key_follow_a_key_to_where_its_slot_is_going(two: LocalCluster) -> None:
    shards = await Shards.connect(settings_of(two, timeout=30))
    names = [f"{{moving}}{n}" for n in range(60)]
    with leaving(two, "moving"):
        await asyncio.gather(*(shards.by_key(name, "SET", name) for name in names))
        found = await asyncio.gather(*(shards.by_key(name, "GET") for name in names))
        await asyncio.gather(*(shards.by_key(name, "UNLINK") for name in names))
    await shards.close()
    assert found == [name.encode() for name in names]


async def test_while_a_shards_own_tag_is_leaving_it_counts_as_missing_and_no_other_answers_for_it(
    two: LocalCluster, corpus: str
) -> None:
    engine = await Engine.connect(settings_of(two, corpus=corpus, timeout=30))
    try:
        for name, text in TEXTS.items():
            await engine.put(Document(id=name, text=text))
        question = "Who built the lighthouse of Adaby?"
        best = (await engine.rank(question, corpus, 1)).passages[0]
        with leaving(two, best.tag):
            meanwhile = await engine.ask(question, k=8, n_best=20, fresh=True)
            with pytest.raises(WrongShard):  # all that are to be read are there
                await engine.ask(question, k=1, fresh=True)
        afterwards = await engine.ask(question, k=1, fresh=True)
    finally:
        await engine.close()
    assert meanwhile.failed == [best.node]
    assert meanwhile.n_best
    assert best.tag not in {candidate.shard for candidate in meanwhile.n_best}
    assert (afterwards.answer, afterwards.failed) == ("Ada Lund", [])
