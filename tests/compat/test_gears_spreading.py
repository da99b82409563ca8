"""Registrations on three shards: sent to one, in force on all. (Recipes show events, misses and streams of each.)"""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from redis import Redis, ResponseError
from redis.exceptions import TryAgainError

from tests.compat.scripts import echo, fields, registered_ids, registrations, send
from tests.nodes import wait_until
from tests.workers import kill_worker


def register(shard: Redis, code: str, id: str, *words: str) -> None:
    assert send(shard, "RG.PYEXECUTE", code, "ID", id, *words) == "OK"


def triggered(shards: list[Redis], trigger: str) -> list[Any]:
    return [send(shard, "RG.TRIGGER", trigger)[0] for shard in shards]


def test_an_upgrade_replaces_it_everywhere_whichever_shard_it_is_sent_to(shards: list[Redis]) -> None:
    others = {id for shard in shards for id in registered_ids(shard)}  # their own
    register(shards[0], echo("spread-up", "old"), "spread-up")
    assert triggered(shards, "spread-up") == ["old"] * 3
    with pytest.raises(ResponseError, match="already exists"):
        register(shards[1], echo("spread-up", "new"), "spread-up")
    register(shards[1], echo("spread-up", "new"), "spread-up", "UPGRADE")
    assert triggered(shards, "spread-up") == ["new"] * 3
    register(shards[2], echo("spread-up", "newest"), "other-name", "REPLACE_WITH", "spread-up")
    assert triggered(shards, "spread-up") == ["newest"] * 3
    ids = [set(registered_ids(shard)) - others for shard in shards]
    assert ids == [ids[0]] * 3
    assert len(ids[0]) == 1


def test_the_script_itself_runs_once(shards: list[Redis], cluster_client: Any) -> None:
    owner = cluster_client.get_node_from_key("script-runs").redis_connection
    cluster_client.delete("script-runs")
    register(owner, "execute('INCR', 'script-runs')\n" + echo("ran-once"), "ran-once")
    assert cluster_client.get("script-runs") == "1"


def test_a_run_inside_a_function_finds_the_variables_of_each_shard(shards: list[Redis]) -> None:
    code = """
n = 0
def count(r):
    global n
    n += 1
    return n
async def f(r):
    return (await GB('ShardsIDReader').map(count).run())[0]
GB('CommandReader').map(f).register(trigger='count-all', mode='async_local')
GB('CommandReader').map(lambda r: n).register(trigger='counted', mode='async_local')
"""
    register(shards[0], code, "counted")
    assert [send(shard, "RG.TRIGGER", "count-all") for shard in shards] == [[str([n] * 3)] for n in "123"]
    assert triggered(shards, "counted") == ["3"] * 3


def test_what_a_function_registers_is_on_every_shard_and_goes_with_its_session(shards: list[Redis]) -> None:
    code = """
n = 5
def register(r):
    GB('CommandReader').map(lambda x: n).register(trigger=r[1], mode='sync')
    registerTE(1000, print, 'timer{' + hashtag() + '}')
    return 'done'
GB('CommandReader').map(register).register(trigger='registers', mode='sync')
"""
    register(shards[0], code, "registers")
    assert send(shards[1], "RG.TRIGGER", "registers", "inner") == ["done"]
    wait_until(lambda: all(len(registered_in(shard, "registers")) == 3 for shard in shards))
    assert triggered(shards, "inner") == ["5"] * 3
    with pytest.raises(ResponseError, match="trigger already registered"):
        send(shards[2], "RG.TRIGGER", "registers", "inner")
    kill_worker(shards[2])
    wait_until(partial(answers, shards[2], "inner"), "the worker is back")
    assert triggered(shards, "inner") == ["5"] * 3
    register(shards[2], code, "registers", "UPGRADE")
    assert [len(registered_in(shard, "registers")) for shard in shards] == [1] * 3
    with pytest.raises(ResponseError, match="not found"):
        send(shards[0], "RG.TRIGGER", "inner")


def registered_in(shard: Redis, session: str) -> list[str]:
    return list(fields(send(shard, "RG.PYDUMPSESSIONS", "SESSIONS", session)[0])["registrations"])


def test_threads_that_onregistered_began_reach_tensors_of_their_shard(shards: list[Redis]) -> None:
    code = """
import queue, redisAI, threading
def begin():
    global asked, told
    asked, told = queue.Queue(), queue.Queue()
    threading.Thread(target=serve, daemon=True).start()
def serve():
    while True:
        told.put(redisAI.tensorToFlatList(redisAI.getTensorFromKey(asked.get())))
def f(r):
    redisAI.setTensorInKey('threads:{' + hashtag() + '}', redisAI.createTensorFromValues('INT8', [1], [7]))
    asked.put('threads:{' + hashtag() + '}')
    return told.get(timeout=50)
GB('CommandReader').map(f).register(trigger='threads', onRegistered=begin)
"""
    register(shards[0], code, "threads")
    assert send(shards[0], "RG.TRIGGER", "threads") == ["[7]"] * 3


def test_a_registration_with_steps_across_shards_runs_on_all(shards: list[Redis], cluster_client: Any) -> None:
    code = """
GB('CommandReader').flatmap(lambda r: r[1:]).repartition(lambda key: key).foreach(
    lambda key: execute('SET', key, 'written')).count().register(trigger='write-all')
"""
    register(shards[0], code, "write-all")
    keys = [f"write-all:{n}" for n in range(20)]
    assert send(shards[1], "RG.TRIGGER", "write-all", *keys) == ["60"]
    assert [cluster_client.get(key) for key in keys] == ["written"] * 20


@pytest.mark.parametrize(("mode", "count"), [("async", "3"), ("async_local", "1"), ("sync", "1")])
def test_a_trigger_runs_on_every_shard_unless_its_mode_is_local(shards: list[Redis], mode: str, count: str) -> None:
    register(shards[0], f"GB('CommandReader').count().register(trigger='reach', mode={mode!r})", "reach", "UPGRADE")
    assert triggered(shards, "reach") == [count] * 3


def test_onregistered_runs_on_every_shard_for_what_its_functions_keep_there(shards: list[Redis]) -> None:
    code = """
import threading
def begin():
    global lock, n
    lock, n = threading.Lock(), 0
def f(r):
    global n
    with lock:
        n += 1
        return n
GB('CommandReader').map(f).register(trigger='parts', onRegistered=begin)
"""
    register(shards[0], code, "parts")
    assert [send(shard, "RG.TRIGGER", "parts") for shard in shards] == [[number] * 3 for number in "123"]


def test_unregister_ends_it_everywhere(shards: list[Redis]) -> None:
    before = set(registered_ids(shards[1]))
    register(shards[0], echo("spread-gone"), "spread-gone")
    (id,) = set(registered_ids(shards[1])) - before
    assert send(shards[2], "RG.UNREGISTER", id) == "OK"
    for shard in shards:
        with pytest.raises(ResponseError, match="subcommand not found"):
            send(shard, "RG.TRIGGER", "spread-gone")
        with pytest.raises(ResponseError, match="does not exist"):
            send(shard, "RG.UNREGISTER", id)


def test_a_reader_of_streams_is_paused_everywhere(shards: list[Redis]) -> None:
    register(shards[0], "GB('StreamReader', desc='paused').register('paused:*')", "paused")
    for shard, command, status in (shards[1], "PAUSE", "PAUSED"), (shards[2], "UNPAUSE", "OK"):
        (id,) = {entry["id"] for entry in registrations(shard) if entry["desc"] == "paused"}
        assert send(shard, f"RG.{command}REGISTRATIONS", id) == "OK"
        every = [entry for one in shards for entry in registrations(one) if entry["id"] == id]
        assert [entry["status"] for entry in every] == [status] * 3


def test_upgrades_under_load_lose_no_trigger_and_never_go_back(shards: list[Redis]) -> None:
    register(shards[0], echo("spread-load", "0"), "spread-load")
    over, seen = threading.Event(), [list[int]() for _ in shards]

    def ask(shard: Redis, own: list[int]) -> None:
        while not over.is_set():
            own.append(int(send(shard, "RG.TRIGGER", "spread-load")[0]))

    def have_asked(counts: list[int]) -> bool:
        return all(len(own) > count for own, count in zip(seen, counts, strict=True))

    with ThreadPoolExecutor(3) as pool:
        askers = [pool.submit(ask, shard, own) for shard, own in zip(shards, seen, strict=True)]
        try:
            for version in range(1, 13):
                counts = [len(own) for own in seen]
                register(shards[version % 3], echo("spread-load", str(version)), "spread-load", "UPGRADE")
                wait_until(partial(have_asked, counts))  # each version meets askers, however slow the machine
        finally:
            over.set()
        assert [asker.result() for asker in askers] == [None] * 3
    assert seen == [sorted(own) for own in seen]
    assert min(len(set(own)) for own in seen) > 3
    assert triggered(shards, "spread-load") == ["12"] * 3


def test_a_shard_that_refuses_leaves_the_old_version_everywhere(shards: list[Redis]) -> None:
    register(shards[0], echo("spread-old", "old"), "spread-old")
    code = f"""
def begin():
    if execute('CLUSTER', 'MYID') != {send(shards[0], "CLUSTER", "MYID")!r}:
        raise ValueError('not on this shard')
GB('CommandReader').map(lambda r: 'new').register(trigger='spread-old', onRegistered=begin, mode='async_local')
"""
    with pytest.raises(ResponseError, match=r"nothing was registered.*not on this shard"):
        register(shards[0], code, "spread-old", "UPGRADE")
    assert triggered(shards, "spread-old") == ["old"] * 3


def test_what_can_not_travel_is_not_registered(shards: list[Redis]) -> None:
    before = [registered_ids(shard) for shard in shards]
    code = """
import threading
lock = threading.Lock()
GB('CommandReader').map(lambda r: lock.locked()).register(trigger='no-travel')
"""
    with pytest.raises(ResponseError, match="can't be sent to the other shards"):
        register(shards[0], code, "no-travel")
    assert [registered_ids(shard) for shard in shards] == before


def test_a_trigger_that_another_shard_has_is_refused(shards: list[Redis]) -> None:
    register(shards[0], echo("spread-taken"), "spread-taken")
    with pytest.raises(ResponseError, match="already registered"):
        register(shards[1], echo("spread-taken"), "another")


def test_functions_and_variables_survive_a_new_worker(shards: list[Redis]) -> None:
    code = "import random\nx = random.random()\nGB('CommandReader').map(lambda r: x).register(trigger='kept-x')"
    register(shards[0], code, "kept-x")
    before = send(shards[0], "RG.TRIGGER", "kept-x")
    assert before == [before[0]] * 3
    for shard in shards:
        kill_worker(shard)
    for shard in shards:
        wait_until(partial(answers, shard, "kept-x"), "the worker is back")
    assert send(shards[0], "RG.TRIGGER", "kept-x") == before


def test_registering_and_unregistering_wait_for_workers_that_are_being_restarted(shards: list[Redis]) -> None:
    pid = kill_worker(shards[1])
    register(shards[0], echo("spread-wait"), "spread-wait")
    assert triggered(shards, "spread-wait") == ["yes"] * 3
    (id,) = [entry["id"] for entry in registrations(shards[0]) if "spread-wait" in entry["PD"]]
    for shard in shards[1:]:
        kill_worker(shard, {pid})
    wait_until(lambda: shards[2].info("shardqa")["shardqa_worker_state"] != "ready", "its end is seen")
    assert send(shards[2], "RG.UNREGISTER", id) == "OK"
    assert not any(id in registered_ids(shard) for shard in shards)


def answers(shard: Redis, trigger: str) -> bool:
    """False while its worker is away."""
    try:
        return bool(send(shard, "RG.TRIGGER", trigger))
    except (TryAgainError, ResponseError):
        return False
