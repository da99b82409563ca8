"""RG.* over a cluster: runs on every master, tags of shards."""

from typing import Any

import pytest
from redis import RedisCluster

from shardqa.cluster.local import LocalCluster
from shardqa.module.worker.gears.cluster.hashtags import slot_of_tag
from tests.compat.scripts import send_to


@pytest.fixture
def shards(bare_cluster: LocalCluster) -> RedisCluster:
    return RedisCluster(host="127.0.0.1", port=bare_cluster.state.port, decode_responses=True)


def primaries(shards: RedisCluster) -> list[Any]:
    found: list[Any] = shards.get_primaries()  # type: ignore[no-untyped-call, unused-ignore]
    return found


def test_a_run_counts_the_keys_of_all_shards(shards: RedisCluster) -> None:
    for n in range(50):
        shards.set(f"cluster-run:{n}", n)
    node = primaries(shards)[0]
    code = "GB('KeysReader').count().map(lambda n: n * 2).run('cluster-run:*')"
    assert send_to(shards, node, "RG.PYEXECUTE", code) == [["100"], []]


def test_a_run_of_mode_async_local_stays_on_its_shard(shards: RedisCluster) -> None:
    node = primaries(shards)[0]
    results, _ = send_to(shards, node, "RG.PYEXECUTE", "GB('ShardsIDReader').run(mode='async_local')")
    assert len(results) == 1


def test_every_shard_gives_its_id_once(shards: RedisCluster) -> None:
    node = primaries(shards)[0]
    results, errors = send_to(shards, node, "RG.PYEXECUTE", "GB('ShardsIDReader').run()")
    assert (len(set(results)), len(results), errors) == (3, 3, [])


def test_the_tag_of_a_shard_is_of_a_slot_it_owns(shards: RedisCluster) -> None:
    code = "GB('ShardsIDReader').map(lambda x: hashtag()).run(mode='async_local')"
    tags = [send_to(shards, node, "RG.PYEXECUTE", code)[0][0] for node in primaries(shards)]
    for tag, node in zip(tags, primaries(shards), strict=True):
        assert shards.nodes_manager.get_node_from_slot(slot_of_tag(tag)).name == node.name
    assert len(set(tags)) == 3


def test_a_run_that_writes_to_a_slot_of_another_shard_reports_it(shards: RedisCluster) -> None:
    node = shards.nodes_manager.get_node_from_slot(slot_of_tag("cluster-a"))
    other = next(n for n in primaries(shards) if n.name != node.name)
    code = "GB('ShardsIDReader').map(lambda x: execute('SET', '{cluster-a}', 1)).run(mode='async_local')"
    results, errors = send_to(shards, other, "RG.PYEXECUTE", code)
    assert results == []
    assert errors[0].split(" ", 1)[0] in ("TRYAGAIN", "MOVED", "ERR")


@pytest.mark.parametrize("word", ["SLOTS", "SHARDS"])
def test_a_function_is_told_of_the_slots_unless_that_would_crash_the_server(shards: RedisCluster, word: str) -> None:
    node = primaries(shards)[0]
    version = node.redis_connection.info("server").get("valkey_version")
    code = f"GB('ShardsIDReader').map(lambda x: len(execute('CLUSTER', '{word}'))).run(mode='async_local')"
    results, errors = send_to(shards, node, "RG.PYEXECUTE", code)
    if version is not None and tuple(map(int, version.split("."))) < (9, 0, 1):
        assert "upgrade Valkey" in errors[0]
    else:
        assert (results, errors) == (["3"], [])
    assert node.redis_connection.ping()


def test_a_run_inside_a_function_goes_over_all_shards(shards: RedisCluster) -> None:
    node = primaries(shards)[0]
    code = """
async def f(x):
    return await GB('ShardsIDReader').run()
GB('ShardsIDReader').map(f).run(mode='async_local')
"""
    (found,), errors = send_to(shards, node, "RG.PYEXECUTE", code)
    assert (found.count(","), errors) == (3, [])


def test_peers_are_the_other_masters(shards: RedisCluster) -> None:
    node = primaries(shards)[0]
    code = """
async def f(r):
    return [bytes(reply).decode() for reply in await runtime.peers('CLUSTER', 'MYID')]
GB('CommandReader').map(f).register(trigger='cluster-peers', mode='async_local', convertToStr=False)
"""
    assert send_to(shards, node, "RG.PYEXECUTE", code, "ID", "cluster-peers", "UPGRADE") == "OK"
    (ids,) = send_to(shards, node, "RG.TRIGGER", "cluster-peers")
    own = send_to(shards, node, "CLUSTER", "MYID")
    assert len(ids) == 2
    assert own not in ids
    (others,) = send_to(shards, primaries(shards)[1], "RG.TRIGGER", "cluster-peers")
    assert own in others
