"""`with atomic():`, and triggers of mode='sync' inside transactions and scripts."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from redis import Redis, ResponseError

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
    over = threading.Event()

    def look() -> set[tuple[str, str]]:
        seen: set[tuple[str, str]] = set()
        with redis_node.client(decode_responses=True) as own:
            while not over.is_set():
                seen.add(tuple(own.mget("atomic-a", "atomic-b")))
        return seen

    def move(_: int) -> None:
        with redis_node.client() as own:
            for _ in range(50):
                send(own, "RG.TRIGGER", "atomic-move")

    with ThreadPoolExecutor(4) as pool:
        pairs = pool.submit(look)
        try:
            list(pool.map(move, range(3)))
        finally:
            over.set()
    assert client.get("atomic-a") == "150"  # no update is lost
    assert all(a == b for a, b in pairs.result())


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
    function = "def f(r):\n    with atomic():\n        execute('SET', 'atomic-r', '1')\n        1 / 0"
    register(client, "atomic-raise", function)
    with pytest.raises(ResponseError, match="ZeroDivisionError"):
        send(client, "RG.TRIGGER", "atomic-raise")
    assert client.get("atomic-r") == "1"


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


def test_an_error_and_a_deadline_of_a_sync_trigger_are_its_reply(client: Redis) -> None:
    function = "import time\ndef f(r):\n    time.sleep(float(r[1]))\n    return 1 // int(r[2])"
    register(client, "sync-slow", function, mode="sync")
    script = "return redis.pcall('RG.TRIGGER', 'sync-slow', ARGV[1], ARGV[2])"
    assert client.eval(script, 0, "0", "1") == [1]
    with pytest.raises(ResponseError, match="ZeroDivisionError"):
        client.eval(script, 0, "0", "0")
    with pytest.raises(ResponseError, match="longer than 1000 ms"):
        client.eval(script, 0, "1.3", "1")
    assert client.ping()


def test_a_sync_trigger_has_the_rights_of_who_sends_the_transaction(redis_node: Node, client: Redis) -> None:
    register(client, "sync-acl", "def f(r):\n    return execute('SET', r[1], '1')", mode="sync")
    send(client, "ACL", "SETUSER", "syncer", "on", ">p", "~sync-acl:*", "+rg.trigger", "+set", "+eval")
    with redis_node.client(username="syncer", password="p", decode_responses=True) as own:
        script = "return redis.call('RG.TRIGGER', 'sync-acl', ARGV[1])"
        assert own.eval(script, 0, "sync-acl:1") == ["OK"]
        with pytest.raises(ResponseError, match=r"NOPERM|acl|permissions"):
            own.eval(script, 0, "other")
    send(client, "ACL", "DELUSER", "syncer")


def test_atomic_blocks_on_three_shards(shards: list[Redis]) -> None:
    code = """
def f(_):
    with atomic():
        first = execute('INCR', f'at:{{{hashtag()}}}:foo')
        return [first, execute('INCR', f'at:{{{hashtag()}}}:bar')]
GB('ShardsIDReader').map(f).run()
"""
    for n in (1, 2):
        assert send(shards[0], "RG.PYEXECUTE", code) == [[f"[{n}, {n}]"] * 3, []]
