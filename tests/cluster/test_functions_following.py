"""What the index and the epochs go through: a dead worker, a failover, slots that move, other numbers of shards."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

from shardqa import keys, topology
from shardqa.cluster.local import LocalCluster
from shardqa.description import ShardDescription
from shardqa.engine import Engine
from shardqa.module.worker.gears.cluster.hashtags import tag_of_slot
from tests.cluster.shards_client import Shards
from tests.nodes import settings_of, wait_until
from tests.workers import kill_worker, ready_worker

Start = Callable[..., LocalCluster]
Connect = Callable[[LocalCluster], Shards]

SUBJECTS = ["mill", "bridge", "tower", "well", "chapel", "market"]
PLACES = ["Hallow", "Brennick", "Tarn", "Ostby", "Quill"]
TEXTS = {
    f"{subject} of {place}": f"The {subject} of {place} was finished in {1700 + n}. People of {place} came to it. "
    * (n % 5 + 1)
    for n, (subject, place) in enumerate((subject, place) for subject in SUBJECTS for place in PLACES)
}
FOLLOWED_SECONDS = 30.0  # until an engine must know the new master
QUESTIONS = ["who came to the well of Tarn", "which chapel was finished in 1720", "market people of Quill", "1704"]


def fill(shards: Shards) -> None:
    for document, text in TEXTS.items():
        shards.ingest(document, text, document)


def lists(shards: Shards) -> list[list[tuple[str, float]]]:
    return [shards.ranks(question, 100) for question in QUESTIONS]


@pytest.fixture(scope="module")
def two(start_cluster: Start) -> LocalCluster:
    """Two masters with a replica each, which these tests may harm."""
    return start_cluster(shards=2, replicas=1)


def test_lists_are_equal_on_one_two_and_five_shards(
    shards: Shards, two: LocalCluster, start_cluster: Start, connect: Connect
) -> None:
    fill(shards)
    expected = lists(shards)
    assert all(expected)
    for cluster in (two, start_cluster(shards=1), start_cluster(shards=5)):
        other = connect(cluster)
        fill(other)
        assert lists(other) == expected


def test_a_worker_that_was_killed_comes_back_with_its_index(two: LocalCluster, connect: Connect) -> None:
    shards = connect(two)
    fill(shards)
    before, epochs = lists(shards), [reply["corpora"][shards.corpus] for reply in shards.all("RG.TRIGGER", "Corpora")]
    for node in shards.nodes():
        with Redis(host=node.host, port=int(node.port)) as client:
            ready_worker(client, but_not=[kill_worker(client)])
    assert wait_until(lambda: _or_none(lambda: lists(shards)), "the shards rank again") == before
    assert [reply["corpora"][shards.corpus] for reply in shards.all("RG.TRIGGER", "Corpora")] == epochs


def test_a_drop_whose_workers_were_killed_goes_on_and_leaves_nothing_half(two: LocalCluster, connect: Connect) -> None:
    shards = connect(two)
    fill(shards)
    nodes = [Redis(host=node.host, port=int(node.port)) for node in shards.nodes()]
    assert sum(reply["documents"] for reply in shards.all("RG.TRIGGER", "Drop", shards.corpus)) == len(TEXTS)
    killed = [kill_worker(client) for client in nodes]
    for client in nodes:
        ready_worker(client, but_not=killed)
    words = ("doc", "passage", "tokens", "drop")
    patterns = [f"{word}:{shards.corpus}:*" for word in words]
    wait_until(lambda: not any(list(client.scan_iter(one)) for client in nodes for one in patterns), "all is gone")
    wait_until(lambda: _or_none(lambda: not any(lists(shards))), "nothing of it is found")
    fill(shards)
    assert all(lists(shards))
    for client in nodes:
        client.close()


def _or_none(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except RedisError:
        return None


def test_a_slot_that_moves_takes_its_documents_along(two: LocalCluster, connect: Connect) -> None:
    shards = connect(two)
    fill(shards)
    before = lists(shards)
    document = "well of Tarn"
    belongings = shards.belongings(document)
    tag, epoch = shards.tag_of(document)
    source = shards.client.get_node_from_key(shards.doc(document))
    target = next(node for node in shards.nodes() if node.name != source.name)
    move_slot(source, target, shards.client.keyslot(shards.doc(document)))
    wait_until(lambda: _owner(shards, document) == target.name, "all nodes know where the slot is")
    wait_until(lambda: lists(shards) == before, "the lists are as they were")
    assert shards.belongings(document) == belongings
    old = [reply for reply in shards.all("RG.TRIGGER", "Corpora") if reply["tag"] == tag]
    assert old[0]["corpora"][shards.corpus]["epoch"] > epoch
    assert shards.ingest(document, TEXTS[document], document)["changed"] is False


def _owner(shards: Shards, document: str) -> str:
    shards.client.nodes_manager.initialize()  # asks any node
    return str(shards.client.get_node_from_key(shards.doc(document)).name)


def move_slot(source: Any, target: Any, slot: int) -> None:
    """As redis-cli --cluster reshard does it."""
    with _client(source) as giver, _client(target) as taker:
        ids = {client: client.execute_command("CLUSTER", "MYID") for client in (giver, taker)}
        taker.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[giver])
        giver.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[taker])
        port = taker.get_connection_kwargs()["port"]
        while names := giver.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 3):
            giver.execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5_000, "KEYS", *names)
        for client in (taker, giver):
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[taker])


def test_a_reader_that_moves_with_its_slot_is_replaced_there_and_leaves_no_second_one(
    two: LocalCluster, connect: Connect
) -> None:
    shards = connect(two)
    fill(shards)
    document = "well of Tarn"
    tag, _ = shards.tag_of(document)
    key = keys.model("reader-v2-int8", tag)
    source = shards.client.get_node_from_key(key)
    target = next(node for node in shards.nodes() if node.name != source.name)
    with _client(source) as giver, _client(target) as taker:
        move_slot(source, target, shards.client.keyslot(key))
        wait_until(lambda: len(taker.keys("model:*")) == 1, "the second reader is gone")
        wait_until(lambda: shards.tag_of(document)[0] != tag, "the shard has another tag")
        answer = shards.answer_key(document, "When was the well of Tarn finished?")
        found = wait_until(lambda: _or_none(lambda: giver.get(answer)), "the shard answers")
        assert json.loads(found)["spans"][0]["text"] == "1717"
        assert len(giver.keys("model:*")) == 1


def _client(node: Any) -> Any:
    return Redis(host=node.host, port=int(node.port), socket_timeout=10)


def test_a_replica_takes_over_with_a_warm_index(two: LocalCluster, connect: Connect) -> None:
    shards = connect(two)
    fill(shards)
    before = lists(shards)
    document = "well of Tarn"
    _, epoch = shards.tag_of(document)
    master = shards.client.get_node_from_key(shards.doc(document))
    replica = next(
        node
        for node in shards.client.get_replicas()
        if shards.client.get_redis_connection(node).info("replication")["master_port"] == int(master.port)
    )
    with _client(replica) as client:
        wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica follows")
        with _client(master) as old:
            # Of the index alone the two may agree too soon: INFO tells its size once a second.
            passages = len(old.keys("passage:*"))
            wait_until(lambda: len(client.keys("passage:*")) == passages, "the replica has all passages")
            wait_until(lambda: _indexed(client) == _indexed(old) == passages, "the replica's index is warm")
        client.execute_command("CLUSTER", "FAILOVER")
        wait_until(lambda: client.info("replication")["role"] == "master", "the replica took over")
    later = connect(two)
    wait_until(
        lambda: (
            str(later.client.get_node_from_key(later.doc(document)).port) == str(replica.port)
            or later.client.nodes_manager.initialize()
        ),
        "the client knows",
    )
    assert wait_until(lambda: _or_none(lambda: lists(later)), "the shards rank again") == before
    assert later.tag_of(document)[1] == epoch
    key = later.answer_key(document, "When was the well of Tarn finished?")
    assert json.loads(later.client.get(key))["spans"][0]["text"] == "1717"


async def test_an_engine_that_only_ranks_follows_a_replica_that_took_over(two: LocalCluster, connect: Connect) -> None:
    shards = connect(two)
    fill(shards)
    engine = await Engine.connect(settings_of(two, corpus=shards.corpus))
    try:
        assert not (await engine.ranking.rank(engine.question(QUESTIONS[0], corpus=shards.corpus), 5)).failed
        replica = shards.client.get_replicas()[0]
        with _client(replica) as client:
            wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica follows")
            client.execute_command("CLUSTER", "FAILOVER")
            wait_until(lambda: client.info("replication")["role"] == "master", "the replica took over")
        async with asyncio.timeout(FOLLOWED_SECONDS):
            while f"{replica.host}:{replica.port}" not in {str(node.name) for node in engine.shards.nodes()}:
                await engine.ranking.rank(engine.question(QUESTIONS[0], corpus=shards.corpus), 5)
                await asyncio.sleep(0.1)
    finally:
        await engine.close()


def _indexed(client: Any) -> int:
    """Passages in a node's index, of all corpora."""
    return int(client.info("shardqa")["shardqa_passages"])


def test_after_flushall_nothing_is_found_and_all_can_come_again(two: LocalCluster, connect: Connect) -> None:
    shards = connect(two)
    fill(shards)
    before = lists(shards)
    tag, epoch = shards.tag_of("well of Tarn")
    client = shards.redis(keys.epoch(shards.corpus, tag))
    models = {name: client.dump(name) for name in client.keys("model:*")}
    client.flushall()
    wait_until(lambda: len(shards.documents("people")) < len(TEXTS) and lists(shards) != before, "documents are gone")
    for name, content in models.items():
        client.restore(name, 0, content)
    fill(shards)
    assert lists(shards) == before
    assert shards.tag_of("well of Tarn")[1] > epoch


def test_a_pushed_model_is_on_every_shard_whatever_slots_move(two: LocalCluster, connect: Connect) -> None:
    pytest.importorskip("onnx", reason="the model of this test is made with onnx")
    from tests.onnx_models import adder

    shards = connect(two)
    source, target = shards.nodes()
    own, label = _own(source), keys.pushed_label("kept", "0123")
    for node in (source, target):
        words = ("ONNX", "CPU", "TAG", label, "BATCHSIZE", 8, "BLOB", adder())
        shards.client.execute_command("AI.MODELSTORE", _own(node), *words)
    move_slot(source, target, shards.client.keyslot(own))
    wait_until(lambda: _own(source) != own, "the shard has another tag")
    for node in (source, target):
        with _client(node) as client:
            wait_until(partial(_has_own_copy_alone, client, node), f"{node.name} has one copy, its own")
            assert client.execute_command("AI.MODELGET", _own(node), "META")[7] == 8
    for node in (source, target):
        shards.client.unlink(_own(node))


def test_a_copy_that_lies_under_a_former_tag_is_sent_as_well(two: LocalCluster, connect: Connect) -> None:
    pytest.importorskip("onnx", reason="the model of this test is made with onnx")
    from tests.onnx_models import adder

    shards = connect(two)
    taker, giver = shards.nodes()
    with _client(giver) as client:
        highest = topology.myself(topology.read(client)).slots[-1][-1]
    former, wanted = (keys.model("former", tag) for tag in (tag_of_slot(highest), _tag(taker)))
    words = ("ONNX", "CPU", "TAG", keys.pushed_label("former", "0123"), "BLOB", adder())
    shards.client.execute_command("AI.MODELSTORE", former, *words)
    asked = ("RG.TRIGGER", "Push", "former", _tag(giver), wanted)
    assert shards.client.execute_command(*asked, target_nodes=giver) == [b"1"]
    assert shards.client.execute_command("AI.MODELGET", wanted, "META")[5] == words[3].encode()
    for key in (former, wanted):
        shards.client.unlink(key)


def _has_own_copy_alone(client: Any, node: Any) -> bool:
    return bool(client.keys("model:kept:*") == [_own(node)])


def _tag(node: Any) -> str:
    with _client(node) as client:
        return ShardDescription.parse(client.execute_command("RG.TRIGGER", "Shard")).tag


def _own(node: Any) -> bytes:
    return keys.model("kept", _tag(node)).encode()
