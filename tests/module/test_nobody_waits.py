"""Nobody waits where a client can't: in transactions, scripts, calls of functions, other databases, and on replicas."""

import pytest

from .servers import Server, in_sync  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
REGISTERED = [
    ["all-1", "KeysReader", "answer:*", "", ["keymiss"], [], ["get r 1 1"]],
    ["all-2", "CommandReader", "h:*", "", [], [], ["hset w 1 1", "hgetall r 1 1"]],
    ["all-3", "KeysReader", "h:*", "", ["set"], [], ["set w 1 1"]],
]
WAITING = [
    "RG.TRIGGER echo x",
    "RG.TRIGGERONKEY echo k",
    "RG.PYEXECUTE 1",
    "RG.DUMPREGISTRATIONS",
    "AI.MODELEXECUTE m INPUTS 1 t OUTPUTS 1 o",
    "AI.DAGEXECUTE ROUTING x |> AI.TENSORSET t FLOAT 1",
]


@pytest.fixture(scope="module")
def hooked(shared: Pair) -> Pair:
    shared[0].register("all", *REGISTERED)
    shared[0].client().execute_command("AI.TENSORSET", "t", "FLOAT", 1)
    shared[0].client().execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "x")
    return shared


@pytest.mark.parametrize("line", WAITING)
def test_what_has_to_wait_is_refused(hooked: Pair, line: str) -> None:
    words = line.split()
    pipe = hooked[0].client().pipeline(transaction=True)
    pipe.execute_command(*words)
    (error,) = pipe.execute(raise_on_error=False)
    assert isinstance(error, Exception)
    quoted = ", ".join(f"'{word}'" for word in words)
    assert "script" in hooked[0].error("EVAL", f"return redis.call({quoted})", "0").lower()
    assert hooked[0].call(words).startswith(b"-")


def test_redis_own_waiting_ends_at_once_in_a_call(hooked: Pair) -> None:
    reply = hooked[0].call(["BLPOP", "nothing", "0"])
    assert reply.startswith(b"-") or reply in (b"*-1\r\n", b"$-1\r\n")
    assert hooked[0].call(["AI.MODELSTORE", "n", "ONNX", "CPU", "BLOB", "x"]).startswith(b"-")


def test_a_miss_is_nil(hooked: Pair) -> None:
    master, replica = hooked
    client = master.client()
    before = master.info()["hook_nil_misses"]
    assert client.pipeline(transaction=True).get("answer:1").set("x", 1).get("x").execute() == [None, True, b"1"]
    assert client.eval("return redis.call('GET', KEYS[1]) == false", 1, "answer:1") == 1
    assert master.client(db=3).get("answer:1") is None
    assert master.call(["GET", "answer:1"], ["shardqa.get", "answer:1"]) == b"$-1\r\n" * 2
    in_sync(master, replica)
    assert replica.client().get("answer:1") is None
    assert replica.client().execute_command("shardqa.get", "answer:1") is None
    assert [server.order("misses") for server in hooked] == [0, 0]
    assert master.info()["hook_nil_misses"] - before == 4


def test_a_hooked_command_is_run_by_redis(hooked: Pair) -> None:
    master, replica = hooked
    client = master.client()
    pipe = client.pipeline(transaction=True)
    assert pipe.hset("h:1", "f", "v").hgetall("h:1").set("h:s", 1).execute() == [1, {b"f": b"v"}, True]
    both = "return {redis.call('HGETALL', KEYS[1]), redis.call('HSET', KEYS[1], 'g', 'w')}"
    assert client.eval(both, 1, "h:1") == [[b"f", b"v"], 1]
    assert client.eval_ro("return redis.call('HGETALL', KEYS[1])", 1, "h:1") == [b"f", b"v", b"g", b"w"]
    assert master.client(db=1).hset("h:1", "f", "v") == 1
    in_sync(master, replica)
    assert replica.client().hgetall("h:1") == {b"f": b"v", b"g": b"w"}
    assert replica.error("HSET", "h:1", "f", "v").startswith("READONLY")
    assert not master.seen("HOOK")
