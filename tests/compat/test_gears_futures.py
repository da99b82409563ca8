"""Records that somebody else finishes later: gearsFuture, createFuture, coroutines."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import register, send
from tests.nodes import Node, wait_until

LATER = """
import threading
def f(r):
    future = gearsFuture()
    threading.Timer(0.01, lambda: future.{call}).start()
    return future
"""


@pytest.mark.parametrize("step", ["map", "flatmap"])
def test_a_record_goes_on_with_what_its_future_gets(client: Redis, step: str) -> None:
    register(client, "future", LATER.format(call="continueRun(['later'])"), f".{step}(f).map(lambda x: x * 2)")
    results = {"map": ["['later', 'later']"], "flatmap": ["laterlater"]}
    assert send(client, "RG.TRIGGER", "future") == results[step]


def test_filter_and_foreach_wait_too(client: Redis) -> None:
    register(client, "future-no", LATER.format(call="continueRun(False)"), ".filter(f)")
    assert send(client, "RG.TRIGGER", "future-no") == []
    register(client, "future-each", LATER.format(call="continueRun(None)"), ".foreach(f).map(lambda r: r[0])")
    assert send(client, "RG.TRIGGER", "future-each") == ["future-each"]


def test_aggregates_wait_too(client: Redis) -> None:
    function = """
import threading
def add(a, r):
    future = gearsFuture()
    threading.Timer(0.005, lambda: future.continueRun(a + r)).start()
    return future
async def add_later(k, a, r):
    return a + r
"""
    register(client, "future-sum", function, ".flatmap(lambda r: [1, 2, 3]).aggregate(0, add, lambda a, r: a + r)")
    assert send(client, "RG.TRIGGER", "future-sum") == ["6"]
    steps = ".flatmap(lambda r: [1, 2, 3]).aggregateby(lambda r: 'k', 0, add_later, lambda k, a, r: a + r)"
    register(client, "future-by", function, steps)
    assert send(client, "RG.TRIGGER", "future-by") == ["{'key': 'k', 'value': 6}"]


def test_a_future_that_fails_fails_its_record(client: Redis) -> None:
    register(client, "future-bad", LATER.format(call="continueFailed('no luck')"))
    with pytest.raises(ResponseError, match="no luck"):
        send(client, "RG.TRIGGER", "future-bad")


def test_a_future_belongs_into_the_function_of_a_step(shards: list[Redis]) -> None:
    with pytest.raises(ResponseError, match="only be created inside certain execution steps: in the function"):
        send(shards[0], "RG.PYEXECUTE", "gearsFuture()")
    for steps in ".repartition(f)", ".batchgroupby(lambda id: id, f)":
        code = f"f = lambda *_: gearsFuture()\nGB('ShardsIDReader'){steps}.run()"
        assert "Step does not support async" in send(shards[0], "RG.PYEXECUTE", code)[1][0]


def test_steps_of_one_shard_take_turns_while_futures_of_all_shards_wait(shards: list[Redis]) -> None:
    code = """
held = None
def add(a, r):  # a global keeps what waits, so a second step at work beside the first would lose it
    global held
    held = gearsFuture(), (a or 0) + r
    return held[0]
def go_on(r):
    global held
    if held is None: return 'nobody'
    future, value = held
    held = None
    future.continueRun(value)
GB('CommandReader').flatmap(lambda r: [1, 2]).accumulate(add).collect().accumulate(add).register(trigger='held')
GB('CommandReader').foreach(go_on).register(trigger='held-on')
"""
    assert send(shards[0], "RG.PYEXECUTE", code) == "OK"
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(send, shards[0], "RG.TRIGGER", "held")
        wait_until(lambda: bool(send(shards[1], "RG.TRIGGER", "held-on")) and reply.done(), "the sum")
    assert reply.result() == [str(3 * len(shards))]


def replies_at_once(node: Node, trigger: str, count: int) -> list[Future[Any]]:
    """Sends a trigger by as many clients; an error of Redis is the future's."""

    def reply() -> Any:
        with node.client(decode_responses=True) as own:
            return send(own, "RG.TRIGGER", trigger)

    pool = ThreadPoolExecutor(count)
    replies = [pool.submit(reply) for _ in range(count)]
    pool.shutdown(wait=False)
    return replies


def test_futures_that_wait_hold_no_thread(redis_node: Node, client: Redis) -> None:
    register(client, "hold", "waiting = []\ndef f(r):\n    waiting.append(gearsFuture())\n    return waiting[-1]\n"
             "def release(r):\n    for future in waiting: future.continueRun('out')\n    return len(waiting)\n"
             "GB('CommandReader').map(release).register(trigger='release', mode='async_local')")  # fmt: skip
    replies = replies_at_once(redis_node, "hold", 10)
    wait_until(lambda: send(client, "RG.TRIGGER", "release") == ["10"], "all wait")
    assert [reply.result(20) for reply in replies] == [["out"]] * 10


def test_a_created_future_connects_two_functions(redis_node: Node, client: Redis) -> None:
    register(client, "consume", """
futures = []
async def f(r):
    futures.append(createFuture())
    return await futures[-1]
def publish(r):
    if not futures:
        return 'nobody'
    if r[1] == 'fail':
        setFutureException(futures.pop(), 'timeout')
    else:
        setFutureResults(futures.pop(), r[1])
    return 'OK'
GB('CommandReader').map(publish).register(trigger='publish', mode='async_local')
""")  # fmt: skip
    (consumer,) = replies_at_once(redis_node, "consume", 1)
    wait_until(lambda: send(client, "RG.TRIGGER", "publish", "hello") == ["OK"], "the consumer waits")
    assert consumer.result(20) == ["hello"]
    (consumer,) = replies_at_once(redis_node, "consume", 1)
    wait_until(lambda: send(client, "RG.TRIGGER", "publish", "fail") == ["OK"], "the consumer waits")
    with pytest.raises(ResponseError, match=r"^timeout$"):
        consumer.result(20)


def test_a_thread_of_ones_own_can_act_for_the_function_that_began_it(client: Redis) -> None:
    register(client, "context", """
import threading
def f(r):
    future, session = gearsFuture(), getGearsSession()
    def work():
        before = getGearsSession() is None
        with gearsCtx(session):
            inside = get_command()[1]
        after = getGearsSession() is None
        setGearsSession(session)
        future.continueRun([before, inside, after, get_command()[1]])
    threading.Thread(target=work).start()
    return future
""")  # fmt: skip
    assert send(client, "RG.TRIGGER", "context") == ["[True, 'context', True, 'context']"]


def test_triggers_in_order_run_one_after_another(redis_node: Node, client: Redis) -> None:
    code = """
import asyncio
running = 0
async def f(r):
    global running
    running += 1
    await asyncio.sleep(0.005)
    most, running = running, running - 1
    return most
GB('CommandReader').map(f).register(trigger='in-order', mode='async_local', inorder=True)
"""
    assert send(client, "RG.PYEXECUTE", code, "ID", "in-order", "UPGRADE") == "OK"
    assert [reply.result(20) for reply in replies_at_once(redis_node, "in-order", 10)] == [["1"]] * 10


def test_mode_sync_replies_what_the_function_gives_and_may_await(client: Redis) -> None:
    code = """
async def later(r):
    return 'later'
def f(r):
    return later(r) if len(r) > 1 else execute('PING')
GB('CommandReader').map(f).register(trigger='in-sync', mode='sync')
"""
    assert send(client, "RG.PYEXECUTE", code, "ID", "in-sync", "UPGRADE") == "OK"
    assert send(client, "RG.TRIGGER", "in-sync") == ["PONG"]
    assert send(client, "RG.TRIGGER", "in-sync", "x") == ["later"]


@pytest.mark.parametrize("step", ["meet", "lambda n: meet(n) if n != 2 else n", "lambda n: future(n)"])
def test_records_wait_side_by_side_and_keep_their_order(client: Redis, step: str) -> None:
    code = f"""
import asyncio, random
begun, futures = [], []
async def meet(n):  # goes on once all have begun
    begun.append(n)
    while len(begun) < 11: await asyncio.sleep(0.001)
    await asyncio.sleep(random.random() / 100)
    return n if n % 4 else 1 / 0
def future(n):
    begun.append(n)
    futures.append((gearsFuture(), n))
    if len(begun) == 12:
        for one, n in reversed(futures): one.continueRun(n) if n % 4 else one.continueFailed('division by zero')
    return futures[-1][0]
def join(a, n): return [*(a or []), n]
GB('PythonReader').map({step}).accumulate(join).run(lambda: iter(range(12)))
"""
    results, errors = send(client, "RG.PYEXECUTE", code)
    assert results == [str([n for n in range(12) if n % 4])]
    assert len(errors) == 3
    assert all("division by zero" in error for error in errors)


def test_records_that_wait_are_aborted_together(client: Redis) -> None:
    code = "import asyncio\nGB('PythonReader').map(lambda n: asyncio.sleep(60)).run(lambda: iter(range(50)))"
    id = send(client, "RG.PYEXECUTE", code, "UNBLOCKING")
    wait_until(lambda: [e for e in send(client, "RG.DUMPEXECUTIONS") if e[1] == id and e[3] == "running"])
    assert send(client, "RG.ABORTEXECUTION", id) == "OK"
    assert send(client, "RG.GETRESULTSBLOCKING", id)[0] == []
