"""Rights that the functions of a real worker have, and attempts of one that wants more."""

from collections.abc import Iterator

import pytest
from redis import Redis, RedisCluster, ResponseError
from redis.exceptions import NoPermissionError

from shardqa.cluster.local import LocalCluster
from tests.compat.scripts import registered_ids, registrations, send
from tests.nodes import Node, wait_until

FOLLOWING = {
    "hook": "GB('CommandReader').map(lambda r: 'FAKE').register(hook='get', keyprefix='{}', mode='sync')",
    "events": "GB().foreach(lambda r: r).register('{}*')",
    "stream": "GB('StreamReader').foreach(lambda r: r).register('{}*')",
    "misses": "GB().foreach(lambda r: override_reply('F')).register('{}*', commands=['get'], eventTypes=['keymiss'])",
    "watch": "async def told(_): pass\nruntime.watch('{}', told, told)",
}
PUT = "GB('CommandReader').map(lambda r: execute('SET', r[1], 'x')).register(trigger='{}', mode='async_local'{})"


@pytest.fixture
def asker(redis_node: Node, client: Redis) -> Iterator[Redis]:
    """A user who may trigger, and set keys of its own."""
    rights = ("reset", "on", "nopass", "~own:*", "+set", "+get", "+shardqa.get", "+rg.trigger")
    send(client, "ACL", "SETUSER", "asker", *rights)
    with redis_node.client(decode_responses=True, username="asker", password="x") as own:
        yield own


@pytest.fixture
def registrar(redis_node: Node, client: Redis) -> Iterator[Redis]:
    """A user who may run code, and touch nothing but keys of its own."""
    send(client, "ACL", "SETUSER", "registrar", "reset", "on", "nopass", "~own:*", "&*", "+@all")
    with redis_node.client(decode_responses=True, username="registrar", password="x") as own:
        yield own


@pytest.fixture
def alice(redis_node: Node, client: Redis) -> Iterator[Redis]:
    """A user who may bring code, and has keys of its own; what it registers goes when the test ends."""
    rights = ("reset", "on", "nopass", "~alice:*", "+rg.pyexecute", "+debug|help")
    send(client, "ACL", "SETUSER", "alice", *rights)
    others = registered_ids(client)
    with redis_node.client(decode_responses=True, username="alice", password="x") as own:
        yield own
    for id in set(registered_ids(client)) - set(others):
        send(client, "RG.UNREGISTER", id)


@pytest.mark.parametrize("upgraded", [False, True], ids=["unregistered", "upgraded"])
def test_what_runs_gets_no_rights_of_who_takes_its_sessions_id(client: Redis, registrar: Redis, upgraded: bool) -> None:
    others = registered_ids(client)
    client.delete("own:begun", "own:go", "others:secret")
    code = """
import time
def f(r):
    execute('SET', 'own:begun', 1)
    while not execute('EXISTS', 'own:go'): time.sleep(0.01)
    execute('SET', 'others:secret', 1)
GB(desc='heir').foreach(f).register('own:heir*', mode='async_local', readValue=False)
"""
    send(registrar, "RG.PYEXECUTE", code, "ID", "heir")
    (id,) = [one["id"] for one in registrations(client) if one["desc"] == "heir"]
    client.set("own:heir:1", 1)
    wait_until(lambda: client.exists("own:begun"), "it runs")
    if not upgraded:
        send(registrar, "RG.UNREGISTER", id)
    assert send(client, "RG.PYEXECUTE", PUT.format("heirs", ""), "ID", "heir", "UPGRADE") == "OK"
    client.set("own:go", 1)
    wait_until(lambda: "running" not in [one[3] for one in send(client, "RG.DUMPEXECUTIONS")], "it has ended")
    wait_until(lambda: client.info("shardqa")["shardqa_scripts"] == 0, "no rights are held")
    assert not client.exists("others:secret")
    assert send(client, "RG.TRIGGER", "heirs", "others:mine") == ["OK"]
    for left in set(registered_ids(client)) - set(others):
        send(client, "RG.UNREGISTER", left)


@pytest.mark.parametrize("code", FOLLOWING.values(), ids=FOLLOWING)
def test_keys_of_others_can_not_be_followed(client: Redis, alice: Redis, code: str) -> None:
    others = registered_ids(client)
    with pytest.raises(NoPermissionError) as refused:
        send(alice, "RG.PYEXECUTE", code.format("victim:"))
    for part in ("'victim:*'", "'alice'", "'~alice:*'", "%R~victim:*"):
        assert part in str(refused.value)
    assert registered_ids(client) == others
    assert send(alice, "RG.PYEXECUTE", code.format("alice:")) == "OK"


def test_a_command_without_keys_is_hooked_by_who_has_all_keys(client: Redis, alice: Redis) -> None:
    code = "GB('CommandReader').map(lambda r: 'FAKE').register(hook='dbsize', mode='sync')"
    send(client, "ACL", "SETUSER", "alice", "+command|info")
    with pytest.raises(NoPermissionError):
        send(alice, "RG.PYEXECUTE", code)
    send(client, "ACL", "SETUSER", "alice", "%R~*")
    assert send(alice, "RG.PYEXECUTE", code) == "OK"
    assert send(client, "DBSIZE") == "FAKE"


def test_a_hook_takes_a_command_whose_keys_are_all_its_users(client: Redis, alice: Redis) -> None:
    send(client, "ACL", "SETUSER", "alice", "+command|info")
    code = "GB('CommandReader').map(lambda r: 'FAKE').register(hook='mset', keyprefix='alice:', mode='sync')"
    assert send(alice, "RG.PYEXECUTE", code) == "OK"
    send(client, "MSET", "alice:a", "x", "alice:b", "y")
    assert client.get("alice:b") is None
    send(client, "MSET", "alice:a", "x", "bob:b", "y")
    assert client.get("bob:b") == "y"


@pytest.mark.parametrize("change", [("SETUSER", "alice", "resetkeys", "~alice:*"), ("DELUSER", "alice")])
def test_who_loses_keys_follows_them_no_longer(client: Redis, alice: Redis, change: tuple[str, ...]) -> None:
    client.set("shared:there", "value")
    client.delete("shared:missing")
    send(client, "ACL", "SETUSER", "alice", "~shared:*")
    for name in ("hook", "misses"):
        assert send(alice, "RG.PYEXECUTE", FOLLOWING[name].format("shared:")) == "OK"
    assert client.get("shared:there") == "FAKE"
    send(client, "ACL", *change)
    assert client.get("shared:there") == "value"
    assert client.get("shared:missing") is None


def test_who_loses_keys_hears_of_their_events_no_longer(client: Redis, alice: Redis) -> None:
    send(client, "ACL", "SETUSER", "alice", "~shared:*", "+rpush")
    code = "GB().foreach(lambda r: execute('RPUSH', 'alice:told', r['key'])).register('shared:*', eventTypes=['set'])"
    assert send(alice, "RG.PYEXECUTE", code) == "OK"
    client.delete("alice:told")
    client.set("shared:1", "x")
    wait_until(lambda: client.lrange("alice:told", 0, -1) == ["shared:1"])
    send(client, "ACL", "SETUSER", "alice", "resetkeys", "~alice:*")
    client.set("shared:2", "x")
    send(client, "ACL", "SETUSER", "alice", "~shared:*")
    client.set("shared:3", "x")
    wait_until(lambda: client.lrange("alice:told", 0, -1) == ["shared:1", "shared:3"])


def test_a_function_writes_where_its_caller_may_write(client: Redis, asker: Redis) -> None:
    send(client, "RG.PYEXECUTE", PUT.format("rights-put", ""))
    send(asker, "RG.TRIGGER", "rights-put", "own:1")
    assert client.get("own:1") == "x"
    with pytest.raises(ResponseError):
        send(asker, "RG.TRIGGER", "rights-put", "others:1")
    assert client.get("others:1") is None


def test_a_privileged_function_writes_where_its_registrar_may(client: Redis, asker: Redis, registrar: Redis) -> None:
    send(client, "RG.PYEXECUTE", PUT.format("rights-privileged", ", privileged=True"))
    send(asker, "RG.TRIGGER", "rights-privileged", "others:2")
    assert client.get("others:2") == "x"
    send(registrar, "RG.PYEXECUTE", PUT.format("rights-less", ", privileged=True"))
    with pytest.raises(ResponseError):
        send(client, "RG.TRIGGER", "rights-less", "others:3")
    assert client.get("others:3") is None


def test_a_privileged_function_can_ask_what_its_caller_may(client: Redis, asker: Redis) -> None:
    code = """
async def put(record):
    await runtime.demand(('SET', record[1], 'x'))
    return await runtime.call('SET', record[1], 'x')
GB('CommandReader').map(put).register(trigger='rights-demand', mode='async_local', privileged=True)
"""
    send(client, "RG.PYEXECUTE", code)
    send(asker, "RG.TRIGGER", "rights-demand", "own:4")
    assert client.get("own:4") == "x"
    with pytest.raises(ResponseError, match=r"user 'asker' may not run 'SET others:4'"):
        send(asker, "RG.TRIGGER", "rights-demand", "others:4")


def test_a_thread_that_a_function_starts_has_no_more_than_its_session(client: Redis, registrar: Redis) -> None:
    code = """
import threading
def outside(_):
    said = []
    def run():
        try:
            said.append(execute('SET', 'others:6', 'x'))
        except Exception as error:
            said.append(str(error))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return said
GB('PythonReader').map(outside).run(lambda: [1], mode='async_local')
"""
    results, _ = send(registrar, "RG.PYEXECUTE", code)
    assert "NOPERM" in results[0] or "ACL" in results[0]
    assert client.get("others:6") is None


def test_a_model_is_run_for_who_may_read_it_alone(client: Redis, asker: Redis) -> None:
    code = """
import redisAI
async def run(record):
    await redisAI.modelRunnerRunAsync(redisAI.createModelRunner(record[1]))
GB('CommandReader').map(run).register(trigger='rights-model', mode='async_local')
"""
    send(client, "RG.PYEXECUTE", code)
    with pytest.raises(ResponseError, match=r"user 'asker' may not run 'AI\.MODELGET others:model'"):
        send(asker, "RG.TRIGGER", "rights-model", "others:model")
    with pytest.raises(ResponseError, match="model key is empty"):
        send(client, "RG.TRIGGER", "rights-model", "others:model")


def test_parts_on_other_shards_have_the_rights_of_who_began_the_run(bare_cluster: LocalCluster) -> None:
    code = "GB('ShardsIDReader').map(lambda _: execute('GET', 'others:{' + hashtag() + '}')).run()"
    port = int(bare_cluster.seed().rpartition(":")[2])
    with RedisCluster(host="127.0.0.1", port=port) as admin:
        rights = ("reset", "on", "nopass", "~own:*", "+@all", "-acl")
        admin.execute_command("ACL", "SETUSER", "batch", *rights, target_nodes=RedisCluster.ALL_NODES)
    with Redis(port=port, username="batch", password="x", decode_responses=True) as client:
        results, errors = send(client, "RG.PYEXECUTE", code)
        assert results == []
        assert len(errors) == 3
        assert all("NOPERM" in error or "ACL" in error for error in errors), errors
        allowed = send(client, "RG.PYEXECUTE", code.replace("others", "own"))
        assert (len(allowed[0]), allowed[1]) == (3, [])
