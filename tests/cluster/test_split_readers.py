"""A split reader on a cluster: what is kept of passages changes no answer, nor do its loss, its bound or its end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from tests.cluster.shards_client import Shards
from tests.nodes import wait_until
from tests.split_readers import LITTLE, MILL, QUESTION, K, answer, ingest, pushed, states
from tests.workers import kill_worker, ready_worker

ON_FIRST_USE = ("STATES_AHEAD", "no")  # arguments of the module
Start = Callable[..., LocalCluster]
Connect = Callable[[LocalCluster], Shards]


@pytest.fixture(scope="module")
def keeping(start_cluster: Start, split_reader: Path) -> LocalCluster:
    """A shard that keeps what there is, once it was read."""
    return pushed(start_cluster(shards=1, module_arguments=ON_FIRST_USE), split_reader)


@pytest.fixture
def anew(keeping: LocalCluster, connect: Connect) -> Shards:
    """That shard with a worker that keeps nothing yet, and five documents."""
    shards = connect(keeping)
    client = shards.redis(shards.doc("d0"))
    ready_worker(client, {kill_worker(client)})
    ingest(shards)
    return shards


def test_answers_are_the_same_cold_warm_and_after_the_workers_end(anew: Shards) -> None:
    cold = answer(anew)
    assert states(anew, K) == {**states(anew, K), "kept": K, "hits": 0, "evictions": 0, "limit": 64 << 20}
    assert answer(anew) == cold
    assert states(anew, 2 * K)["hits"] == K
    client = anew.redis(anew.doc("d0"))
    ready_worker(client, {kill_worker(client)})
    assert answer(anew) == cold
    assert states(anew, K) == {**states(anew, K), "hits": 0, "misses": K}


def test_a_document_that_changes_is_read_as_it_is_now(anew: Shards) -> None:
    before = answer(anew)
    anew.ingest("d0", MILL.replace("1742", "1803"))
    changed = answer(anew)
    assert changed != before
    assert states(anew, 2 * K) == {**states(anew, 2 * K), "hits": K - 1, "misses": K + 1, "kept": K + 1}
    text = changed["passages"][keys.passage(anew.corpus, "d0", 0)]["text"]
    assert "1803" in text
    anew.ingest("d0", MILL)
    assert answer(anew)["spans"] == before["spans"]


@pytest.mark.parametrize("limit", [0, LITTLE])
def test_answers_are_the_same_where_little_or_nothing_may_be_kept(
    start_cluster: Start, anew: Shards, split_reader: Path, connect: Connect, limit: int
) -> None:
    other = connect(
        pushed(start_cluster(shards=1, module_arguments=(*ON_FIRST_USE, "STATES_BYTES", str(limit))), split_reader)
    )
    ingest(other)
    wanted = answer(anew)["spans"]
    for _ in range(3):
        assert answer(other)["spans"] == wanted
    found = states(other, 3 * K)
    assert found["bytes"] <= limit == found["limit"]
    assert (found["kept"] > 0) == (found["evictions"] > 0) == (limit > 0)


def test_the_shipped_reader_keeps_nothing(keeping: LocalCluster, connect: Connect) -> None:
    shards = connect(keeping)
    client = shards.redis(shards.doc("d0"))
    ready_worker(client, {kill_worker(client)})
    shards.ingest("d0", MILL)
    reply = json.loads(shards.client.get(shards.answer_key("d0", QUESTION)))
    assert reply["spans"][0]["text"] == "1742"
    wait_until(lambda: "shardqa_model_run_us_p50" in client.info("shardqa"), "INFO tells of the run")
    assert "shardqa_states_kept" not in client.info("shardqa")
