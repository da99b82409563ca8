"""Commands that functions hook: CommandReader's hook= with call_next, and KeysReader's commands=."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis, ResponseError
from redis.exceptions import MovedError

from tests.compat.scripts import fields, registered_ids, registrations, send
from tests.nodes import Node

STAMP = """
def stamp(r):
    return call_next(*(r[1:] + ['stamp', '1']))
GB('CommandReader').map(stamp).register(hook='{hook}', keyprefix='{prefix}', mode='{mode}', convertToStr=False)
"""
FETCH = """
def fetch(r):
    {body}
GB().foreach(fetch).register(prefix='{prefix}*', commands={commands}, eventTypes={events}, mode='{mode}')
"""
REFUSALS = r"NOPERM|permissions|acl verification"


@pytest.fixture
def client(redis_node: Node) -> Iterator[Redis]:
    """A client of the shared node, where the test's registrations go when it ends."""
    with redis_node.client(decode_responses=True) as client:
        others = registered_ids(client)
        yield client
        for id in registered_ids(client):
            if id not in others:
                send(client, "RG.UNREGISTER", id)


def register(client: Redis, code: str, id: str = "hooks") -> str:
    """Returns the id of the last registration."""
    assert send(client, "RG.PYEXECUTE", code, "ID", id, "UPGRADE") == "OK"
    (session,) = send(client, "RG.PYDUMPSESSIONS", "SESSIONS", id)
    return str(fields(session)["registrations"][-1])


def hook(command: str, function: str, **options: object) -> str:
    words = "".join(f", {name}={value!r}" for name, value in options.items())
    return f"GB('CommandReader').map({function}).register(hook={command!r}{words})\n"


def fetch(
    prefix: str, body: str, commands: list[str], events: tuple[str, ...] = ("keymiss",), mode: str = "async_local"
) -> str:
    return FETCH.format(prefix=prefix, body=body, commands=commands, events=list(events), mode=mode)


# ---- hooks


@pytest.mark.parametrize("mode", ["sync", "async", "async_local"])
def test_a_hook_gets_the_command_and_calls_it_with_other_arguments(client: Redis, mode: str) -> None:
    id = register(client, STAMP.format(hook="hset", prefix=f"hook-{mode}:", mode=mode))
    assert send(client, "HSET", f"hook-{mode}:1", "f", "v") == 2
    assert client.hgetall(f"hook-{mode}:1") == {"f": "v", "stamp": "1"}
    assert send(client, "hSet", f"hook-{mode}:1", "g", "w") == 1
    assert send(client, "HSET", f"other-{mode}:1", "f", "v") == 1
    assert client.hgetall(f"other-{mode}:1") == {"f": "v"}
    (entry,) = (entry for entry in registrations(client) if entry["id"] == id)
    assert entry["args"] == ["hook", "hset", "keyprefix", f"hook-{mode}:*"]
    assert entry["numSuccess"] == 2


def test_a_hook_sees_the_command_as_a_list_and_its_results_are_the_reply(client: Redis) -> None:
    words = ["HSET", "hook-see:1", "f", "v"]
    register(client, hook("hset", "lambda r: [r, get_command()]", keyprefix="hook-see:", convertToStr=False))
    assert send(client, *words) == [words, words]
    register(client, hook("hset", "lambda r: call_next(*r[1:])", keyprefix="hook-see:*"))
    assert send(client, *words) == "1"  # convertToStr, as in RedisGears
    code = "GB('CommandReader').flatmap(lambda r: r[{first}:]).register(hook='hset', keyprefix='hook-see:')"
    for first in 1, 9:
        register(client, code.format(first=first))
        with pytest.raises(ResponseError, match="Command hook must return exactly one result"):
            send(client, *words)


def test_a_reply_can_be_overridden(client: Redis) -> None:
    register(client, hook("echo", "lambda r: override_reply(['mine', 1, None])"))
    assert send(client, "ECHO", "x") == ["mine", 1, None]
    assert send(client, "RG.PYEXECUTE", "GB('ShardsIDReader').map(lambda x: execute('ECHO', 'x')).run()")[0] == ["x"]


def test_of_several_hooks_the_newest_runs_and_calls_the_one_before_it(client: Redis) -> None:
    for number in (1, 2, 3):
        function = f"lambda r: call_next(r[1], *r[2:], 'by{number}', str(len(r)))"
        register(client, hook("hset", function, keyprefix="hook-chain:"), f"hooks-{number}")
    send(client, "HSET", "hook-chain:1", "f", "v")
    assert list(client.hgetall("hook-chain:1").items()) == [("f", "v"), ("by3", "4"), ("by2", "6"), ("by1", "8")]
    register(client, hook("hset", "lambda r: 'new'", keyprefix="hook-chain:"), "hooks-1")  # the newest again
    assert send(client, "HSET", "hook-chain:1", "f", "v") == "new"


def test_a_hook_and_the_one_behind_it_may_await(client: Redis) -> None:
    code = "import asyncio\nasync def f(r):\n    await asyncio.sleep(0.001)\n    return call_next(*r[1:]) + {n}\n"
    code += "GB('CommandReader').map(f).register(hook='incr', keyprefix='hook-await:', convertToStr=False)"
    register(client, code.format(n=10), "hooks-old")
    assert send(client, "INCR", "hook-await:1") == 11
    register(client, hook("incr", "lambda r: call_next(*r[1:]) + 100", keyprefix="hook-await:", convertToStr=False))
    assert send(client, "INCR", "hook-await:1") == 112
    register(client, code.format(n=1000), "hooks-new")
    with pytest.raises(ResponseError, match="awaits"):
        send(client, "INCR", "hook-await:1")


def test_an_error_in_a_hook_goes_to_the_client(client: Redis) -> None:
    client.set("hook-wrong:1", "a string")
    register(client, hook("hset", "lambda r: call_next(*r[1:])", keyprefix="hook-wrong:"))
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        send(client, "HSET", "hook-wrong:1", "f", "v")
    register(client, hook("hset", "lambda r: 1/0", keyprefix="hook-wrong:"))
    register(client, hook("hset", "lambda r: call_next(*r[1:])", keyprefix="hook-wrong:"), "hooks-outer")
    with pytest.raises(ResponseError, match="ZeroDivisionError"):
        send(client, "HSET", "hook-wrong:1", "f", "v")
    with pytest.raises(ResponseError, match="call_next works only"):
        send(client, "RG.PYEXECUTE", "call_next('a')")


def test_in_transactions_scripts_and_functions_nothing_is_hooked_and_no_miss_waits(client: Redis) -> None:
    register(client, hook("hset", "lambda r: 'hooked'", keyprefix="hook-not:"), "hooks-a")
    register(client, fetch("hook-not:", "override_reply('x')", ["hgetall", "get"]), "hooks-b")
    pipeline: Any = client.pipeline(transaction=True)
    pipeline.hset("hook-not:1", "f", "v").hgetall("hook-not:2").get("hook-not:2")
    assert pipeline.execute() == [1, {}, None]
    assert client.eval("return redis.call('HSET', KEYS[1], 'g', 'v')", 1, "hook-not:1") == 1
    assert client.eval("return redis.call('HGETALL', KEYS[1])", 1, "hook-not:2") == []
    run = "GB('ShardsIDReader').map(lambda x: execute('HSET', 'hook-not:1', 'h', 'v')).run()"
    assert send(client, "RG.PYEXECUTE", run) == [["1"], []]
    assert client.hgetall("hook-not:1") == {"f": "v", "g": "v", "h": "v"}
    assert send(client, "HSET", "hook-not:1", "i", "v") == "hooked"
    assert send(client, "HGETALL", "hook-not:2") == "x"


def test_transactions_and_scripts_wait_for_a_miss_of_mode_sync(client: Redis) -> None:
    body = "override_reply(execute('INCR', 'missed') if r['key'].endswith('2') else 1 / 0)"
    register(client, fetch("sync-miss:", body, ["get"], mode="sync"), "hooks-a")
    client.set("sync-miss:1", "there")
    pipeline: Any = client.pipeline(transaction=True)
    pipeline.get("sync-miss:1").get("sync-miss:2").get("missed").get("sync-miss:3")
    *good, bad = pipeline.execute(raise_on_error=False)
    assert good == ["there", 1, "1"]
    assert "ZeroDivisionError" in str(bad)
    assert client.eval("return redis.call('GET', KEYS[1])", 1, "sync-miss:2") == 2


@pytest.mark.parametrize(
    ("hooked", "prefix", "reason"),
    [
        ("multi", "", "not allowed inside a script"),
        ("blpop", "", "moveable keys|blocks|not allowed"),
        ("eval", "", "not allowed inside a script"),
        ("subscribe", "", "not allowed inside a script|connection"),
        ("config", "", "family"),
        ("migrate", "", "functions may not run it"),
        ("rg.trigger", "", "functions may not run it"),
        ("nosuch", "", "unexisting command, bad reply"),
        ("ping", "a:", "moveable keys"),
        ("sort", "a:", "moveable keys"),
    ],
)
def test_what_can_not_be_hooked_is_refused_and_named(client: Redis, hooked: str, prefix: str, reason: str) -> None:
    with pytest.raises(ResponseError, match=f"({reason}).*{hooked}|{hooked}.*({reason})"):
        send(client, "RG.PYEXECUTE", hook(hooked, "lambda r: call_next(*r[1:])", keyprefix=prefix))


@pytest.mark.parametrize("code", [
    "GB('CommandReader').register(hook='hset', trigger='x')",
    "GB('CommandReader').register(hook=1)",
    "GB('CommandReader').register(hook='hset', keyprefix=1)",
    "GB('CommandReader').register(trigger='x', keyprefix='a')",
    "GB('CommandReader').register()",
    "GB().register(commands=['multi'])",
    "GB().register(prefix='a:*', commands=['sort'])",
    "GB().register(commands='get')",
])  # fmt: skip
def test_wrong_arguments_are_refused(client: Redis, code: str) -> None:
    with pytest.raises(ResponseError):
        send(client, "RG.PYEXECUTE", code)


@pytest.fixture
def users(client: Redis) -> Iterator[None]:
    """`hooky` may run what is hooked on keys of its own, `nosy` the module's own command alone."""
    send(client, "ACL", "SETUSER", "hooky", "on", ">p", "~hook-acl:*", "+hset", "+shardqa.hook", "+hget")
    send(client, "ACL", "SETUSER", "nosy", "on", ">p", "~hook-acl:*", "+shardqa.hook")
    yield
    send(client, "ACL", "DELUSER", "hooky", "nosy")


def test_a_hook_has_its_clients_rights_and_the_client_needs_the_command(
    redis_node: Node, client: Redis, users: None
) -> None:
    register(client, hook("hset", "lambda r: [call_next(*r[1:]), execute('HGET', r[1], 'f')]", keyprefix="hook-acl:"))
    hset = ("HSET", "hook-acl:1", "f", "v")
    with redis_node.client(username="hooky", password="p", decode_responses=True) as own:
        assert send(own, *hset) == "[1, 'v']"
        with pytest.raises(ResponseError, match="permissions"):
            send(own, "HSET", "other:1", "f", "v")
        register(client, hook("hset", "lambda r: execute('DEL', r[1])", keyprefix="hook-acl:"))
        with pytest.raises(ResponseError, match=REFUSALS):
            send(own, *hset)
    with redis_node.client(username="nosy", password="p") as own:
        for words in (hset, ("shardqa.hook", "FLUSHALL"), ("shardqa.hook", "DEL", "hook-acl:1")):
            with pytest.raises(ResponseError, match=REFUSALS):
                send(own, *words)


# ---- keymiss and other events with commands=


@pytest.mark.parametrize("words", [
    ("HGET", "miss-a:1", "f"), ("HGETALL", "miss-a:1"), ("LRANGE", "miss-a:1", "0", "-1"),
    ("GETRANGE", "miss-a:1", "0", "9"),
    ("STRLEN", "miss-a:1"), ("SMEMBERS", "miss-a:1"), ("GET", "miss-a:1"), ("MGET", "x", "miss-a:1"),
])  # fmt: skip
@pytest.mark.parametrize("mode", ["async_local", "sync"])
def test_a_miss_of_any_reading_command_asks_its_function(client: Redis, words: tuple[str, ...], mode: str) -> None:
    body = "override_reply(' '.join([r['key'], r['event'], get_command()[0].upper()]))"
    register(client, fetch("miss-a:", body, [words[0].lower()], mode=mode))
    connection = client.connection_pool.get_connection()  # the client itself would make sets and numbers of it
    connection.send_command(*words)
    assert connection.read_response() == f"miss-a:1 keymiss {words[0]}"
    client.connection_pool.release(connection)


def test_without_override_reply_the_client_gets_what_redis_replied(client: Redis) -> None:
    register(client, fetch("miss-b:", "execute('HSET', r['key'], 'f', 'v')", ["hgetall", "mget", "get", "llen"]))
    assert client.hgetall("miss-b:1") == {}
    assert client.hgetall("miss-b:1") == {"f": "v"}
    assert client.mget("other", "miss-b:2", "miss-b:3") == [None, None, None]
    assert client.exists("miss-b:2", "miss-b:3") == 2
    assert client.llen("miss-b:4") == 0
    assert client.get("miss-b:5") is None
    assert client.type("miss-b:5") == "hash"


def test_a_client_waits_for_the_functions_of_other_events_too(client: Redis) -> None:
    body = "execute('SET', 'seen-' + r['key'], r['event'] + str(r['value'])) and override_reply(r['event'])"
    register(client, fetch("caused:", body, ["hset", "hdel"], ("hset", "hdel")))
    assert send(client, "HSET", "caused:1", "f", "v") == "hset"
    assert client.get("seen-caused:1") == "hset{'f': 'v'}"
    assert send(client, "HSET", "not-caused:1", "f", "v") == 1
    assert send(client, "HSETNX", "caused:1", "g", "v") == 1
    assert client.get("seen-caused:1") == "hset{'f': 'v'}"  # of commands= alone
    with pytest.raises(ResponseError, match="wrong number"):
        send(client, "HSET", "caused:1")


def test_a_reader_of_mode_sync_that_writes_what_it_follows_runs_once_a_write(client: Redis) -> None:
    again = "lambda r: execute('HINCRBY', r['key'], 'runs', 1)"
    register(client, f"GB('KeysReader').foreach({again}).register(prefix='own:*', mode='sync')")
    for n in range(1, 4):
        send(client, "HSET", "own:1", "n", n)
        assert client.hget("own:1", "runs") == str(n)
    time.sleep(0.3)  # in which it would run hundreds of times
    assert client.hget("own:1", "runs") == "3"


# ---- three shards


def is_redirected(shard: Redis, *words: str) -> bool:
    try:
        send(shard, *words)
    except MovedError:
        return True
    return False


def test_a_hook_is_in_force_on_all_shards_and_redirections_stay(shards: list[Redis], cluster_client: Any) -> None:
    register(shards[0], STAMP.format(hook="hset", prefix="hook-all:", mode="sync"), "hooks-a")
    register(shards[1], fetch("miss-all:", "override_reply(r['key'])", ["hgetall", "get"]), "hooks-b")
    redirected = 0
    for n in range(12):
        assert cluster_client.hset(f"hook-all:{n}", "f", "v") == 2
        assert send(cluster_client, "HGETALL", f"miss-all:{n}") == f"miss-all:{n}"
        for words in (("HSET", f"hook-all:{n}", "f", "v"), ("HGETALL", f"miss-all:{n}"), ("GET", f"miss-all:{n}")):
            redirected += sum(is_redirected(shard, *words) for shard in shards)
    assert redirected == 12 * 2 * 3
    assert cluster_client.hgetall("hook-all:1") == {"f": "v", "stamp": "1"}
