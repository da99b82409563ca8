"""Index and epochs through a dead worker, a failover, a flush, other numbers of shards."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from tests.cluster.shards_client import Shards
from tests.nodes import settings_of, wait_until
from tests.workers import kill_worker, ready_worker

Connect = Callable[[LocalCluster], Shards]

SUBJECTS = ["mill", "bridge", "tower", "well", "chapel", "market"]
PLACES = ["Hallow", "Brennick", "Tarn", "Ostby", "Quill"]
TEXTS = {
    f"{subject} of {place}": f"The {subject} of {place} was finished in {1700 + n}. People of {place} came to it. "
    * (n % 5 + 1)
    for n, (subject, place) in enumerate((subject, place) for subject in SUBJECTS for place in PLACES)
}
FOLLOWED_SECONDS = 30.0  # until an engine must know the new master
ATTEMPTS, GIVEN_UP = 6, 7.0  # seconds: Redis itself gives a failover up after five
QUESTIONS = ["who came to the well of Tarn", "which chapel was finished in 1720", "market people of Quill", "1704"]


def fill(shards: Shards) -> None:
    for document, text in TEXTS.items():
        shards.ingest(document, text, document)


def lists(shards: Shards) -> list[list[tuple[str, float]]]:
    return [shards.ranks(question, 100) for question in QUESTIONS]


def lists_if_any(shards: Shards) -> list[list[tuple[str, float]]]:
    """Gives nothing while a shard does not answer."""
    with suppress(RedisError):
        return lists(shards)
    return []


@pytest.fixture(scope="module")
def two(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """Two masters with a replica each, which these tests may harm."""
    return start_cluster(shards=2, replicas=1)


@pytest.fixture
def filled(two: LocalCluster, connect: Connect) -> Shards:
    shards = connect(two)
    fill(shards)
    return shards


@pytest.fixture
def masters(filled: Shards) -> Iterator[list[Redis]]:
    with ExitStack() as stack:
        yield [stack.enter_context(client_of(node)) for node in filled.nodes()]


def client_of(node: Any) -> Any:
    return Redis(host=node.host, port=int(node.port), socket_timeout=10)


def test_lists_are_equal_on_one_two_and_three_shards(
    shards: Shards, filled: Shards, one_shard: LocalCluster, connect: Connect
) -> None:
    alone = connect(one_shard)
    for cluster in (shards, alone):
        fill(cluster)
    assert lists(shards) == lists(filled) == lists(alone)
    assert all(lists(shards))


def test_a_drop_whose_workers_were_killed_goes_on_and_leaves_nothing_half(filled: Shards, masters: list[Redis]) -> None:
    assert sum(reply["documents"] for reply in filled.all("RG.TRIGGER", "Drop", filled.corpus)) == len(TEXTS)
    killed = [kill_worker(client) for client in masters]
    for client in masters:
        ready_worker(client, but_not=killed)
    patterns = [f"{word}:{filled.corpus}:*" for word in ("doc", "passage", "tokens", "drop")]
    wait_until(lambda: not any(list(client.scan_iter(name)) for client in masters for name in patterns), "all is gone")
    wait_until(lambda: lists_if_any(filled) == [[]] * len(QUESTIONS), "nothing of it is found")
    fill(filled)
    assert all(lists(filled))


def take_over(node: Any) -> None:
    """The replica becomes a master, as both agree."""
    with client_of(node) as client:
        wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica follows")
        for _ in range(ATTEMPTS):
            client.execute_command("CLUSTER", "FAILOVER")
            with suppress(pytest.fail.Exception):
                wait_until(lambda: client.info("replication")["role"] == "master", "the replica took over", GIVEN_UP)
                return
        pytest.fail(f"CLUSTER FAILOVER was given up {ATTEMPTS} times")


def test_a_replica_takes_over_with_a_warm_index(two: LocalCluster, filled: Shards, connect: Connect) -> None:
    before, document = lists(filled), "well of Tarn"
    _, epoch = filled.tag_of(document)
    master = filled.client.get_node_from_key(filled.doc(document))
    replica = next(
        node
        for node in filled.client.get_replicas()
        if filled.client.get_redis_connection(node).info("replication")["master_port"] == int(master.port)
    )
    with client_of(replica) as copy, client_of(master) as client:
        # Of the index alone the two may agree too soon: INFO tells its size once a second.
        passages = len(client.keys("passage:*"))
        wait_until(lambda: len(copy.keys("passage:*")) == passages, "the replica has all passages")
        wait_until(lambda: indexed(copy) == indexed(client) == passages, "the replica's index is warm")
    take_over(replica)
    later = connect(two)

    def is_known() -> bool:
        later.client.nodes_manager.initialize()
        return bool(later.client.get_node_from_key(later.doc(document)).port == replica.port)

    wait_until(is_known, "the client knows")
    assert wait_until(lambda: lists_if_any(later), "the shards rank again") == before
    assert later.tag_of(document)[1] == epoch
    key = later.answer_key(document, "When was the well of Tarn finished?")
    assert json.loads(later.client.get(key))["spans"][0]["text"] == "1717"


def indexed(client: Any) -> int:
    """The number of passages in a node's index, of all corpora; -1 until its worker has told INFO."""
    return int(client.info("shardqa").get("shardqa_passages", -1))


async def test_an_engine_that_only_ranks_follows_whoever_took_over_and_misses_no_shard(
    two: LocalCluster, filled: Shards
) -> None:
    async with await Engine.connect(settings_of(two, corpus=filled.corpus)) as engine:
        question = engine.question(QUESTIONS[0], corpus=filled.corpus)
        assert not (await engine.ranking.rank(question, 5)).failed
        every = engine.shards._cluster.nodes_manager
        master, replica = next(nodes for nodes in every.slots_cache.values() if len(nodes) > 1)
        for node in replica, master:
            take_over(node)
            async with asyncio.timeout(FOLLOWED_SECONDS):
                while node not in engine.shards.nodes():
                    assert not (await engine.ranking.rank(question, 5)).failed
                    await asyncio.sleep(0.1)
            for nodes in every.slots_cache.values():
                del nodes[1:]  # as where nobody had told yet that the former master follows


def test_after_flushall_nothing_is_found_and_all_can_come_again(filled: Shards) -> None:
    before = lists(filled)
    tag, epoch = filled.tag_of("well of Tarn")
    client = filled.redis(keys.epoch(filled.corpus, tag))
    models = {name: client.dump(name) for name in client.keys("model:*")}
    client.flushall()
    wait_until(lambda: len(filled.documents("people")) < len(TEXTS) and lists(filled) != before, "documents are gone")
    for name, content in models.items():
        client.restore(name, 0, content)
    fill(filled)
    assert lists(filled) == before
    assert filled.tag_of("well of Tarn")[1] > epoch
