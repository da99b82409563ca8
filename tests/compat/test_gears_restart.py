"""What outlives a worker, a node and a master: registrations, models, data."""

import threading
import time
from collections.abc import Callable

import pytest
from redis import Redis, ResponseError
from redis.exceptions import RedisError, TryAgainError

from tests.compat.scripts import ANSWERS, echo, send
from tests.nodes import Node, wait_until
from tests.workers import kill_worker

# A killed node keeps all that it acknowledged; with everysec it may lose two seconds of that (docs/operating.md).
DURABLE = (("appendfsync", "always"),)


def worker_pid(client: Redis) -> int:
    return int(client.info("shardqa")["shardqa_worker_pid"])


def triggers(client: Redis, trigger: str) -> bool:
    """False while the worker is away."""
    try:
        return bool(send(client, "RG.TRIGGER", trigger) == ["yes"])
    except TryAgainError:
        return False


def test_registrations_and_hooks_survive_a_restart_of_the_node(start_node: Callable[..., Node]) -> None:
    node = start_node(extra=DURABLE)
    with node.client(decode_responses=True) as client:
        send(client, "RG.PYEXECUTE", echo("kept"), "ID", "kept")
        send(client, "RG.PYEXECUTE", ANSWERS.replace("{prefix}", "a:"), "ID", "answers")
        before = [dump[1] for dump in send(client, "RG.DUMPREGISTRATIONS")]
        client.set("plain", "value")
    node.kill()
    node.restart()
    with node.client(decode_responses=True) as client:
        assert triggers(client, "kept")
        assert client.get("a:1") == "answer of a:1"
        assert client.get("plain") == "value"
        assert sorted(dump[1] for dump in send(client, "RG.DUMPREGISTRATIONS")) == sorted(before)


def test_right_after_a_reload_triggers_and_hooks_answer_as_before(start_node: Callable[..., Node]) -> None:
    node = start_node(extra=(("enable-debug-command", "local"),))
    with node.client(decode_responses=True) as client:
        send(client, "RG.PYEXECUTE", echo("kept"), "ID", "kept")
        send(client, "RG.PYEXECUTE", ANSWERS.replace("{prefix}", "a:"), "ID", "answers")
        for number in range(20):
            send(client, "DEBUG", "RELOAD")
            pipe = client.pipeline(transaction=False)
            pipe.get(f"a:{number}").execute_command("RG.TRIGGER", "kept")
            assert pipe.execute() == [f"answer of a:{number}", ["yes"]]


def test_an_unregistered_function_stays_away_after_a_restart(start_node: Callable[..., Node]) -> None:
    node = start_node(extra=DURABLE)
    with node.client(decode_responses=True) as client:
        send(client, "RG.PYEXECUTE", echo("one") + "\n" + echo("two"), "ID", "pair")
        ids = {dump[7][-1][1]: dump[1] for dump in send(client, "RG.DUMPREGISTRATIONS")}
        send(client, "RG.UNREGISTER", ids["one"])
    node.kill()
    node.restart()
    with node.client(decode_responses=True) as client:
        assert triggers(client, "two")
        with pytest.raises(ResponseError, match="subcommand not found"):
            send(client, "RG.TRIGGER", "one")


def test_a_killed_worker_is_back_with_its_functions_and_redis_never_stopped(
    start_node: Callable[..., Node],
) -> None:
    node = start_node()
    with node.client(decode_responses=True) as client:
        send(client, "RG.PYEXECUTE", echo("kept"))
        first = kill_worker(client)
        assert client.set("while", "away")
        wait_until(lambda: triggers(client, "kept"), "the worker is back")
        assert worker_pid(client) != first


def test_a_function_that_kills_the_worker_gets_an_error_and_the_worker_comes_back(
    start_node: Callable[..., Node],
) -> None:
    node = start_node()
    with node.client(decode_responses=True) as client:
        send(client, "RG.PYEXECUTE", echo("kept"))
        with pytest.raises(TryAgainError):
            send(client, "RG.PYEXECUTE", "import os\nos._exit(1)")
        wait_until(lambda: triggers(client, "kept"), "the worker is back")


def test_callers_get_an_answer_or_an_error_when_the_worker_is_killed_under_load(
    start_node: Callable[..., Node],
) -> None:
    node = start_node()
    code = """
import asyncio
async def f(r):
    await asyncio.sleep(0.02)
    override_reply('computed')
GB().map(f).register(prefix='load:*', commands=['get'], eventTypes=['keymiss'], mode='async_local')
"""
    outcomes: list[str] = []
    stop = threading.Event()

    def ask(number: int) -> None:
        with node.client(decode_responses=True) as client:
            for n in range(100_000):
                if stop.is_set():
                    return
                try:
                    outcomes.append(str(client.get(f"load:{number}:{n}")))
                except RedisError as error:
                    outcomes.append(type(error).__name__)
                    time.sleep(0.01)

    killed: list[int] = []

    def kill(client: Redis) -> None:
        before = len(outcomes)
        killed.append(kill_worker(client, but_not=killed))
        wait_until(lambda: "TryAgainError" in outcomes[before:], "callers are told")

    with node.client(decode_responses=True) as client:
        send(client, "RG.PYEXECUTE", code)
        askers = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(8)]
        for asker in askers:
            asker.start()
        try:
            for _ in range(2):
                wait_until(lambda: outcomes and outcomes[-1] == "computed", "answers come")
                kill(client)
            wait_until(lambda: outcomes[-1] == "computed", "answers come again")
        finally:
            stop.set()
        for asker in askers:
            asker.join(20)
            assert not asker.is_alive(), "a caller hangs"
    assert set(outcomes) == {"computed", "TryAgainError"}


def test_a_replica_gets_the_registrations_and_acts_on_them_when_promoted(
    start_node: Callable[..., Node],
) -> None:
    master = start_node()
    replica = start_node(replica_of=master.port)
    with master.client(decode_responses=True) as first, replica.client(decode_responses=True) as second:
        send(first, "RG.PYEXECUTE", ANSWERS.replace("{prefix}", "a:") + "\n" + echo("kept"), "ID", "s")
        first.set("synced", "1")
        wait_until(lambda: second.get("synced"), "the replica follows")
        assert second.get("a:1") is None, "a replica computes nothing"
        wait_until(lambda: send(second, "RG.DUMPREGISTRATIONS"), "the replica's worker replays the session")
        master.kill()
        send(second, "REPLICAOF", "NO", "ONE")
        assert second.get("a:1") == "answer of a:1"
        assert triggers(second, "kept")


def test_writes_of_one_calls_frame_reach_the_replica_as_one_transaction(
    node_and_replica: tuple[Node, Node],
) -> None:
    master, replica = node_and_replica
    code = """
async def f(r):
    await runtime.calls([('SET', 'tick:a', r[1]), ('SET', 'tick:b', r[1])])
    return 'done'
GB('CommandReader').map(f).register(trigger='tick', mode='async_local')
"""
    with master.client(decode_responses=True) as client, replica.client(decode_responses=True) as copy:
        send(client, "RG.PYEXECUTE", code, "ID", "tick", "UPGRADE")
        for n in range(20):
            send(client, "RG.TRIGGER", "tick", n)
            pipeline = copy.pipeline(transaction=True)
            a, b = pipeline.get("tick:a").get("tick:b").execute()
            assert a == b
