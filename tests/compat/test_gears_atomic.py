"""`with atomic():`, and triggers of mode='sync' inside transactions and scripts."""

import threading
from functools import partial

import pytest
from redis import Redis, ResponseError

from shardqa.cluster.local import LocalCluster
from tests.compat import scripts
from tests.compat.scripts import send
from tests.nodes import Node, wait_until

register = partial(scripts.register, convertToStr=False)

MOVE = """
def f(r):
    with atomic():
        before = int(execute('GET', 'atomic-a') or 0)
        execute('SET', 'atomic-b', before + 1)
        execute('SET', 'atomic-a', before + 1)
    return before
"""


def test_no_other_client_sees_the_middle_of_an_atomic_block(redis_node: Node, client: Redis) -> None:
    client.mset({"atomic-a": 0, "atomic-b": 0})
    register(client, "atomic-move", MOVE)
    seen: set[tuple[str, str]] = set()
    ended = threading.Event()

    def look() -> None:
        with redis_node.client(decode_responses=True) as own:
            while not ended.is_set():
                seen.add(tuple(own.mget("atomic-a", "atomic-b")))

    def move() -> None:
        with redis_node.client() as own:
            for _ in range(50):
                send(own, "RG.TRIGGER", "atomic-move")

    looker = threading.Thread(target=look)
    movers = [threading.Thread(target=move) for _ in range(3)]
    for thread in (looker, *movers):
        thread.start()
    for thread in movers:
        thread.join(60)
    ended.set()
    looker.join(60)
    assert client.get("atomic-a") == "150"  # no update is lost
    assert all(a == b for a, b in seen)


def test_an_atomic_block_may_stand_in_a_coroutine_and_in_another_block(client: Redis) -> None:
    register(client, "atomic-nested", """
import asyncio
async def f(r):
    found = [isInAtomicBlock()]
    with atomic():
        found.append(isInAtomicBlock())
        with atomic():
            execute('SET', 'atomic-n', '1')
        found.append(isInAtomicBlock())
        await asyncio.sleep(0)
        found.append(execute('GET', 'atomic-n'))
    return found + [isInAtomicBlock(), isAsyncAllow()]
""")  # fmt: skip
    assert send(client, "RG.TRIGGER", "atomic-nested") == [[0, 1, 1, "1", 0, 1]]


def test_a_block_that_takes_too_long_is_ended_and_the_function_fails(client: Redis) -> None:
    register(client, "atomic-long", """
import time
def f(r):
    with atomic():
        execute('SET', 'atomic-long', 'in time')
        time.sleep(1.2)
        if len(r) > 1:
            execute('SET', 'atomic-long', 'late')
""")  # fmt: skip
    for words in ((), ("x",)):
        with pytest.raises(ResponseError, match="atomic block took longer"):
            send(client, "RG.TRIGGER", "atomic-long", *words)
        assert client.get("atomic-long") == "in time"
    assert client.info("shardqa")["shardqa_sections_closed"] >= 2


def test_a_function_that_raises_in_a_block_frees_redis_and_its_error_is_told(client: Redis) -> None:
    register(
        client, "atomic-raise", "def f(r):\n    with atomic():\n        execute('SET', 'atomic-r', '1')\n        1 / 0"
    )
    with pytest.raises(ResponseError, match="ZeroDivisionError"):
        send(client, "RG.TRIGGER", "atomic-raise")
    assert client.get("atomic-r") == "1"


def test_a_worker_that_dies_in_a_block_frees_redis(redis_node: Node, client: Redis) -> None:
    register(
        client, "atomic-die", "import os\ndef f(r):\n    with atomic():\n        execute('PING')\n        os._exit(1)"
    )
    with pytest.raises(ResponseError, match=r"TRYAGAIN|died"):
        send(client, "RG.TRIGGER", "atomic-die")
    wait_until(lambda: client.info("shardqa")["shardqa_worker_state"] == "ready", "a new worker")


def test_the_writes_of_a_block_reach_a_replica_together(node_and_replica: tuple[Node, Node]) -> None:
    master, replica = node_and_replica
    with master.client(decode_responses=True) as client, replica.client(decode_responses=True) as copy:
        register(client, "atomic-copy", MOVE.replace("atomic-", "copied-"))
        send(client, "RG.TRIGGER", "atomic-copy")
        wait_until(lambda: copy.mget("copied-a", "copied-b") == ["1", "1"], "both have come")
        block = wait_until(lambda: written(master, b"copied-b", b"copied-a"), "both are in the AOF")
    assert block.index(b"MULTI") < block.index(b"copied-b") < block.index(b"copied-a") < block.index(b"EXEC")


def written(node: Node, first: bytes, last: bytes) -> bytes:
    """The AOF from the MULTI before the one word to the EXEC behind the other; empty where that has not come."""
    text = b"".join(path.read_bytes() for path in (node.folder / "appendonlydir").glob("*.incr.aof"))
    set_first, set_last = text.find(b"SET\r\n$%d\r\n%b" % (len(first), first)), text.rfind(last)
    return text[text.rfind(b"MULTI", 0, set_first) : text.find(b"EXEC", set_last) + 4] if set_first > 0 else b""


# ---- triggers that a transaction or a script waits for ----


def test_a_sync_trigger_runs_inside_a_transaction_and_a_script(client: Redis) -> None:
    function = "def f(r):\n    return [execute('INCR', r[1]), isAsyncAllow(), isInAtomicBlock()]"
    register(client, "sync-in", function, mode="sync")
    pipeline = client.pipeline(transaction=True)
    pipeline.set("sync-n", 5)
    send(pipeline, "RG.TRIGGER", "sync-in", "sync-n")
    pipeline.get("sync-n")
    assert pipeline.execute() == [True, [[6, 0, 1]], "6"]
    script = "return {redis.call('RG.TRIGGER', 'sync-in', KEYS[1]), redis.call('GET', KEYS[1])}"
    assert client.eval(script, 1, "sync-n") == [[[7, 0, 1]], "7"]
    assert send(client, "RG.TRIGGER", "sync-in", "sync-n") == [[8, 1, 0]]


def test_a_sync_trigger_may_await_inside_a_transaction(client: Redis) -> None:
    register(
        client,
        "sync-await",
        "import asyncio\nasync def f(r):\n    await asyncio.sleep(0.01)\n    return execute('PING')",
        mode="sync",
    )
    pipeline = client.pipeline(transaction=True)
    send(pipeline, "RG.TRIGGER", "sync-await")
    assert pipeline.execute() == [["PONG"]]


def test_other_triggers_are_refused_there(client: Redis) -> None:
    register(client, "sync-not", "def f(r):\n    return 1")
    for trigger in ("sync-not", "sync-nobody"):
        pipeline = client.pipeline(transaction=True)
        send(pipeline, "RG.TRIGGER", trigger)
        with pytest.raises(ResponseError, match="can not run gears inside MULTI"):
            pipeline.execute()


def test_an_error_and_a_deadline_of_a_sync_trigger_are_its_reply(client: Redis) -> None:
    register(
        client,
        "sync-slow",
        "import time\ndef f(r):\n    time.sleep(float(r[1]))\n    return 1 // int(r[2])",
        mode="sync",
    )
    script = "return redis.pcall('RG.TRIGGER', 'sync-slow', ARGV[1], ARGV[2])"
    assert client.eval(script, 0, "0", "1") == [1]
    with pytest.raises(ResponseError, match="ZeroDivisionError"):
        client.eval(script, 0, "0", "0")
    with pytest.raises(ResponseError, match="longer than 1000 ms"):
        client.eval(script, 0, "1.3", "1")
    assert client.ping()


def test_what_a_sync_trigger_writes_in_a_transaction_survives(node_and_replica: tuple[Node, Node]) -> None:
    master, replica = node_and_replica
    with master.client(decode_responses=True) as client, replica.client(decode_responses=True) as copy:
        register(client, "sync-kept", "def f(r):\n    return execute('SET', r[1], r[2])", mode="sync")
        pipeline = client.pipeline(transaction=True)
        send(pipeline.set("kept-a", 1), "RG.TRIGGER", "sync-kept", "kept-b", "2")
        assert pipeline.execute() == [True, ["OK"]]
        assert client.eval("return redis.call('RG.TRIGGER', 'sync-kept', KEYS[1], '3')", 1, "kept-c") == ["OK"]
        wait_until(lambda: copy.mget("kept-a", "kept-b", "kept-c") == ["1", "2", "3"], "all have come")
        master.restart()
        wait_until(lambda: client.mget("kept-a", "kept-b", "kept-c") == ["1", "2", "3"], "all are there again")


def test_a_sync_trigger_has_the_rights_of_who_sends_the_transaction(redis_node: Node, client: Redis) -> None:
    register(client, "sync-acl", "def f(r):\n    return execute('SET', r[1], '1')", mode="sync")
    send(
        client, "ACL", "SETUSER", "syncer", "on", ">p", "~sync-acl:*", "+rg.trigger", "+set", "+multi", "+exec", "+eval"
    )
    with redis_node.client(username="syncer", password="p", decode_responses=True) as own:
        script = "return redis.call('RG.TRIGGER', 'sync-acl', ARGV[1])"
        assert own.eval(script, 0, "sync-acl:1") == ["OK"]
        with pytest.raises(ResponseError, match=r"NOPERM|acl|permissions"):
            own.eval(script, 0, "other")
    send(client, "ACL", "DELUSER", "syncer")


def test_atomic_blocks_on_three_shards(bare_cluster: LocalCluster) -> None:
    with Redis(host="127.0.0.1", port=bare_cluster.state.port, decode_responses=True) as client:
        code = """
def f(_):
    with atomic():
        first = execute('INCR', f'at:{{{hashtag()}}}:foo')
        return [first, execute('INCR', f'at:{{{hashtag()}}}:bar')]
GB('ShardsIDReader').map(f).run()
"""
        assert send(client, "RG.PYEXECUTE", code) == [["[1, 1]"] * 3, []]
        assert send(client, "RG.PYEXECUTE", code) == [["[2, 2]"] * 3, []]
