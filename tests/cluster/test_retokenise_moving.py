"""A corpus is cut anew while its slots move between the shards."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.crc import key_slot
from redis.exceptions import TryAgainError

from shardqa import keys, topology
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.schema import Document, Retokenised
from tests.nodes import settings_of
from tests.slots import agree, begin_move, end_move, migrate, move

COUNT = 40
TEXT = "Ferry {n} was built at Skerrow in {year}. " + "The crossing takes a while and the crew is friendly. " * 20


@pytest.fixture(scope="module")
def two(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    return start_cluster(shards=2)


@pytest.fixture
def nodes(two: LocalCluster) -> Iterator[list[Redis]]:
    clients = [Redis(port=port, socket_timeout=60) for _, port in two.addresses]
    yield clients
    for client in clients:
        client.close()


def slot_of(key: str) -> int:
    return int(key_slot(key.encode()))


def owner(nodes: list[Redis], key: str) -> Redis:
    """The one that has the key's slot, once they agree."""
    agree(nodes)
    return next(one for one in nodes if topology.myself(topology.read(one)).owns(slot_of(key)))


def spoil(nodes: list[Redis], name: str) -> Any:
    """Makes the word pieces of a passage wrong; what they were."""
    client = owner(nodes, name)
    before = client.execute_command("AI.TENSORGET", name, "BLOB")
    client.execute_command("AI.TENSORSET", name, "INT32", 2, "VALUES", 7, 7)
    return before


async def test_every_document_is_cut_anew_once_while_slots_move(
    two: LocalCluster, nodes: list[Redis], corpus: str
) -> None:
    engine = await Engine.connect(settings_of(two, corpus=corpus, timeout=30))
    puts = (engine.documents.put(Document(id=f"d{n}", text=TEXT.format(n=n, year=1900 + n))) for n in range(COUNT))
    await asyncio.gather(*puts)
    before = {name: spoil(nodes, name) for n in (3, 17, 30) for name in [keys.tokens(corpus, f"d{n}", 1)]}

    def reshard() -> None:
        for slot in {slot_of(keys.doc(corpus, f"d{n}")) for n in range(COUNT)}:
            move(slot, nodes)

    async def run() -> Retokenised:
        return [now async for now in engine.retokenising.run()][-1]

    last, _ = await asyncio.gather(run(), asyncio.to_thread(reshard))
    await engine.close()
    assert (last.done, last.changed, last.failed, last.errors) == (COUNT, len(before), 0, [])
    assert {name: owner(nodes, name).execute_command("AI.TENSORGET", name, "BLOB") for name in before} == before


def test_a_document_of_which_a_part_has_left_is_not_begun_anew(
    two: LocalCluster, nodes: list[Redis], connect: Any
) -> None:
    shards = connect(two)
    shards.ingest("leaving", TEXT.format(n=1, year=1901))
    key = shards.doc("leaving")
    giver = owner(nodes, key)
    (taker,) = (one for one in nodes if one is not giver)
    digest, epoch = giver.hget(key, "digest"), shards.tag_of("leaving")
    begin_move(slot_of(key), giver, taker)
    migrate(giver, taker, [keys.tokens(shards.corpus, "leaving", 0)])
    with pytest.raises(TryAgainError):
        giver.execute_command("RG.TRIGGERONKEY", "RetokeniseOne", key)
    assert (giver.hget(key, "digest"), shards.tag_of("leaving")) == (digest, epoch)
    end_move(slot_of(key), giver, taker)
    assert taker.execute_command("RG.TRIGGERONKEY", "RetokeniseOne", key) == [b'{"changed":false}']
