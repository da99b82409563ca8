"""UNBLOCKING runs and the commands about executions, on one node and on three shards."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis, ResponseError, TimeoutError
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.compat.scripts import fields, registrations, send
from tests.nodes import wait_until
from tests.workers import kill_worker

LOOP = "import asyncio\nasync def f(x):\n    await asyncio.sleep(1000)\nGB('ShardsIDReader').map(f).run()"


def start(client: Redis, code: str) -> str:
    return str(send(client, "RG.PYEXECUTE", code, "UNBLOCKING"))


def listed(client: Redis) -> dict[str, str]:
    return {entry[1]: entry[3] for entry in send(client, "RG.DUMPEXECUTIONS")}


def test_an_unblocking_run_replies_its_id_and_keeps_its_results(client: Redis) -> None:
    id = start(client, "GB('ShardsIDReader').map(lambda x: 'done ' + x).run()")
    assert id.startswith("0" * 40 + "-")
    assert send(client, "RG.GETRESULTSBLOCKING", id) == [["done 1"], []]
    assert send(client, "RG.GETRESULTS", id) == [["done 1"], []]
    assert listed(client)[id] == "done"
    assert send(client, "RG.DROPEXECUTION", id) == "OK"
    before = listed(client)
    assert id not in before
    send(client, "RG.PYEXECUTE", "GB('ShardsIDReader').run()")
    assert listed(client) == before, "a run that a client waited for is not kept"


@pytest.mark.parametrize(
    "command", ["GETEXECUTION", "GETRESULTS", "GETRESULTSBLOCKING", "DROPEXECUTION", "ABORTEXECUTION"]
)
def test_an_unknown_execution_is_an_error(client: Redis, command: str) -> None:
    with pytest.raises(ResponseError, match="execution does not exist"):
        send(client, f"RG.{command}", "nobody")


def test_a_running_execution_is_listed_and_can_be_aborted(client: Redis) -> None:
    id = start(client, LOOP)
    assert listed(client)[id] == "running"
    for command in ("GETRESULTS", "DROPEXECUTION"):
        with pytest.raises(ResponseError, match="running"):
            send(client, f"RG.{command}", id)
    assert send(client, "RG.ABORTEXECUTION", id) == "OK"
    assert listed(client)[id] == "done"  # as RedisGears calls it
    results, errors = send(client, "RG.GETRESULTS", id)
    assert (results, len(errors)) == ([], 1)
    assert send(client, "RG.ABORTEXECUTION", id) == "OK", "it has ended, which is what was wanted"
    (entry,) = [one for one in send(client, "RG.DUMPEXECUTIONS", "WITH", "STATISTICS") if one[1] == id]
    assert fields(entry)["aborted"] == 1


def test_events_that_wait_are_listed_as_created_and_can_be_aborted(client: Redis) -> None:
    code = """
import time
def f(r):
    while not execute('EXISTS', 'waits-go'): time.sleep(0.01)
    execute('RPUSH', 'waits-done', r['key'])
GB(desc='waits').foreach(f).register('waits:*', mode='async_local', readValue=False)
"""
    send(client, "RG.PYEXECUTE", code)
    (registration,) = [one for one in registrations(client) if one["desc"] == "waits"]

    def own(status: str) -> list[str]:
        entries = [fields(entry) for entry in send(client, "RG.DUMPEXECUTIONS", "WITH", "STATISTICS")]
        return [e["executionId"] for e in entries if e["status"] == status and e["session"] in registration["PD"]]

    client.set("waits:1", 1)
    wait_until(lambda: len(own("running")) == 1, "the first one runs")
    client.mset({"waits:2": 2, "waits:3": 3})
    wait_until(lambda: len(own("created")) == 2, "the others are listed")
    assert [r["numTriggered"] for r in registrations(client) if r["id"] == registration["id"]] == [3]
    third, second = own("created")
    assert send(client, "RG.ABORTEXECUTION", second) == "OK"
    assert own("created") == [third]
    assert own("aborted") == [second]
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(send, client, "RG.GETRESULTSBLOCKING", third)
        wait_until(lambda: client.info("shardqa")["shardqa_waiting_clients"], "a client waits for the third one")
        client.set("waits-go", 1)
        assert waits.result(60)[1] == []
    assert third in own("done"), "it has run under the id it waited with"
    assert client.lrange("waits-done", 0, -1) == ["waits:1", "waits:3"]
    wait_until(lambda: [r["numAborted"] for r in registrations(client) if r["id"] == registration["id"]] == [1])
    send(client, "RG.UNREGISTER", registration["id"])


@pytest.mark.parametrize(("words", "done"), [([], ["1", "2", "3"]), (["abortpending"], ["1"])], ids=["run", "aborted"])
def test_unregistering_ends_what_runs_and_aborts_what_waits_if_asked(
    client: Redis, words: list[str], done: list[str]
) -> None:
    code = """
import time
def f(r):
    while not execute('EXISTS', 'goes-go'): time.sleep(0.01)
    execute('RPUSH', 'goes-done', r['key'][-1])
GB(desc='goes').foreach(f).register('goes:*', mode='async_local', readValue=False)
"""
    client.delete("goes-go", "goes-done")
    send(client, "RG.PYEXECUTE", code, "ID", "goes")
    (registration,) = [one for one in registrations(client) if one["desc"] == "goes"]
    client.mset({"goes:1": 1, "goes:2": 2, "goes:3": 3})
    wait_until(lambda: [e[3] for e in send(client, "RG.DUMPEXECUTIONS")].count("created") == 2, "two wait")
    assert send(client, "RG.UNREGISTER", registration["id"], *words) == "OK"
    assert registration["id"] not in [one["id"] for one in registrations(client)]
    client.set("goes-go", 1)
    wait_until(lambda: client.lrange("goes-done", 0, -1) == done, "what ran is done, and what waits if it may")
    wait_until(lambda: client.info("shardqa")["shardqa_scripts"] == 0, "its rights end with it")
    assert "running" not in [e[3] for e in send(client, "RG.DUMPEXECUTIONS")]


def test_an_execution_describes_itself(client: Redis) -> None:
    id = start(client, "GB('ShardsIDReader').map(lambda x: x).filter(lambda x: True).run()")
    send(client, "RG.GETRESULTSBLOCKING", id)
    (shard,) = send(client, "RG.GETEXECUTION", id)
    assert (shard[0], shard[1], shard[2]) == ("shard_id", "0" * 40, "execution_plan")
    plan = fields(shard[3])
    names = "status shards_received shards_completed results errors total_duration read_duration steps"
    assert list(plan) == names.split()
    assert all(entry[::2] == ["executionId", "status", "registered"] for entry in send(client, "RG.DUMPEXECUTIONS"))
    assert (plan["status"], plan["results"], plan["errors"]) == ("done", 1, [])
    assert [fields(step)["type"] for step in plan["steps"]] == ["collect", "map", "filter", "map"]


def test_the_list_keeps_no_more_than_maxexecutions(client: Redis) -> None:
    assert send(client, "RG.CONFIGSET", "MaxExecutions", 5) == ["OK"]
    try:
        for _ in range(8):
            id = start(client, "GB('ShardsIDReader').run()")
            send(client, "RG.GETRESULTSBLOCKING", id)
        of_scripts = [entry for entry in send(client, "RG.DUMPEXECUTIONS") if entry[5] == 0]
        assert len(of_scripts) <= 6
        assert id in listed(client)
    finally:
        send(client, "RG.CONFIGSET", "MaxExecutions", 1000)


def test_settings_are_read_and_set(client: Redis) -> None:
    assert send(client, "RG.CONFIGGET", "ProfileExecutions", "maxexecutions") == [0, 1000]
    replies = send(client, "RG.CONFIGSET", "foo", "bar", "ExecutionMaxIdleTime", "6000")
    assert replies == ["OK - value was saved in extra config dictionary", "OK"]
    assert send(client, "RG.CONFIGGET", "foo", "ExecutionMaxIdleTime") == ["bar", 6000]
    send(client, "RG.CONFIGSET", "ExecutionMaxIdleTime", "5000")
    code = "GB('ShardsIDReader').map(lambda x: [configGet('foo'), gearsConfigGet('none', 'd')]).run()"
    assert send(client, "RG.PYEXECUTE", code) == [["['bar', 'd']"], []]


def test_settings_that_can_not_be_are_errors_in_their_place(client: Redis) -> None:
    missing, there = send(client, "RG.CONFIGGET", "not-there", "MaxExecutions")
    assert "Unsupported config parameter: not-there" in str(missing)
    assert there == 1000
    for name, value in (("MaxExecutions", "many"), ("MaxExecutions", "0"), ("ExecutionThreads", "4")):
        (error,) = send(client, "RG.CONFIGSET", name, value)
        assert isinstance(error, ResponseError)
    with pytest.raises(ResponseError, match="wrong number of arguments"):
        send(client, "RG.CONFIGSET", "a", "b", "c")


def test_one_node_is_no_cluster(client: Redis) -> None:
    assert send(client, "RG.INFOCLUSTER") == "no cluster mode"
    assert send(client, "RG.REFRESHCLUSTER") == "OK"


def test_the_cluster_is_described(shards: list[Redis]) -> None:
    described_cluster: list[Any] = send(shards[0], "RG.INFOCLUSTER")
    own, masters = fields(described_cluster[:4]), described_cluster[4]
    assert (list(own), own["MyId"], len(masters)) == (["MyId", "MyRunId"], send(shards[0], "CLUSTER", "MYID"), 3)
    described = [fields(master) for master in masters]
    assert (own["MyId"], own["MyRunId"]) in [(master["id"], master["runid"]) for master in described]
    assert sorted((m["minHslot"], m["maxHslot"]) for m in described)[0][0] == 0
    assert all(send(node, "RG.REFRESHCLUSTER") == "OK" for node in shards)


def test_an_execution_is_known_on_all_shards_and_dropped_there(shards: list[Redis]) -> None:
    id = start(shards[0], "GB('ShardsIDReader').run()")
    results, errors = send(shards[0], "RG.GETRESULTSBLOCKING", id)
    assert (len(results), errors) == (3, [])
    assert len(send(shards[0], "RG.GETEXECUTION", id)) == 3
    assert len(send(shards[0], "RG.GETEXECUTION", id, "SHARD")) == 1
    assert len(send(shards[0], "RG.GETEXECUTION", id, "CLUSTER")) == 3
    assert send(shards[0], "RG.DROPEXECUTION", id) == "OK"
    assert not any(id in listed(node) for node in shards)


def test_abort_ends_an_execution_on_all_shards(shards: list[Redis]) -> None:
    id = start(shards[0], LOOP)
    wait_until(lambda: all(listed(node).get(id) == "running" for node in shards), "all shards run their part")
    assert send(shards[0], "RG.ABORTEXECUTION", id) == "OK"
    wait_until(lambda: all(listed(node).get(id) == "done" for node in shards), "all shards end it")


def test_an_execution_that_is_waited_for_ends_everywhere_with_its_client(shards: list[Redis]) -> None:
    place = shards[0].connection_pool.connection_kwargs
    once = Retry(NoBackoff(), 0)
    impatient = Redis(host=place["host"], port=place["port"], socket_timeout=1, retry=once)
    with impatient, pytest.raises(TimeoutError):
        send(impatient, "RG.PYEXECUTE", LOOP)
    wait_until(lambda: not any("running" in listed(node).values() for node in shards), "nothing runs any more")


def test_an_execution_that_stands_still_elsewhere_ends_with_what_there_is(shards: list[Redis]) -> None:
    first, *others = shards
    code = """
import asyncio
first = hashtag()
async def f(x):
    if hashtag() != first: await asyncio.sleep(1000)
    return 'here'
GB('CommandReader').map(f).register(trigger='idle')
GB('ShardsIDReader').map(f).run()
"""
    send(first, "RG.CONFIGSET", "ExecutionMaxIdleTime", "500")
    try:
        assert send(first, "RG.PYEXECUTE", code) == [["here"], ["Execution max idle reached"]]
        with pytest.raises(ResponseError, match=r"^Execution max idle reached$"):
            send(first, "RG.TRIGGER", "idle")
    finally:
        send(first, "RG.CONFIGSET", "ExecutionMaxIdleTime", "5000")
    wait_until(lambda: not any("running" in listed(shard).values() for shard in others), "the others' parts end")


def test_a_shard_whose_worker_dies_leaves_the_execution_with_an_error(shards: list[Redis]) -> None:
    victim = send(shards[1], "CLUSTER", "MYID")
    code = f"""
import asyncio
async def f(id):
    if id == {victim!r}:
        await asyncio.sleep(1000)
    return id
GB('ShardsIDReader').map(f).run()
"""
    id = start(shards[0], code)
    wait_until(lambda: listed(shards[1]).get(id) == "running", "the shard has begun its part")
    kill_worker(shards[1])
    wait_until(lambda: listed(shards[0])[id] == "done", "the execution ends without it", 60)
    results, errors = send(shards[0], "RG.GETRESULTS", id)
    assert len(results) == 2
    assert victim not in results
    assert len(errors) == 1
    assert "shard 127.0.0.1" in errors[0]
    wait_until(lambda: answers(shards[1]), "the worker is back")


def answers(shard: Redis) -> bool:
    """False while its worker is away."""
    try:
        return bool(send(shard, "RG.CONFIGGET", "MaxExecutions"))
    except ResponseError:
        return False
