"""Commands that a registration hooks, without the real worker: who gets what, and where nobody waits."""

from typing import Any

import pytest

from .servers import Make, Server, in_sync, replicate, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]


def hook(server: Server, *commands: str, prefix: str = "h:*", session: str = "hooks", mode: str = "answer") -> None:
    server.register(session, [f"{session}-1", "CommandReader", prefix, "", [], [], list(commands)])
    server.order("misses", mode)


def wait_on(
    server: Server, *commands: str, events: tuple[str, ...] = (), prefix: str = "h:*", mode: str = "answer"
) -> None:
    server.register("waits", ["waits-1", "KeysReader", prefix, "", list(events), [], list(commands)])
    server.order("misses", mode)


def test_a_hooked_command_goes_to_the_worker_with_its_hooks_the_newest_first(server: Server) -> None:
    hook(server, "hset w 1 1", session="b")
    hook(server, "hset w 1 1", session="a")
    hook(server, "hset w 1 1", session="other", prefix="else:*")
    client = server.client()
    assert client.execute_command("hSeT", "h:1", "f", "v") == [b"hooked", b"a-1", b"b-1", b"hSeT", b"h:1", b"f", b"v"]
    assert client.hset("x", "f", "v") == 1
    assert not client.exists("h:1")
    assert server.seen("HOOK")[0][2:] == ["default", "2", "a-1", "b-1", "4", "hSeT", "h:1", "f", "v"]


def test_the_next_runs_with_the_clients_rights_and_is_replicated(make: Make) -> None:
    master = make()
    replica = replicate(make, master)
    hook(master, "hset w 1 1", mode="next")
    client = master.client()
    client.execute_command("ACL", "SETUSER", "u", "on", ">p", "~h:*", "+hset", "+shardqa.hook")
    assert client.hset("h:1", "f", "v") == 1
    assert master.client(username="u", password="p").hset("h:2", "f", "v") == 1
    in_sync(master, replica)
    assert replica.client().hgetall("h:2") == {b"f": b"v"}
    assert master.error("HSET", "x:1", "f", "v", login=("u", "p")).startswith("NOPERM")
    master.restart()
    assert master.client().hgetall("h:1") == {b"f": b"v"}
    assert master.client().execute_command("HSET", "h:3", "f", "v")[0] == b"hooked"
    assert b"shardqa.hook" not in master.aof()


@pytest.mark.parametrize("mode", ["answer", "keep"])
def test_the_client_of_an_event_gets_redis_reply_unless_a_function_says_otherwise(server: Server, mode: str) -> None:
    wait_on(server, "hgetall r 1 1", "mget r 1 -1", events=("keymiss",), mode=mode)
    client = server.client()
    client.hset("h:there", "f", "v")
    client.set("h:s", "1")
    assert client.hgetall("h:there") == {b"f": b"v"}
    assert not server.seen("HOOK")
    got = client.connection_pool.get_connection()
    for words, kept in ((("HGETALL", "h:1"), []), (("MGET", "h:s", "h:1", "x", "h:2"), [b"1", None, None, None])):
        got.send_command(*words)
        told = [b"hooked", *(word.encode() for word in words)]
        assert got.read_response() == (kept if mode == "keep" else told)
    one, many = server.seen("HOOK")
    assert one[2:] == ["default", "0", "2", "HGETALL", "h:1", "waits-1", "keymiss", "h:1", "none"]
    assert many[-8:] == ["waits-1", "keymiss", "h:1", "none", "waits-1", "keymiss", "h:2", "none"]


def test_the_reply_that_is_kept_is_of_the_clients_protocol(server: Server) -> None:
    wait_on(server, "hset w 1 1", "zadd w 1 1", "hgetall r 1 1", mode="keep")
    connection = server.client(protocol=3).connection_pool.get_connection()
    for words, reply in (
        (("HSET", "h:1", "f", "v"), 1),
        (("ZADD", "h:z", "INCR", "1.5", "m"), 1.5),
        (("HGETALL", "h:1"), {b"f": b"v"}),
    ):
        connection.send_command(*words)
        assert connection.read_response() == reply
    assert len(server.seen("HOOK")) == 2


def test_an_error_of_redis_is_the_reply_and_nobody_is_asked(server: Server) -> None:
    wait_on(server, "hset w 1 1", "incr w 1 1")
    server.client().set("h:1", "x")
    assert server.error("HSET", "h:1", "f", "v").startswith("WRONGTYPE")
    assert server.error("HSET", "h:2").startswith("ERR wrong number")
    assert not server.seen("HOOK")


def test_while_the_worker_is_gone_nothing_has_run(make: Make) -> None:
    server = make()
    wait_on(server, "incr w 1 1", mode="die")
    (server.folder / "python").unlink()  # no other worker can be started
    assert server.error("INCR", "h:1").startswith("TRYAGAIN")
    assert server.client().mget("h:1") == [b"1"]  # it ran, and its function did not
    assert server.error("INCR", "h:1").startswith("TRYAGAIN")
    assert server.client().mget("h:1") == [b"1"]


FOREIGN = [
    ("shardqa.hook", "shardqa.hook", "set", "a", "b"), ("shardqa.hookread", "set", "a", "b"), ("shardqa.hook", ""),
    ("shardqa.hook", "eval", "return 1", "0"), ("shardqa.hook", "nosuch", "x"), ("shardqa.hook", "x" * 200),
    ("shardqa.hook", "multi"), ("shardqa.hook", "subscribe", "x"), ("shardqa.hook", *["shardqa.hook"] * 20_000),
]  # fmt: skip


def test_what_a_client_sends_by_itself_does_no_harm(server: Server) -> None:
    for words in FOREIGN:
        assert server.error(*words), words
    assert server.client().ping()


def test_a_command_that_nobody_hooks_any_more_runs(server: Server) -> None:
    hook(server, "hset w 1 1")
    client: Any = server.client()
    pause = server.client()
    pause.execute_command("CLIENT", "PAUSE", "100000", "WRITE")
    connection = client.connection_pool.get_connection()
    connection.send_command("HSET", "h:1", "f", "v")
    until(lambda: server.client().info("clients")["blocked_clients"] == 1)
    pause.execute_command("CLIENT", "UNPAUSE")
    assert connection.read_response()[0] == b"hooked"
    server.order("unregister", "hooks-1")
    assert client.execute_command("shardqa.hook", "HSET", "h:1", "f", "v") == 1
    assert client.hset("h:1", "g", "v") == 1


def test_hooks_keep_their_order_on_a_replica_and_after_a_reload(pair: Pair) -> None:
    master, replica = pair
    for session in ("c", "a", "b"):
        hook(master, "hset w 1 1", session=session)
    master.client().execute_command("DEBUG", "RELOAD")
    assert master.client().execute_command("HSET", "h:1", "f", "v")[1:4] == [b"b-1", b"a-1", b"c-1"]
    in_sync(master, replica)
    replica.client().replicaof("NO", "ONE")
    until(lambda: replica.client().execute_command("HSET", "h:1", "f", "v")[1:4] == [b"b-1", b"a-1", b"c-1"])
