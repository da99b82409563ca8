"""Slots that move to another shard, and while they do: what belongs to them is found, no shard answers for another."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from redis import Redis
from redis.exceptions import TryAgainError

from shardqa import keys, topology
from shardqa.cluster import node, tags
from shardqa.cluster.local import LocalCluster
from shardqa.description import ShardDescription
from shardqa.engine import Engine
from shardqa.engine.connections import Shards as Masters
from shardqa.errors import ClusterUnavailable
from shardqa.models import shipped
from shardqa.models.pushed import pushed_label
from shardqa.schema import Document
from shardqa.topology import Node
from shardqa.worker.nodes import tags as tags_of_slots
from tests.cluster.shards_client import Shards
from tests.nodes import settings_of, wait_until
from tests.slots import agree, begin_move, end_move, migrate, move
from tests.workers import kill_worker

NAMES = ["Ada", "Bruno", "Clara", "Doris", "Emil", "Frida", "Georg", "Hanna"]
TEXTS = {name: f"The lighthouse of {name}by was built by {name} Lund in 1850." for name in NAMES}
QUESTION = "Who built the lighthouse of Adaby?"
MORE = 500 * " The keeper counted ships."  # a few kilobytes would all come at the very end of a migration


@pytest.fixture(scope="module")
def two(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Two shards whose slots these tests open and move."""
    return start_cluster(shards=2)


@pytest.fixture
async def engine(two: LocalCluster, corpus: str) -> AsyncIterator[Engine]:
    engine = await Engine.connect(settings_of(two, corpus=corpus, timeout=90))
    yield engine
    await engine.close()


@pytest.fixture
def nodes(two: LocalCluster) -> Iterator[list[Redis]]:
    """A client of each, once the shards go by the tags that the test before left them."""
    with ExitStack() as stack:
        clients = [stack.enter_context(node.client("127.0.0.1", port, timeout=60)) for _, port in two.addresses]
        wait_until(lambda: all(knows_own_tag(client) for client in clients), "each shard knows its own tag")
        yield clients


def knows_own_tag(client: Redis) -> bool:
    """A shard learns of moved slots within a second; until then its tag is another shard's."""
    return tag_of(client) == tags_of_slots()[topology.myself(topology.read(client)).slots[0][0]]


@pytest.fixture
def shards(two: LocalCluster, connect: Callable[[LocalCluster], Shards], corpus: str) -> Shards:
    """The two shards by plain commands, with the texts ingested."""
    shards = connect(two)
    for name, text in TEXTS.items():
        shards.ingest(name, text, name)
    return shards


def of_slot(nodes: list[Redis], key: str) -> tuple[Redis, Redis]:
    """Gives the node that has the key's slot, once they agree, and the other one."""
    agree(nodes)
    owner, other = sorted(nodes, key=lambda client: not topology.myself(topology.read(client)).owns(tags.slot(key)))
    return owner, other


def tag_of(client: Redis) -> str:
    return ShardDescription.parse(client.execute_command("RG.TRIGGER", "Shard")).tag


async def put_documents(engine: Engine, more: str = "") -> None:
    for name, text in TEXTS.items():
        await engine.documents.put(Document(id=name, text=text + more))


@contextmanager
def leaving(nodes: list[Redis], tag: str) -> Iterator[None]:
    """The tag's slot is on its way to the other shard, and none of its keys has moved."""
    slot = tags.slot(f"{{{tag}}}")
    begin_move(slot, *of_slot(nodes, f"{{{tag}}}"))
    try:
        yield
    finally:
        for client in nodes:
            client.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")


async def test_commands_by_key_follow_a_key_to_where_its_slot_is_going(two: LocalCluster, nodes: list[Redis]) -> None:
    masters = await Masters.connect(settings_of(two, timeout=90))
    names = [f"{{moving}}{n}" for n in range(60)]
    with leaving(nodes, "moving"):
        await asyncio.gather(*(masters.by_key(name, "SET", name) for name in names))
        values = await asyncio.gather(*(masters.by_key(name, "GET") for name in names))
        await asyncio.gather(*(masters.by_key(name, "UNLINK") for name in names))
    await masters.close()
    assert values == [name.encode() for name in names]


async def test_while_a_shards_own_tag_is_leaving_it_counts_as_missing_and_no_other_answers_for_it(
    nodes: list[Redis], engine: Engine, corpus: str
) -> None:
    await put_documents(engine)
    best = (await engine.ranking.rank(engine.question(QUESTION, corpus=corpus), 1)).passages[0]
    with leaving(nodes, best.tag):
        meanwhile = await engine.ask(QUESTION, k=8, n_best=20, fresh=True)
        others = await engine.ask(QUESTION, k=1, fresh=True)  # the best is there: what ranks next is read
    afterwards = await engine.ask(QUESTION, k=1, fresh=True)
    assert meanwhile.failed == others.failed == [best.node]
    assert meanwhile.n_best
    assert best.tag not in {candidate.shard for candidate in meanwhile.n_best}
    assert (afterwards.answer, afterwards.failed) == ("Ada Lund", [])


def epoch_of(client: Redis, key: str) -> int:
    return int(client.get(key) or 0)


async def test_a_change_while_the_tags_slot_is_leaving_raises_the_epoch_once_the_slot_stays(
    two: LocalCluster, nodes: list[Redis], engine: Engine, corpus: str
) -> None:
    await put_documents(engine)
    best = (await engine.ranking.rank(engine.question(QUESTION, corpus=corpus), 1)).passages[0]
    key = keys.epoch(corpus, best.tag)
    (port,) = (port for host, port in two.addresses if best.node == f"{host}:{port}")
    with node.connected(port) as giver:
        before = epoch_of(giver, key)
        with leaving(nodes, best.tag):
            giver.unlink(key)  # as if it had gone ahead: Redis does not let it be written here now
            events = giver.info("shardqa")["shardqa_events"]
            giver.hset(best.key, "text", "The lighthouse has been pulled down.")
            wait_until(lambda: giver.info("shardqa")["shardqa_events"] > events, "the change was seen")
            await asyncio.sleep(0.5)  # and its epoch could not be raised
        wait_until(lambda: epoch_of(giver, key) > before, "the epoch was raised")


async def test_a_document_of_another_writer_waits_quietly_while_the_tags_slot_is_leaving(
    two: LocalCluster, nodes: list[Redis], engine: Engine, corpus: str
) -> None:
    await put_documents(engine)
    best = (await engine.ranking.rank(engine.question(QUESTION, corpus=corpus), 1)).passages[0]
    (giver,) = (client for client in nodes if tag_of(client) == best.tag)
    with leaving(nodes, best.tag):
        giver.unlink(keys.epoch(corpus, best.tag))  # as if it had gone ahead
        events = giver.info("shardqa")["shardqa_events"]
        giver.hset(keys.doc(corpus, best.document), "text", "The mill of Idaby was built by Ida Holm.")
        await asyncio.sleep(1)
        assert giver.info("shardqa")["shardqa_events"] < events + 10, "it is not written in vain again and again"
    async with asyncio.timeout(20):
        while True:
            if (await engine.ask("Who built the mill of Idaby?", fresh=True)).answer == "Ida Holm":
                return
            await asyncio.sleep(0.05)


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
        before = client.info("shardqa")["shardqa_events"]
        wait_until(lambda: client.info("shardqa")["shardqa_events"] > before, "a key came")
        kill_worker(client)


async def passages_in_indexes(engine: Engine, corpus: str) -> int:
    return sum(info.passages for info in (await engine.catalogue.corpora()).corpora if info.name == corpus)


def migrate_lower_half(giver: Redis) -> tuple[Node, int]:
    """Begins to move half of the node's first slots to the other shard; that shard's node, and the lowest slot."""
    mine, other = sorted(topology.read(giver), key=lambda other: "myself" not in other.flags)
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


async def test_a_page_ends_before_documents_that_are_between_shards(nodes: list[Redis], engine: Engine) -> None:
    """A later page goes on with them once they have arrived."""
    await put_documents(engine)
    order = [one.id for one in (await engine.catalogue.documents()).documents]
    assert sorted(order) == NAMES
    with leaving(nodes, keys.bucket(order[3])):
        page = await engine.catalogue.documents()
        assert [one.id for one in page.documents] == order[:3]
        assert page.cursor is not None
        waiting = asyncio.create_task(engine.catalogue.documents(cursor=page.cursor))
        await asyncio.sleep(0)
    assert [one.id for one in (await waiting).documents] == order[3:]


async def test_a_corpus_is_being_dropped_until_its_last_slot_stands(
    two: LocalCluster, nodes: list[Redis], corpus: str
) -> None:
    engine = await Engine.connect(settings_of(two, corpus=corpus, timeout=1))
    await put_documents(engine)
    with leaving(nodes, keys.bucket("Ada")):
        with pytest.raises(ClusterUnavailable, match="drop it again"):
            await engine.catalogue.drop(corpus)
        other = next(name for name in NAMES if keys.bucket(name) != keys.bucket("Ada"))
        assert await engine.ask(QUESTION), "what is between shards can be asked still"
        await wait_for_removal(engine, other)
    await engine.catalogue.drop(corpus)
    assert [step async for step in engine.catalogue.dropping(corpus)][-1].done
    assert not (await engine.catalogue.corpora()).corpora or corpus not in [
        c.name for c in (await engine.catalogue.corpora()).corpora
    ]
    await engine.close()


async def wait_for_removal(engine: Engine, document: str) -> None:
    async with asyncio.timeout(20):
        while True:
            if await engine.documents.get(engine.settings.corpus, document) is None:
                return
            await asyncio.sleep(0.05)


def test_a_document_of_which_a_part_has_left_is_left_alone_and_written_by_the_next_try(
    nodes: list[Redis], shards: Shards
) -> None:
    key, tokens = shards.doc("Ada"), keys.tokens(shards.corpus, "Ada", 0)
    giver, taker = of_slot(nodes, key)
    pieces = giver.execute_command("AI.TENSORGET", tokens, "BLOB")
    ingest = "RG.TRIGGERONKEY", "Ingest", key, "title", "", "text", TEXTS["Bruno"] + MORE
    begin_move(tags.slot(key), giver, taker)
    migrate(giver, taker, [tokens])
    with pytest.raises(TryAgainError):
        giver.execute_command(*ingest)
    assert giver.hget(key, "digest") is None
    end_move(tags.slot(key), giver, taker)
    taker.execute_command(*ingest)
    assert taker.execute_command("AI.TENSORGET", tokens, "BLOB") != pieces
    move(tags.slot(key), nodes)  # the taker's lowest slot gives it its tag: the next test's document would lie there


# ---- slots that have moved


def ranks(shards: Shards) -> list[list[tuple[str, float]]]:
    return [shards.ranks(question, 100) for question in (QUESTION, "lighthouse 1850", "Emil Lund")]


def test_a_slot_that_moves_takes_its_documents_along(nodes: list[Redis], shards: Shards) -> None:
    before, belongings, (tag, epoch) = ranks(shards), shards.belongings("Ada"), shards.tag_of("Ada")
    move(tags.slot(shards.doc("Ada")), nodes)
    agree(nodes)
    shards.client.nodes_manager.initialize()
    wait_until(lambda: ranks(shards) == before, "the lists are as they were")
    assert shards.belongings("Ada") == belongings

    def has_risen() -> bool:
        (former,) = (reply for reply in shards.all("RG.TRIGGER", "Corpora") if reply["tag"] == tag)
        return bool(former["corpora"][shards.corpus]["epoch"] > epoch)

    wait_until(has_risen, "the epoch has risen where the document was")
    assert shards.ingest("Ada", TEXTS["Ada"], "Ada")["changed"] is False


def test_a_reader_that_moves_with_its_slot_is_replaced_there_and_leaves_no_second_one(
    nodes: list[Redis], shards: Shards
) -> None:
    tag, _ = shards.tag_of("Ada")
    key = keys.model(shipped.NAME, tag)
    giver, taker = of_slot(nodes, key)
    name = next(
        name for name in NAMES if shards.tag_of(name)[0] == tag and tags.slot(shards.doc(name)) != tags.slot(key)
    )
    move(tags.slot(key), nodes)
    wait_until(lambda: len(taker.keys("model:*")) == 1, "the second reader is gone")
    wait_until(lambda: shards.tag_of(name)[0] != tag, "the shard has another tag")
    answer = shards.answer_key(name, f"Who built the lighthouse of {name}by?")
    reply = wait_until(lambda: giver.get(answer), "the shard answers")
    assert json.loads(reply)["spans"][0]["text"] == f"{name} Lund"
    wait_until(lambda: len(giver.keys("model:*")) == 1, "no copy is left of the readers that came and went before")


def stored_model(client: Redis, key: str, label: str) -> None:
    onnx_models = pytest.importorskip("tests.onnx_models", reason="the model of this test is made with onnx")
    words = ("ONNX", "CPU", "TAG", label, "BATCHSIZE", 8, "BLOB", onnx_models.adder())
    client.execute_command("AI.MODELSTORE", key, *words)


def test_a_copy_that_lies_under_a_former_tag_is_sent_as_well(nodes: list[Redis]) -> None:
    taker, giver = nodes
    label, highest = pushed_label("former", "0123"), topology.myself(topology.read(giver)).slots[-1][-1]
    former, own = (keys.model("former", tag) for tag in (tags_of_slots()[highest], tag_of(taker)))
    stored_model(giver, former, label)
    assert giver.execute_command("RG.TRIGGER", "Push", "former", tag_of(giver), own) == [b"1"]
    assert taker.execute_command("AI.MODELGET", own, "META")[5] == label.encode()
    giver.unlink(former)
    taker.unlink(own)
