"""StreamReader registrations: batches, durations, failures, and where reading goes on."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import send
from tests.nodes import Node, wait_until
from tests.workers import kill_worker


def register(client: Redis, name: str, steps: str, arguments: str = "") -> str:
    """A registration on the streams `name`:*; returns its id."""
    code = f"GB('StreamReader'){steps}.register(prefix='{name}:*', mode='async_local'{arguments})"
    assert send(client, "RG.PYEXECUTE", code, "ID", name, "UPGRADE") == "OK"
    return str(registered(client, name)["id"])


def registered(client: Redis, name: str) -> dict[str, Any]:
    for dump in send(client, "RG.DUMPREGISTRATIONS"):
        entry = dict(zip(dump[::2], dump[1::2], strict=True))
        data = dict(zip(entry["RegistrationData"][::2], entry["RegistrationData"][1::2], strict=True))
        if f"{name}:*" in data["args"]:
            return entry | data
    raise AssertionError(f"no registration on {name}:*")


def copy_to(name: str) -> str:
    return f".foreach(lambda r: execute('RPUSH', '{name}', r['id'] + ' ' + r['value']['n']))"


def count_to(name: str) -> str:
    """Pushes the number of records of each execution."""
    return f".count().foreach(lambda n: execute('RPUSH', '{name}', n))"


def test_each_message_is_processed_once_in_order_and_trimmed(client: Redis) -> None:
    register(client, "s-order", copy_to("seen-order"))
    ids = [str(client.xadd("s-order:1", {"n": n})) for n in range(50)]
    wait_until(lambda: client.llen("seen-order") == 50 and client.xlen("s-order:1") == 0, "all are processed")
    assert client.lrange("seen-order", 0, -1) == [f"{id!s} {n}" for n, id in enumerate(ids)]
    assert registered(client, "s-order")["numSuccess"] == 50


def test_messages_that_were_there_before_are_processed(client: Redis) -> None:
    for n in range(3):
        client.xadd("s-before:1", {"n": n})
    register(client, "s-before", copy_to("seen-before"))
    wait_until(lambda: client.llen("seen-before") == 3, "all are processed")


def test_a_stream_keeps_its_messages_when_it_is_not_to_be_trimmed(client: Redis) -> None:
    register(client, "s-keep", copy_to("seen-keep"), ", trimStream=False")
    for n in range(5):
        client.xadd("s-keep:1", {"n": n})
    wait_until(lambda: client.llen("seen-keep") == 5, "all are processed")
    assert client.xlen("s-keep:1") == 5


def test_a_batch_waits_until_it_is_full(client: Redis) -> None:
    register(client, "s-batch", count_to("seen-batch"), ", batch=4")
    for n in range(3):
        client.xadd("s-batch:1", {"n": n})
    time.sleep(0.2)
    assert client.llen("seen-batch") == 0
    for n in range(6):
        client.xadd("s-batch:1", {"n": n})
    wait_until(lambda: client.llen("seen-batch") == 2, "two batches are full")
    assert client.lrange("seen-batch", 0, -1) == ["4", "4"]
    wait_until(lambda: client.xlen("s-batch:1") == 1, "the ninth waits")


def test_a_duration_ends_the_wait_for_a_batch(client: Redis) -> None:
    register(client, "s-duration", count_to("seen-duration"), ", batch=100, duration=200")
    for n in range(3):
        client.xadd("s-duration:1", {"n": n})
    wait_until(lambda: client.llen("seen-duration") > 0, "the duration passed")
    assert client.lrange("seen-duration", 0, -1) == ["3"]


def test_streams_of_one_prefix_are_read_apart(client: Redis) -> None:
    register(client, "s-many", ".foreach(lambda r: execute('INCR', 'seen-many:' + r['key']))", ", batch=2")
    for n in range(4):
        client.xadd(f"s-many:{n % 2}", {"n": n})
    wait_until(lambda: client.get("seen-many:s-many:0") == client.get("seen-many:s-many:1") == "2", "both are read")


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
    for n in ("good", "bad", "after"):
        client.xadd(f"{name}:1", {"n": n})


def test_continue_passes_over_what_fails(client: Redis) -> None:
    add_three(client, "f-continue", "continue")
    wait_until(lambda: client.llen("seen-f-continue") == 2, "the others are processed")
    entry = registered(client, "f-continue")
    assert (entry["numSuccess"], entry["numFailures"]) == (2, 1)
    assert "bad message" in entry["lastError"]
    wait_until(lambda: client.xlen("f-continue:1") == 0, "all are done")


def test_abort_stops_there(client: Redis) -> None:
    add_three(client, "f-abort", "abort")
    wait_until(lambda: registered(client, "f-abort")["numFailures"] == 1, "it failed")
    client.xadd("f-abort:1", {"n": "later"})
    time.sleep(0.2)
    assert client.lrange("seen-f-abort", 0, -1) == ["good"]
    assert client.xlen("f-abort:1") == 3


def test_retry_tries_again_until_it_works(client: Redis) -> None:
    add_three(client, "f-retry", "retry")
    wait_until(lambda: int(client.get("tries:f-retry") or 0) > 4, "it is tried again")
    assert client.lrange("seen-f-retry", 0, -1) == ["good"]
    client.set("cured:f-retry", 1)
    wait_until(lambda: client.lrange("seen-f-retry", 0, -1) == ["good", "bad", "after"], "all in order")


def test_a_paused_registration_reads_nothing_and_goes_on_where_it_stood(client: Redis) -> None:
    id = register(client, "s-pause", copy_to("seen-pause"))
    client.xadd("s-pause:1", {"n": 1})
    wait_until(lambda: client.llen("seen-pause") == 1, "it reads")
    for _ in range(2):
        assert send(client, "RG.PAUSEREGISTRATIONS", id) == "OK"
    assert registered(client, "s-pause")["status"] == "PAUSED"
    client.xadd("s-pause:1", {"n": 2})
    time.sleep(0.2)
    assert client.llen("seen-pause") == 1
    assert send(client, "RG.UNPAUSEREGISTRATIONS", id) == "OK"
    wait_until(lambda: client.llen("seen-pause") == 2, "it reads again")
    assert registered(client, "s-pause")["status"] == "OK"


def test_a_function_can_pause_its_registration(client: Redis) -> None:
    register(client, "s-self", ".foreach(lambda r: flat_error('PAUSE enough for today'))")
    client.xadd("s-self:1", {"n": 1})
    wait_until(lambda: registered(client, "s-self")["status"] == "PAUSED", "it paused itself")
    assert client.xlen("s-self:1") == 1


def test_only_stream_registrations_can_be_paused(client: Redis) -> None:
    send(client, "RG.PYEXECUTE", "GB('CommandReader').register(trigger='no-pause')", "ID", "no-pause", "UPGRADE")
    (other,) = [dump[1] for dump in send(client, "RG.DUMPREGISTRATIONS") if "no-pause" in dump[7][-1]]
    id = register(client, "s-pair", copy_to("seen-pair"))
    with pytest.raises(ResponseError, match="can not be paused"):
        send(client, "RG.PAUSEREGISTRATIONS", id, other)
    assert registered(client, "s-pair")["status"] == "OK"
    with pytest.raises(ResponseError, match="does not exist"):
        send(client, "RG.PAUSEREGISTRATIONS", "nobody")


def test_statistics_are_cleared(client: Redis) -> None:
    register(client, "s-stats", copy_to("seen-stats"))
    client.xadd("s-stats:1", {"n": 1})
    wait_until(lambda: registered(client, "s-stats")["numSuccess"] == 1, "it ran")
    assert send(client, "RG.CLEARREGISTRATIONSSTATS") == "OK"
    entry = registered(client, "s-stats")
    assert [entry[name] for name in ("numTriggered", "numSuccess", "numFailures", "numAborted")] == [0] * 4


def test_its_executions_are_listed_with_their_results(client: Redis) -> None:
    register(client, "s-listed", ".map(lambda r: r['value']['n'])")
    client.xadd("s-listed:1", {"n": "the result"})
    wait_until(lambda: registered(client, "s-listed")["numSuccess"] == 1, "it ran")
    listed = [entry[1] for entry in send(client, "RG.DUMPEXECUTIONS") if entry[5] == 1]
    assert [["the result"], []] in [send(client, "RG.GETRESULTS", id) for id in listed]


def test_an_unregistered_reader_leaves_no_group_behind(client: Redis) -> None:
    id = register(client, "s-gone", copy_to("seen-gone"), ", trimStream=False")
    client.xadd("s-gone:1", {"n": 1})
    wait_until(lambda: client.llen("seen-gone") == 1, "it reads")
    send(client, "RG.UNREGISTER", id)
    wait_until(lambda: client.xinfo_groups("s-gone:1") == [], "the group is gone")
    client.xadd("s-gone:1", {"n": 2})
    time.sleep(0.1)
    assert client.llen("seen-gone") == 1


def has_all(client: Redis, key: str) -> bool:
    return client.llen(key) == 200


def test_two_readers_of_one_stream_both_see_all_before_it_is_trimmed(client: Redis) -> None:
    code = "\n".join(
        f"GB('StreamReader').foreach(lambda r: execute('RPUSH', 'seen-two-{n}', r['value']['n']))"
        ".register(prefix='s-two:*', mode='async_local')"
        for n in range(2)
    )
    send(client, "RG.PYEXECUTE", code, "ID", "s-two", "UPGRADE")
    for n in range(200):
        client.xadd("s-two:1", {"n": n})
    for reader in range(2):
        wait_until(partial(has_all, client, f"seen-two-{reader}"), "it saw all")
        assert client.lrange(f"seen-two-{reader}", 0, -1) == [str(n) for n in range(200)]


def test_a_stream_that_is_deleted_and_made_anew_is_read_from_its_start(client: Redis) -> None:
    register(client, "s-anew", copy_to("seen-anew"), ", trimStream=False")
    client.xadd("s-anew:1", {"n": 1})
    wait_until(lambda: client.llen("seen-anew") == 1, "it reads")
    client.delete("s-anew:1")
    client.xadd("s-anew:1", {"n": 2}, id="1-1")
    wait_until(lambda: client.llen("seen-anew") == 2, "it reads the new one")


DURABLE = (("appendfsync", "always"), ("aof-use-rdb-preamble", "yes"))


def test_after_a_restart_reading_goes_on_exactly_where_it_stood(start_node: Callable[..., Node]) -> None:
    node = start_node(extra=DURABLE)
    with node.client(decode_responses=True) as client:
        register(client, "s-back", copy_to("seen-back"), ", trimStream=False")
        for n in range(20):
            client.xadd("s-back:1", {"n": n})
        wait_until(lambda: registered(client, "s-back")["numSuccess"] == 20, "all are processed")
        wait_until(
            lambda: client.xpending("s-back:1", client.xinfo_groups("s-back:1")[0]["name"])["pending"] == 0, "done"
        )
        for n in range(20, 25):
            client.xadd("s-back:1", {"n": n})
    node.kill()
    node.restart()
    with node.client(decode_responses=True) as client:
        client.xadd("s-back:1", {"n": 25})
        wait_until(lambda: client.llen("seen-back") >= 26, "the rest is processed")
        seen = [word.split()[1] for word in client.lrange("seen-back", 0, -1)]
        assert list(dict.fromkeys(seen)) == [str(n) for n in range(26)]
        assert len(seen) <= 26 + 5, "only what was under way may come twice"


def test_no_message_is_lost_when_the_worker_is_killed_in_the_middle(start_node: Callable[..., Node]) -> None:
    node = start_node()
    with node.client(decode_responses=True) as client:
        register(
            client,
            "s-kill",
            ".foreach(lambda r: execute('SADD', 'seen-kill', r['value']['n']))",
            ", batch=7, duration=20",
        )
        killed: list[int] = []
        for n in range(300):
            client.xadd("s-kill:1", {"n": n})
            if n % 100 == 50:
                killed.append(kill_worker(client, but_not=killed))
        wait_until(lambda: client.scard("seen-kill") == 300 and client.xlen("s-kill:1") == 0, "all are processed", 60)


def test_a_replica_reads_nothing_until_it_is_promoted(start_node: Callable[..., Node]) -> None:
    master = start_node()
    replica = start_node(replica_of=master.port)
    with master.client(decode_responses=True) as first, replica.client(decode_responses=True) as second:
        register(first, "s-fail", copy_to("seen-fail"), ", trimStream=False, onFailedPolicy='continue'")
        first.xadd("s-fail:1", {"n": 1})
        wait_until(lambda: second.llen("seen-fail") == 1, "the replica follows")
        wait_until(lambda: second.execute_command("RG.DUMPREGISTRATIONS"), "and knows the registration")
        wait_until(
            lambda: second.xpending("s-fail:1", second.xinfo_groups("s-fail:1")[0]["name"])["pending"] == 0, "done"
        )
        master.kill()
        send(second, "REPLICAOF", "NO", "ONE")
        second.xadd("s-fail:1", {"n": 2})
        wait_until(lambda: second.llen("seen-fail") == 2, "the new master reads on")
        assert [word.split()[1] for word in second.lrange("seen-fail", 0, -1)] == ["1", "2"]


def test_messages_that_were_under_way_when_a_master_died_are_processed_by_its_replica(
    start_node: Callable[..., Node],
) -> None:
    master = start_node()
    replica = start_node(replica_of=master.port)
    held = ".foreach(lambda r: [__import__('time').sleep(0.02) for _ in iter(lambda: execute('EXISTS', 'held'), 0)])"
    with master.client(decode_responses=True) as first, replica.client(decode_responses=True) as second:
        first.set("held", 1)
        register(first, "s-over", held + copy_to("seen-over"), ", batch=5, trimStream=False")
        wait_until(lambda: second.execute_command("RG.DUMPREGISTRATIONS"), "the replica knows the registration")
        for n in range(7):
            first.xadd("s-over:1", {"n": n})
        wait_until(lambda: under_way(second, "s-over:1") >= 5, "a batch is under way, and the replica knows it")
        master.kill()
        send(second, "REPLICAOF", "NO", "ONE")
        second.delete("held")
        for n in range(7, 10):
            second.xadd("s-over:1", {"n": n})
        wait_until(lambda: second.llen("seen-over") == 10, "the new master reads all")
        assert [word.split()[1] for word in second.lrange("seen-over", 0, -1)] == [str(n) for n in range(10)]
        wait_until(lambda: under_way(second, "s-over:1") == 0, "none is left behind")


def under_way(client: Redis, stream: str) -> int:
    """Messages that were read and are not done; 0 before the first."""
    groups = client.xinfo_groups(stream) if client.exists(stream) else []
    return sum(int(group["pending"]) for group in groups)
