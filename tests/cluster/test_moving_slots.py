"""While a slot is on its way to another shard: what belongs to it is found, and no shard answers for another."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from redis import Redis
from redis.exceptions import TryAgainError

from shardqa import keys, topology
from shardqa.cluster import node, tags
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.engine.connections import Shards
from shardqa.errors import ClusterUnavailable, WrongShard
from shardqa.schema import Document
from shardqa.topology import Node
from tests.cluster.shards_client import Shards as ShardsClient
from tests.nodes import settings_of, wait_until
from tests.slots import agree, begin_move, end_move, migrate
from tests.workers import kill_worker

NAMES = ["Ada", "Bruno", "Clara", "Doris", "Emil", "Frida", "Georg", "Hanna"]
TEXTS = {name: f"The lighthouse of {name}by was built by {name} Lund in 1850." for name in NAMES}
QUESTION = "Who built the lighthouse of Adaby?"
MORE = 500 * " The keeper counted ships."  # a few kilobytes would all come at the very end of a migration


@pytest.fixture(scope="module")
def two(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Two shards whose slots these tests open, and close again."""
    return start_cluster(shards=2)


@pytest.fixture
async def engine(two: LocalCluster, corpus: str) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings_of(two, corpus=corpus, timeout=30))
    yield engine
    await engine.close()


async def put_documents(engine: Engine, more: str = "") -> None:
    for name, text in TEXTS.items():
        await engine.documents.put(Document(id=name, text=text + more))


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
    two: LocalCluster, engine: Engine, corpus: str
) -> None:
    await put_documents(engine)
    best = (await engine.ranking.rank(engine.question(QUESTION, corpus=corpus), 1)).passages[0]
    with leaving(two, best.tag):
        meanwhile = await engine.ask(QUESTION, k=8, n_best=20, fresh=True)
        with pytest.raises(WrongShard):  # all that are to be read are there
            await engine.ask(QUESTION, k=1, fresh=True)
    afterwards = await engine.ask(QUESTION, k=1, fresh=True)
    assert meanwhile.failed == [best.node]
    assert meanwhile.n_best
    assert best.tag not in {candidate.shard for candidate in meanwhile.n_best}
    assert (afterwards.answer, afterwards.failed) == ("Ada Lund", [])


def epoch_of(client: Redis, key: str) -> int:
    return int(client.get(key) or 0)


async def test_a_change_while_the_tags_slot_is_leaving_raises_the_epoch_once_the_slot_stays(
    two: LocalCluster, engine: Engine, corpus: str
) -> None:
    await put_documents(engine)
    best = (await engine.ranking.rank(engine.question(QUESTION, corpus=corpus), 1)).passages[0]
    key = keys.epoch(corpus, best.tag)
    (here,) = (port for host, port in two.addresses if best.node == f"{host}:{port}")
    with node.connected(here) as giver:
        before = epoch_of(giver, key)
        with leaving(two, best.tag):
            giver.unlink(key)  # as if it had gone ahead: Redis does not let it be written here now
            events = giver.info("shardqa")["shardqa_events"]
            giver.hset(best.key, "text", "The lighthouse has been pulled down.")
            wait_until(lambda: giver.info("shardqa")["shardqa_events"] > events, "the change was seen")
            await asyncio.sleep(0.5)  # and its epoch could not be raised
        wait_until(lambda: epoch_of(giver, key) > before, "the epoch was raised")


@pytest.fixture
def giver(two: LocalCluster) -> Iterator[Redis]:
    """The first shard's node, of a server that moves slots by itself, and slowly: a key comes long before its slot."""
    with node.connected(two.addresses[0][1]) as client:
        if int(str(client.info("server").get("valkey_version", "0")).partition(".")[0]) < 9:
            pytest.skip("only Valkey 9 has CLUSTER MIGRATESLOTS")
        client.config_set("rdb-key-save-delay", 20_000)  # microseconds a key
        yield client
        client.config_set("rdb-key-save-delay", 0)


def kill_worker_at_next_event(port: int) -> None:
    with node.connected(port) as client:
        told = partial(client.info, "shardqa")
        before = told()["shardqa_events"]
        wait_until(lambda: told()["shardqa_events"] > before, "a key came")
        kill_worker(client)


async def passages_in_indexes(engine: Engine, corpus: str) -> int:
    return sum(one.passages for one in (await engine.catalogue.corpora()).corpora if one.name == corpus)


def migrate_lower_half(giver: Redis) -> tuple[Node, int]:
    """Begins to move half of the node's first slots to the other shard; that shard's node, and the lowest slot."""
    mine, other = sorted(topology.read(giver), key=lambda found: "myself" not in found.flags)
    first, last = mine.slots[0]
    giver.execute_command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", first, (first + last) // 2, "NODE", other.id)
    return other, first


async def moved(giver: Redis, slot: int) -> None:
    is_gone = partial(wait_until, lambda: not topology.myself(topology.read(giver)).owns(slot))
    await asyncio.to_thread(is_gone, "the slots have moved")


@pytest.mark.parametrize("killed", [False, True], ids=["the worker stays", "the worker is killed"])
async def test_slots_that_move_all_at_once_take_their_passages_along(
    engine: Engine, giver: Redis, corpus: str, killed: bool
) -> None:
    await put_documents(engine, MORE)
    before = await passages_in_indexes(engine, corpus)
    other, first = migrate_lower_half(giver)
    if killed:
        await asyncio.to_thread(kill_worker_at_next_event, other.port)
    await moved(giver, first)
    for _ in range(100):
        if await passages_in_indexes(engine, corpus) == before:
            break
        await asyncio.sleep(0.1)
    assert await passages_in_indexes(engine, corpus) == before
    assert (await engine.ask(QUESTION, k=8, fresh=True)).answer == "Ada Lund"


async def test_a_reader_that_comes_with_slots_that_move_all_at_once_is_dropped_again(
    engine: Engine, giver: Redis
) -> None:
    await put_documents(engine, MORE)
    await engine.ask(QUESTION, k=50, fresh=True)  # both shards have a reader now
    assert giver.keys("model:*")
    other, first = migrate_lower_half(giver)
    await moved(giver, first)
    with node.connected(other.port) as client:
        wait_until(lambda: len(client.keys("model:*")) == 1, "one reader is left")
    assert not giver.keys("model:*")


async def test_a_page_ends_before_documents_that_are_between_shards(two: LocalCluster, engine: Engine) -> None:
    """And goes on with them once they have arrived."""
    await put_documents(engine)
    order = [one.id for one in (await engine.catalogue.documents()).documents]
    assert sorted(order) == NAMES
    with leaving(two, keys.bucket(order[3])):
        page = await engine.catalogue.documents()
        assert [one.id for one in page.documents] == order[:3]
        assert page.cursor is not None
        waiting = asyncio.create_task(engine.catalogue.documents(cursor=page.cursor))
        await asyncio.sleep(0)
    assert [one.id for one in (await waiting).documents] == order[3:]


async def test_a_corpus_is_being_dropped_until_its_last_slot_stands(two: LocalCluster, corpus: str) -> None:
    engine = await Engine.connect(settings_of(two, corpus=corpus, timeout=1))
    await put_documents(engine)
    with leaving(two, keys.bucket("Ada")):
        with pytest.raises(ClusterUnavailable, match="drop it again"):
            await engine.catalogue.drop(corpus)
        gone = next(name for name in NAMES if keys.bucket(name) != keys.bucket("Ada"))
        assert await engine.ask(QUESTION), "what is between shards can be asked still"
        await wait_for_removal(engine, gone)
    await engine.catalogue.drop(corpus)
    assert [step async for step in engine.catalogue.dropping(corpus)][-1].done
    assert corpus not in [info.name for info in (await engine.catalogue.corpora()).corpora]
    await engine.close()


async def wait_for_removal(engine: Engine, document: str) -> None:
    async with asyncio.timeout(20):
        while True:
            if await engine.documents.get(engine.settings.corpus, document) is None:
                return
            await asyncio.sleep(0.05)


def test_a_document_refused_since_a_part_has_left_is_written_by_the_next_try(
    two: LocalCluster, connect: Callable[[LocalCluster], ShardsClient]
) -> None:
    shards = connect(two)
    shards.ingest("half", TEXTS["Ada"])
    key, tokens = shards.doc("half"), keys.tokens(shards.corpus, "half", 0)
    giver = shards.redis(key)
    (taker,) = (one for name in shards.nodes() if (one := shards.client.get_redis_connection(name)) is not giver)
    before = giver.execute_command("AI.TENSORGET", tokens, "BLOB")
    words = ("RG.TRIGGERONKEY", "Ingest", key, "title", "", "text", TEXTS["Bruno"] + MORE)
    agree([giver, taker])
    begin_move(tags.slot(key), giver, taker)
    migrate(giver, taker, [tokens])
    with pytest.raises(TryAgainError):
        giver.execute_command(*words)
    assert giver.hget(key, "digest") is None
    end_move(tags.slot(key), giver, taker)
    taker.execute_command(*words)
    assert taker.execute_command("AI.TENSORGET", tokens, "BLOB") != before
    assert taker.execute_command("RG.TRIGGERONKEY", "RetokeniseOne", key) == [b'{"changed":false}']
