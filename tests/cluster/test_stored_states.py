"""Passages' states in keys: a new worker reads them back; what is damaged is computed, what goes is gone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from tests import split_readers
from tests.cluster.shards_client import Shards
from tests.nodes import wait_until
from tests.split_readers import K, answer, ingest, pushed, states, told
from tests.workers import kill_worker, ready_worker

DAY = 86_400  # seconds
PLENTY = ("STORED_STATES", "1000000")
LITTLE = 2_500  # bytes
Start = Callable[..., LocalCluster]
Connect = Callable[[LocalCluster], Shards]


@pytest.fixture(scope="module")
def storing(start_cluster: Start, split_reader: Path) -> LocalCluster:
    return pushed(start_cluster(shards=1, module_arguments=PLENTY), split_reader)


@pytest.fixture
def shards(storing: LocalCluster, connect: Connect) -> Iterator[Shards]:
    """A shard with five passages, and no others, and their states in keys."""
    found = connect(storing)
    ingest(found)
    wait_until(lambda: len(stored(found)) == K, "all states are stored")
    yield found
    for number in range(K):
        found.delete(f"d{number}")


def node(shards: Shards) -> Redis:
    found: Redis = shards.redis(shards.doc("d0"))
    return found


def stored(shards: Shards) -> dict[str, bytes]:
    """Values by document."""
    names = {f"d{n}": keys.states_of_passage(keys.passage(shards.corpus, f"d{n}", 0)) for n in range(K)}
    found = {document: node(shards).get(name) for document, name in names.items()}
    return {document: value for document, value in found.items() if isinstance(value, bytes)}


def begun_anew(shards: Shards, read_back: int, encoded: int) -> None:
    """Another worker, once it has done with so many passages of each kind."""
    client = node(shards)
    ready_worker(client, {kill_worker(client)})
    wanted = {"read_back": read_back, "encoded": encoded, "to_do": 0}
    wait_until(lambda: told(shards, *wanted) == wanted, f"a new worker tells {wanted}")


def test_a_worker_that_began_anew_computes_nothing(shards: Shards) -> None:
    before = answer(shards)
    begun_anew(shards, read_back=K, encoded=0)
    assert answer(shards) == before
    assert states(shards, K) == {**states(shards, K), "hits": K, "misses": 0}


def test_they_lie_beside_the_word_pieces_and_expire(shards: Shards) -> None:
    name = keys.states_of_passage(keys.passage(shards.corpus, "d0", 0))
    assert 0 < node(shards).ttl(name) <= DAY
    assert node(shards).execute_command("CLUSTER", "KEYSLOT", name) == node(shards).execute_command(
        "CLUSTER", "KEYSLOT", keys.tokens(shards.corpus, "d0", 0)
    )


def test_damaged_and_foreign_ones_are_computed_and_stored_anew(shards: Shards) -> None:
    before, whole = answer(shards), stored(shards)

    def put(document: str, value: Any) -> None:
        node(shards).set(keys.states_of_passage(keys.passage(shards.corpus, document, 0)), value)

    put("d0", whole["d0"][:-30] + bytes([whole["d0"][-30] ^ 1]) + whole["d0"][-29:])
    put("d1", whole["d1"][:50])
    put("d2", whole["d3"])
    list_there = keys.states_of_passage(keys.passage(shards.corpus, "d4", 0))
    node(shards).delete(list_there)
    node(shards).rpush(list_there, "not a string")
    begun_anew(shards, read_back=1, encoded=4)
    assert stored(shards) == whole
    assert answer(shards) == before


def test_a_document_that_is_deleted_takes_its_states_along(shards: Shards) -> None:
    shards.delete("d0")
    assert sorted(stored(shards)) == ["d1", "d2", "d3", "d4"]


def test_a_corpus_that_is_dropped_takes_its_states_along(shards: Shards) -> None:
    shards.all("RG.TRIGGER", "Drop", shards.corpus)
    wait_until(lambda: not stored(shards), "no states are left")


def test_where_memory_is_full_nothing_fails_and_nothing_is_stored(shards: Shards) -> None:
    client, before = node(shards), answer(shards)
    for document in stored(shards):
        client.delete(keys.states_of_passage(keys.passage(shards.corpus, document, 0)))
    client.config_set("maxmemory", 1)
    try:
        begun_anew(shards, read_back=0, encoded=K)
        assert stored(shards) == {}
        key = shards.answer_key("d0", split_readers.QUESTION, K, split_readers.NAME)
        assert answer_without_a_store(client, key) == before["spans"]
    finally:
        client.config_set("maxmemory", 0)


def answer_without_a_store(client: Redis, key: str) -> Any:
    client.delete(key)
    reply = client.get(key)
    assert reply is not None
    return json.loads(reply)["spans"]


def replicas(shards: Shards) -> list[Any]:
    """As the cluster tells them now."""
    shards.client.nodes_manager.initialize()
    found: list[Any] = shards.client.get_replicas()
    return found


def test_a_replica_that_was_promoted_computes_nothing(
    start_cluster: Start, split_reader: Path, connect: Connect
) -> None:
    shards = connect(pushed(start_cluster(shards=1, replicas=1, module_arguments=PLENTY), split_reader))
    ingest(shards)
    (replica,) = wait_until(lambda: replicas(shards), "the client knows the replica")
    with Redis(host=replica.host, port=int(replica.port)) as client:

        def is_told(**wanted: int) -> bool:
            info = client.info("shardqa")
            return {name: info.get(f"shardqa_states_{name}", 0) for name in wanted} == wanted

        wait_until(lambda: len(list(client.scan_iter("states:*"))) == K, "the replica has all states")
        client.execute_command("CLUSTER", "FAILOVER")
        wait_until(lambda: client.info("replication")["role"] == "master", "the replica took over")
        wait_until(lambda: is_told(read_back=K, encoded=0, to_do=0), "its worker has read all states")


def test_they_keep_to_their_budget(start_cluster: Start, split_reader: Path, connect: Connect) -> None:
    few = connect(pushed(start_cluster(shards=1, module_arguments=("STORED_STATES", str(LITTLE))), split_reader))
    ingest(few)
    wait_until(lambda: told(few, "encoded", "to_do") == {"encoded": K, "to_do": 0}, "all passages are encoded")
    assert 0 < sum(map(len, stored(few).values())) <= LITTLE
    assert len(stored(few)) < K
    begun_anew(few, read_back=len(stored(few)), encoded=K - len(stored(few)))
    assert told(few, "stored_bytes")["stored_bytes"] == sum(map(len, stored(few).values()))


def test_nothing_is_stored_unless_somebody_wants_it(start_cluster: Start, split_reader: Path, connect: Connect) -> None:
    shards = connect(pushed(start_cluster(shards=1), split_reader))
    ingest(shards)
    wait_until(lambda: told(shards, "encoded", "to_do") == {"encoded": K, "to_do": 0}, "all passages are encoded")
    assert stored(shards) == {}
