"""StreamReader registrations: batches, durations, failures, and where reading goes on."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import registrations, send
from tests.nodes import Node, wait_until
from tests.workers import kill_worker


def register(client: Redis, name: str, steps: str, arguments: str = "") -> str:
    """Registers on the streams `name`:*; returns the id."""
    code = f"GB('StreamReader'){steps}.register(prefix='{name}:*', mode='async_local'{arguments})"
    assert send(client, "RG.PYEXECUTE", code, "ID", name, "UPGRADE") == "OK"
    return str(registration(client, name)["id"])


def registration(client: Redis, name: str) -> dict[str, Any]:
    return next(entry for entry in registrations(client) if f"{name}:*" in entry["args"])


def add(client: Redis, stream: str, numbers: Iterable[object]) -> list[str]:
    return [str(client.xadd(stream, {"n": str(n)})) for n in numbers]


def copy_to(name: str) -> str:
    return f".foreach(lambda r: execute('RPUSH', '{name}', r['id'] + ' ' + r['value']['n']))"


def count_to(name: str) -> str:
    """Pushes the number of records of each execution."""
    return f".count().foreach(lambda n: execute('RPUSH', '{name}', n))"


def test_each_message_is_processed_once_in_order_and_trimmed(client: Redis) -> None:
    register(client, "s-order", copy_to("seen-order"))
    ids = add(client, "s-order:1", range(50))
    wait_until(lambda: client.llen("seen-order") == 50 and client.xlen("s-order:1") == 0, "all are processed")
    assert client.lrange("seen-order", 0, -1) == [f"{id} {n}" for n, id in enumerate(ids)]
    assert registration(client, "s-order")["numSuccess"] == 50


def test_streams_of_one_prefix_that_were_there_before_are_read_apart(client: Redis) -> None:
    for stream in range(2):
        add(client, f"s-many:{stream}", range(2))
    register(client, "s-many", ".foreach(lambda r: execute('INCR', 'seen-many:' + r['key']))", ", batch=2")
    wait_until(lambda: client.mget("seen-many:s-many:0", "seen-many:s-many:1") == ["2", "2"], "both are read")


def test_streams_of_a_prefix_with_signs_of_a_pattern_are_read_from_their_start(client: Redis) -> None:
    add(client, "s-odd[1]:a", range(2))
    add(client, "s-odd1:a", range(2))
    register(client, "s-odd[1]", ".foreach(lambda r: execute('INCR', 'seen-odd:' + r['key']))")
    add(client, "s-odd[1]:a", range(1))
    wait_until(lambda: client.get("seen-odd:s-odd[1]:a") == "3", "all are read")
    assert client.xlen("s-odd1:a") == 2


def test_a_stream_that_is_not_trimmed_keeps_its_messages_and_is_read_from_its_start_when_made_anew(
    client: Redis,
) -> None:
    id = register(client, "s-keep", copy_to("seen-keep"), ", trimStream=False")
    add(client, "s-keep:1", range(5))
    wait_until(lambda: client.llen("seen-keep") == 5, "all are processed")
    assert client.xlen("s-keep:1") == 5
    client.delete("s-keep:1")
    client.xadd("s-keep:1", {"n": 6}, id="1-1")
    wait_until(lambda: client.llen("seen-keep") == 6, "it reads the new one")
    send(client, "RG.UNREGISTER", id)
    wait_until(lambda: client.xinfo_groups("s-keep:1") == [], "the group is gone")
    add(client, "s-keep:1", [7])
    time.sleep(0.1)
    assert client.llen("seen-keep") == 6


@pytest.mark.parametrize("upgraded", [False, True], ids=["unregistered", "upgraded"])
def test_a_message_that_is_executed_when_its_registration_goes_is_executed_once(client: Redis, upgraded: bool) -> None:
    code = """
def f(r):
    execute('RPUSH', '{0}-begun', r['value']['n'])
    while not execute('EXISTS', '{0}-go'): time.sleep(0.01)
    execute('RPUSH', '{0}-done', r['value']['n'])
import time
GB('StreamReader').foreach(f).register(prefix='{0}:*', mode='async_local')
""".format(name := f"s-goes-{upgraded}")
    assert send(client, "RG.PYEXECUTE", code, "ID", name) == "OK"
    add(client, f"{name}:1", range(2))
    wait_until(lambda: client.llen(f"{name}-begun") == 1, "the first one runs")
    if not upgraded:
        send(client, "RG.UNREGISTER", registration(client, name)["id"])
    assert send(client, "RG.PYEXECUTE", code, "ID", name, "UPGRADE") == "OK"
    time.sleep(0.2)
    client.set(f"{name}-go", 1)
    wait_until(lambda: client.lrange(f"{name}-done", 0, -1) == ["0", "1"], "each is executed")
    wait_until(lambda: client.xlen(f"{name}:1") == 0, "all is acknowledged")
    assert client.lrange(f"{name}-begun", 0, -1) == ["0", "1"]


@pytest.mark.parametrize("verb", ["RG.UNREGISTER", "RG.PAUSEREGISTRATIONS"])
def test_batches_that_wait_for_their_turn_go_with_their_registration(client: Redis, verb: str) -> None:
    name = f"s-turns-{verb[3]}"
    register(client, name, f".foreach(lambda r: [execute('INCR', '{name}'), __import__('time').sleep(1)])")
    for stream in range(9):
        add(client, f"{name}:{stream}", [1])
    wait_until(lambda: client.get(name), "one runs")
    send(client, verb, registration(client, name)["id"])
    wait_until(lambda: all(entry[3] == "done" for entry in send(client, "RG.DUMPEXECUTIONS")), "none is left")
    assert int(str(client.get(name))) < 5
    if verb == "RG.PAUSEREGISTRATIONS":
        now = registration(client, name)
        assert now["numAborted"] == now["numTriggered"] - now["numSuccess"] > 0
        send(client, "RG.UNPAUSEREGISTRATIONS", now["id"])
        wait_until(lambda: client.get(name) == "9", "the others are executed, too")


def test_a_batch_waits_until_it_is_full(client: Redis) -> None:
    register(client, "s-batch", count_to("seen-batch"), ", batch=4")
    add(client, "s-batch:1", range(3))
    time.sleep(0.2)
    assert client.llen("seen-batch") == 0
    add(client, "s-batch:1", range(6))
    wait_until(lambda: client.llen("seen-batch") == 2, "two batches are full")
    assert client.lrange("seen-batch", 0, -1) == ["4", "4"]
    wait_until(lambda: client.xlen("s-batch:1") == 1, "the ninth waits")


def test_what_was_there_before_waits_for_no_whole_batch(client: Redis) -> None:
    register(client, "s-before", count_to("seen-before"), ", batch=4")
    add(client, "s-before:1", range(6))
    wait_until(lambda: client.lrange("seen-before", 0, -1) == ["4"], "the whole batch is done")
    wait_until(lambda: client.xlen("s-before:1") == 2, "its messages are acknowledged and trimmed")
    kill_worker(client)
    wait_until(lambda: client.lrange("seen-before", 0, -1) == ["4", "2"], "the rest is done")
    add(client, "s-before:1", range(4))
    wait_until(lambda: client.lrange("seen-before", 0, -1) == ["4", "2", "4"], "batches are whole again")


def test_a_duration_ends_the_wait_for_a_batch(client: Redis) -> None:
    register(client, "s-duration", count_to("seen-duration"), ", batch=100, duration=200")
    add(client, "s-duration:1", range(3))
    wait_until(lambda: client.llen("seen-duration") > 0, "the duration passed")
    assert client.lrange("seen-duration", 0, -1) == ["3"]


FAILING = """
def f(r):
    execute('INCR', 'tries:{name}')
    if r['value']['n'] == 'bad' and not execute('GET', 'cured:{name}'):
        raise ValueError('bad message')
    execute('RPUSH', 'seen-{name}', r['value']['n'])
GB('StreamReader').foreach(f).register(prefix='{name}:*', mode='async_local', onFailedPolicy={policy!r},
    onFailedRetryInterval=0.05)
"""


def add_three(client: Redis, name: str, policy: str) -> None:
    send(client, "RG.PYEXECUTE", FAILING.format(name=name, policy=policy), "ID", name, "UPGRADE")
    add(client, f"{name}:1", ("good", "bad", "after"))


def test_continue_passes_over_what_fails(client: Redis) -> None:
    add_three(client, "f-continue", "continue")
    wait_until(lambda: client.llen("seen-f-continue") == 2, "the others are processed")
    entry = registration(client, "f-continue")
    assert (entry["numSuccess"], entry["numFailures"]) == (2, 1)
    assert "bad message" in entry["lastError"]
    wait_until(lambda: client.xlen("f-continue:1") == 0, "all are done")


def test_abort_stops_there(client: Redis) -> None:
    add_three(client, "f-abort", "abort")
    wait_until(lambda: registration(client, "f-abort")["numFailures"] == 1, "it failed")
    add(client, "f-abort:1", ["later"])
    time.sleep(0.2)
    assert client.lrange("seen-f-abort", 0, -1) == ["good"]
    assert client.xlen("f-abort:1") == 3
    assert registration(client, "f-abort")["status"] == "ABORTED"


def test_retry_tries_again_until_it_works(client: Redis) -> None:
    add_three(client, "f-retry", "retry")
    wait_until(lambda: int(client.get("tries:f-retry") or 0) > 4, "it is tried again")
    assert client.lrange("seen-f-retry", 0, -1) == ["good"]
    client.set("cured:f-retry", 1)
    wait_until(lambda: client.lrange("seen-f-retry", 0, -1) == ["good", "bad", "after"], "all in order")


def test_a_paused_registration_reads_nothing_and_goes_on_where_it_stood(client: Redis) -> None:
    id = register(client, "s-pause", copy_to("seen-pause"))
    add(client, "s-pause:1", [1])
    wait_until(lambda: client.llen("seen-pause") == 1, "it reads")
    for _ in range(2):
        assert send(client, "RG.PAUSEREGISTRATIONS", id) == "OK"
    assert registration(client, "s-pause")["status"] == "PAUSED"
    add(client, "s-pause:1", [2])
    time.sleep(0.2)
    assert client.llen("seen-pause") == 1
    assert send(client, "RG.UNPAUSEREGISTRATIONS", id) == "OK"
    wait_until(lambda: client.llen("seen-pause") == 2, "it reads again")
    assert registration(client, "s-pause")["status"] == "OK"


def test_a_function_can_pause_its_registration(client: Redis) -> None:
    register(client, "s-self", ".foreach(lambda r: flat_error('PAUSE enough for today'))")
    add(client, "s-self:1", [1])
    wait_until(lambda: registration(client, "s-self")["status"] == "PAUSED", "it paused itself")
    assert client.xlen("s-self:1") == 1


def test_only_stream_registrations_can_be_paused(client: Redis) -> None:
    send(client, "RG.PYEXECUTE", "GB('CommandReader').register(trigger='no-pause')", "ID", "no-pause", "UPGRADE")
    (other,) = (entry["id"] for entry in registrations(client) if "no-pause" in entry["args"])
    id = register(client, "s-pair", copy_to("seen-pair"))
    with pytest.raises(ResponseError, match="does not support pause"):
        send(client, "RG.PAUSEREGISTRATIONS", id, other)
    assert registration(client, "s-pair")["status"] == "OK"
    with pytest.raises(ResponseError, match="does not exist"):
        send(client, "RG.PAUSEREGISTRATIONS", "nobody")


def test_its_executions_are_listed_with_their_results(client: Redis) -> None:
    register(client, "s-listed", ".map(lambda r: r['value']['n'])")
    add(client, "s-listed:1", ["the result"])
    wait_until(lambda: registration(client, "s-listed")["numSuccess"] == 1, "it ran")
    listed = [entry[1] for entry in send(client, "RG.DUMPEXECUTIONS") if entry[5] == 1]
    assert [["the result"], []] in [send(client, "RG.GETRESULTS", id) for id in listed]


def test_two_readers_of_one_stream_both_see_all_before_it_is_trimmed(client: Redis) -> None:
    code = "\n".join(
        f"GB('StreamReader').foreach(lambda r: execute('RPUSH', 'seen-two-{n}', r['value']['n']))"
        ".register(prefix='s-two:*', mode='async_local')"
        for n in range(2)
    )
    send(client, "RG.PYEXECUTE", code, "ID", "s-two", "UPGRADE")
    add(client, "s-two:1", range(200))
    wait_until(lambda: client.llen("seen-two-0") == client.llen("seen-two-1") == 200, "both saw all")
    for reader in range(2):
        assert client.lrange(f"seen-two-{reader}", 0, -1) == [str(n) for n in range(200)]


DURABLE = (("appendfsync", "always"), ("aof-use-rdb-preamble", "yes"))


def test_after_a_restart_reading_goes_on_exactly_where_it_stood(start_node: Callable[..., Node]) -> None:
    node = start_node(extra=DURABLE)
    with node.client(decode_responses=True) as client:
        register(client, "s-back", copy_to("seen-back"), ", trimStream=False")
        add(client, "s-back:1", range(20))
        wait_until(lambda: registration(client, "s-back")["numSuccess"] == 20, "all are processed")
        wait_until(lambda: under_way(client, "s-back:1") == 0, "all are done")
        add(client, "s-back:1", range(20, 25))
    node.kill()
    node.restart()
    with node.client(decode_responses=True) as client:
        add(client, "s-back:1", [25])
        wait_until(lambda: len(set(client.lrange("seen-back", 0, -1))) == 26, "the rest is processed")
        seen = [word.split()[1] for word in client.lrange("seen-back", 0, -1)]
        assert list(dict.fromkeys(seen)) == [str(n) for n in range(26)]
        assert len(seen) <= 26 + 5, "only what was under way may come twice"


def test_no_message_is_lost_when_the_worker_is_killed_in_the_middle(client: Redis) -> None:
    steps = ".foreach(lambda r: execute('SADD', 'seen-kill', r['value']['n']))"
    register(client, "s-kill", steps, ", batch=7, duration=20")
    killed: list[int] = []
    for n in range(300):
        add(client, "s-kill:1", [n])
        if n % 100 == 50:
            killed.append(kill_worker(client, but_not=killed))
    wait_until(lambda: client.scard("seen-kill") == 300 and client.xlen("s-kill:1") == 0, "all are processed", 60)


def test_a_replica_reads_nothing_until_it_is_promoted_and_then_what_was_under_way(
    start_node: Callable[..., Node],
) -> None:
    master = start_node()
    replica = start_node(replica_of=master.port)
    hold = ".foreach(lambda r: [__import__('time').sleep(0.02) for _ in iter(lambda: execute('EXISTS', 'hold'), 0)])"
    with master.client(decode_responses=True) as first, replica.client(decode_responses=True) as second:
        register(first, "s-over", hold + copy_to("seen-over"), ", batch=5, trimStream=False")
        wait_until(lambda: registrations(second), "the replica knows the registration")
        add(first, "s-over:1", range(5))
        wait_until(lambda: second.llen("seen-over") == 5 and under_way(second, "s-over:1") == 0, "a batch is done")
        first.set("hold", 1)
        add(first, "s-over:1", range(5, 12))
        wait_until(lambda: under_way(second, "s-over:1") >= 5, "a batch is under way, and the replica knows it")
        master.kill()
        send(second, "REPLICAOF", "NO", "ONE")
        add(second, "s-over:1", range(12, 15))  # before the hold ends: what is there waits for no whole batch
        second.delete("hold")
        wait_until(lambda: second.llen("seen-over") == 15, "the new master reads all")
        assert [word.split()[1] for word in second.lrange("seen-over", 0, -1)] == [str(n) for n in range(15)]
        wait_until(lambda: under_way(second, "s-over:1") == 0, "none is left behind")


def under_way(client: Redis, stream: str) -> int:
    """Messages that were read and are not done; 0 before the first."""
    groups = client.xinfo_groups(stream) if client.exists(stream) else []
    return sum(int(group["pending"]) for group in groups)
