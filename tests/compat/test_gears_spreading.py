"""Registrations on three shards: sent to one, in force on all."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis, RedisCluster, ResponseError
from redis.exceptions import TryAgainError

from tests.compat.scripts import ANSWERS, echo, send
from tests.nodes import running_cluster, wait_until
from tests.workers import kill_worker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """Of its own: its tests unregister whatever there is."""
    with running_cluster(tmp_path_factory.mktemp("cluster") / "data", shards=3) as found:
        yield RedisCluster(host="127.0.0.1", port=found.state.port, decode_responses=True)


@pytest.fixture
def shards(cluster: RedisCluster) -> Iterator[list[Redis]]:
    nodes = cluster.get_primaries()  # type: ignore[no-untyped-call, unused-ignore]
    shards = [node.redis_connection for node in nodes]
    yield shards
    for shard in shards[:1]:
        for id in ids(shard):
            send(shard, "RG.UNREGISTER", id)


def ids(shard: Redis) -> list[str]:
    return sorted(dump[1] for dump in send(shard, "RG.DUMPREGISTRATIONS"))


def register(shard: Redis, code: str, id: str, *words: str) -> None:
    assert send(shard, "RG.PYEXECUTE", code, "ID", id, *words) == "OK"


def test_a_trigger_that_is_sent_to_one_shard_works_on_all(shards: list[Redis]) -> None:
    register(shards[0], echo("spread"), "spread")
    assert [send(shard, "RG.TRIGGER", "spread") for shard in shards] == [["yes"]] * 3
    assert ids(shards[0]) == ids(shards[1]) == ids(shards[2])


def test_a_variable_of_the_script_is_the_same_everywhere(shards: list[Redis]) -> None:
    code = "import random\nx = random.random()\nGB('CommandReader').map(lambda r: x).register(trigger='one-x')"
    register(shards[0], code, "one-x")
    assert len({send(shard, "RG.TRIGGER", "one-x")[0] for shard in shards}) == 1


def test_the_script_itself_runs_once(shards: list[Redis], cluster: RedisCluster) -> None:
    cluster.delete("script-runs")
    slot = next(s for s in shards if send(s, "CLUSTER", "MYID") == owner(cluster, "script-runs"))
    register(slot, "execute('INCR', 'script-runs')\n" + echo("ran-once"), "ran-once")
    assert cluster.get("script-runs") == "1"


def owner(cluster: RedisCluster, key: str) -> Any:
    node = cluster.get_node_from_key(key)  # type: ignore[no-untyped-call, unused-ignore]
    return send(node.redis_connection, "CLUSTER", "MYID")


def test_onregistered_runs_on_every_shard(shards: list[Redis]) -> None:
    code = """
import threading
def begin():
    global lock
    lock = threading.Lock()
def f(r):
    with lock:
        return 'locked'
GB('CommandReader').map(f).register(trigger='begun', onRegistered=begin)
"""
    register(shards[0], code, "begun")
    assert [send(shard, "RG.TRIGGER", "begun") for shard in shards] == [["locked"]] * 3


def test_events_of_every_shard_reach_the_function(shards: list[Redis], cluster: RedisCluster) -> None:
    code = """
GB().foreach(lambda r: execute('SET', 'seen:{' + r['key'] + '}', r['value'])).register(
    prefix='spread-event:*', eventTypes=['set'])
"""
    register(shards[0], code, "spread-events")
    for n in range(20):
        cluster.set(f"spread-event:{n}", n)
    for n in range(20):
        wait_until(lambda n=n: cluster.get(f"seen:{{spread-event:{n}}}") == str(n), "the event was handled")  # type: ignore[misc]


def test_misses_of_every_shard_are_answered(shards: list[Redis], cluster: RedisCluster) -> None:
    register(shards[0], ANSWERS.replace("{prefix}", "spread-answer:"), "spread-answers")
    for n in range(10):
        assert cluster.get(f"spread-answer:{n}") == f"answer of spread-answer:{n}"


def test_streams_of_every_shard_are_read(shards: list[Redis], cluster: RedisCluster) -> None:
    code = """
GB('StreamReader').foreach(lambda r: execute('SET', 'read:{' + r['key'] + '}', r['value']['n'])).register(
    prefix='spread-stream:*')
"""
    for n in range(5):
        cluster.xadd(f"spread-stream:{n}", {"n": "before"})
    register(shards[0], code, "spread-streams")
    for n in range(5, 10):
        cluster.xadd(f"spread-stream:{n}", {"n": "after"})
    for n in range(10):
        wanted = "before" if n < 5 else "after"
        wait_until(lambda n=n, wanted=wanted: cluster.get(f"read:{{spread-stream:{n}}}") == wanted, "read")  # type: ignore[misc]


def test_a_registration_with_steps_across_shards_runs_on_all(shards: list[Redis], cluster: RedisCluster) -> None:
    code = """
GB('CommandReader').flatmap(lambda r: r[1:]).repartition(lambda key: key).foreach(
    lambda key: execute('SET', key, 'written')).count().register(trigger='write-all')
"""
    register(shards[0], code, "write-all")
    keys = [f"write-all:{n}" for n in range(20)]
    assert send(shards[1], "RG.TRIGGER", "write-all", *keys) == ["20"]
    assert [cluster.get(key) for key in keys] == ["written"] * 20


def test_unregister_ends_it_everywhere(shards: list[Redis]) -> None:
    register(shards[0], echo("spread-gone"), "spread-gone")
    (id,) = ids(shards[1])
    assert send(shards[2], "RG.UNREGISTER", id) == "OK"
    for shard in shards:
        with pytest.raises(ResponseError, match="subcommand not found"):
            send(shard, "RG.TRIGGER", "spread-gone")


def test_an_upgrade_replaces_it_everywhere_whichever_shard_it_is_sent_to(shards: list[Redis]) -> None:
    register(shards[0], echo("spread-up", "old"), "spread-up")
    with pytest.raises(ResponseError, match="already exists"):
        register(shards[1], echo("spread-up", "new"), "spread-up")
    register(shards[1], echo("spread-up", "new"), "spread-up", "UPGRADE")
    assert [send(shard, "RG.TRIGGER", "spread-up") for shard in shards] == [["new"]] * 3
    register(shards[2], echo("spread-up", "newest"), "other-name", "REPLACE_WITH", "spread-up")
    assert [send(shard, "RG.TRIGGER", "spread-up") for shard in shards] == [["newest"]] * 3
    assert len(ids(shards[0])) == 1


def test_upgrades_under_load_lose_no_trigger_and_never_go_back(shards: list[Redis]) -> None:
    register(shards[0], echo("spread-load", "0"), "spread-load")
    over = threading.Event()

    def ask(shard: Redis) -> list[int]:
        heard = []
        while not over.is_set():
            (version,) = send(shard, "RG.TRIGGER", "spread-load")
            heard.append(int(version))
        return heard

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask, shard) for shard in shards]
        try:
            for version in range(1, 13):
                register(shards[version % 3], echo("spread-load", str(version)), "spread-load", "UPGRADE")
        finally:
            over.set()
        for heard in (one.result() for one in asking):
            assert heard == sorted(heard)
            assert len(set(heard)) > 3
    assert [send(shard, "RG.TRIGGER", "spread-load") for shard in shards] == [["12"]] * 3


def test_a_shard_that_refuses_leaves_the_old_version_everywhere(shards: list[Redis]) -> None:
    register(shards[0], echo("spread-old", "old"), "spread-old")
    code = """
def begin():
    if execute('CLUSTER', 'MYID') != ID:
        raise ValueError('not on this shard')
GB('CommandReader').map(lambda r: 'new').register(trigger='spread-old', onRegistered=begin)
"""
    code = f"ID = {send(shards[0], 'CLUSTER', 'MYID')!r}\n" + code
    with pytest.raises(ResponseError, match=r"nothing was registered.*not on this shard"):
        register(shards[0], code, "spread-old", "UPGRADE")
    assert [send(shard, "RG.TRIGGER", "spread-old") for shard in shards] == [["old"]] * 3


def test_what_can_not_travel_is_not_registered(shards: list[Redis]) -> None:
    code = """
import threading
lock = threading.Lock()
GB('CommandReader').map(lambda r: lock.locked()).register(trigger='no-travel')
"""
    with pytest.raises(ResponseError, match="can't be sent to the other shards"):
        register(shards[0], code, "no-travel")
    assert ids(shards[0]) == ids(shards[1]) == []


def test_a_trigger_that_another_shard_has_is_refused(shards: list[Redis]) -> None:
    register(shards[0], echo("spread-taken"), "spread-taken")
    with pytest.raises(ResponseError, match="already registered"):
        register(shards[1], echo("spread-taken"), "another")


def test_functions_and_variables_survive_a_new_worker(shards: list[Redis]) -> None:
    code = "import random\nx = random.random()\nGB('CommandReader').map(lambda r: x).register(trigger='kept-x')"
    register(shards[0], code, "kept-x")
    before = {send(shard, "RG.TRIGGER", "kept-x")[0] for shard in shards}
    for shard in shards:
        kill_worker(shard)
    for shard in shards:
        wait_until(lambda shard=shard: triggers(shard, "kept-x"), "the worker is back")  # type: ignore[misc]
    after = {send(shard, "RG.TRIGGER", "kept-x")[0] for shard in shards}
    assert (len(before), before) == (1, after)


def triggers(shard: Redis, trigger: str) -> bool:
    """False while the worker is away."""
    try:
        return bool(send(shard, "RG.TRIGGER", trigger))
    except (TryAgainError, ResponseError):
        return False
