"""Passages are encoded before a question asks, while there is time and room, and are read no differently for that."""

from collections.abc import Callable
from pathlib import Path

import pytest

from shardqa.cluster.local import LocalCluster
from tests import split_readers
from tests.cluster.shards_client import Shards
from tests.nodes import wait_until
from tests.split_readers import LITTLE, MILL, OTHERS, K, answer, ingest, pushed, states, told
from tests.workers import kill_worker, ready_worker

Start = Callable[..., LocalCluster]
Connect = Callable[[LocalCluster], Shards]


@pytest.fixture(scope="module")
def ahead(start_cluster: Start, split_reader: Path) -> LocalCluster:
    return pushed(start_cluster(shards=1), split_reader)


@pytest.fixture
def shards(ahead: LocalCluster, connect: Connect) -> Shards:
    """A shard whose worker has five passages and their states, which nobody asked for."""
    found = connect(ahead)
    client = found.redis(found.doc("d0"))
    ready_worker(client, {kill_worker(client)})
    ingest(found)
    encoded(found, K)
    return found


def encoded(shards: Shards, count: int) -> dict[str, int]:
    """What INFO says, once a worker that nobody has asked yet has encoded so many passages and none is left.

    It shows what the last worker told until the new one does, which was asked.
    """

    def is_done() -> dict[str, int] | None:
        found = told(shards, "encoded", "to_do", *split_readers.NUMBERS)
        return found if (found["encoded"], found["to_do"], found["hits"], found["misses"]) == (count, 0, 0, 0) else None

    return dict(wait_until(is_done, f"{count} passages are encoded"))


def test_the_first_question_computes_no_passage(shards: Shards) -> None:
    answer(shards)
    assert states(shards, K) == {**states(shards, K), "kept": K, "hits": K, "misses": 0, "evictions": 0}


@pytest.mark.parametrize("arguments", [("STATES_BYTES", "0"), ("STATES_AHEAD", "no")])
def test_the_answer_is_that_of_a_shard_that_computes_on_first_use(
    start_cluster: Start, shards: Shards, split_reader: Path, connect: Connect, arguments: tuple[str, ...]
) -> None:
    other = connect(pushed(start_cluster(shards=1, module_arguments=arguments), split_reader))
    ingest(other)
    assert answer(shards)["spans"] == answer(other)["spans"]
    found = states(other, K)
    assert (found["hits"], found["misses"]) == (0, K)
    assert told(other, "encoded", "to_do") == {"encoded": 0, "to_do": 0}


def test_a_worker_that_began_anew_encodes_anew(shards: Shards) -> None:
    before = answer(shards)
    client = shards.redis(shards.doc("d0"))
    ready_worker(client, {kill_worker(client)})
    encoded(shards, K)
    assert answer(shards) == before
    assert states(shards, K)["misses"] == 0


def test_a_document_that_changes_is_encoded_as_it_is_now(shards: Shards) -> None:
    shards.ingest("d0", MILL.replace("1742", "1803"))
    encoded(shards, K + 1)
    answer(shards)
    assert states(shards, K)["misses"] == 0


def test_it_ends_where_there_is_no_room_and_goes_on_in_that_of_texts_that_are_gone(
    start_cluster: Start, split_reader: Path, connect: Connect
) -> None:
    arguments = ("STATES_BYTES", str(LITTLE))
    shards = connect(pushed(start_cluster(shards=1, module_arguments=arguments), split_reader))
    shards.ingest("d0", MILL)
    encoded(shards, 1)
    ingest(shards)
    full = wait_until(lambda: told(shards, "encoded", "to_do", "bytes")["to_do"] in (1, 2), "the budget is full")
    assert full
    found = told(shards, "encoded", "to_do", *split_readers.NUMBERS)
    assert found["kept"] == found["encoded"] == K - found["to_do"]
    assert (found["evictions"], found["bytes"] <= LITTLE) == (0, True)
    for number in range(1, K):
        shards.delete(f"d{number}")
    shards.ingest("new", OTHERS[0].replace("miller", "carpenter"))
    wait_until(lambda: told(shards, "to_do", "kept") == {"to_do": 0, "kept": 2}, "the new one has found room")
