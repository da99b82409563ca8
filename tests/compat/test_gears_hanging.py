"""Functions that hang, loop inside C or crash, on a real node: they cost the worker at most, and are named."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import echo, send
from tests.nodes import Node, wait_until
from tests.workers import kill_worker

LOOP = "GB('CommandReader').map(lambda r: {expression}).register(trigger='{trigger}', mode='async_local')"
MISS = """
def f(record):
    {body}
GB().foreach(f).register(prefix='miss:*', commands=['get'], eventTypes=['keymiss'], mode='async_local')
"""
ASYNC = """
async def work(record):
    return {expression}
GB('CommandReader').map(work).register(trigger='{trigger}', mode='async_local')
"""


def info(client: Redis) -> dict[str, Any]:
    return {name.removeprefix("shardqa_"): value for name, value in client.info("shardqa").items()}


def error_of(client: Redis, *words: str) -> str:
    with pytest.raises(ResponseError) as caught:
        send(client, *words)
    return str(caught.value)


def ready(client: Redis, restarts: int) -> bool:
    now = info(client)
    return bool(now["worker_state"] == "ready" and now["worker_restarts"] == restarts)


@pytest.fixture
def client(start_node: Callable[..., Node]) -> Any:
    node = start_node(module_arguments=("TIMEOUT", "2000"))
    with node.client(decode_responses=True) as connection:
        connection.node = node
        wait_until(lambda: ready(connection, 0), "the worker is ready")
        send(connection, "RG.PYEXECUTE", echo("kept"))
        yield connection


@pytest.mark.parametrize("script", [LOOP, ASYNC])
@pytest.mark.parametrize("expression", ["sum(range(10**12))", "__import__('time').sleep(3600)"])
def test_a_function_that_hangs_inside_c_is_ended_at_its_deadline_and_named(
    client: Any, script: str, expression: str
) -> None:
    send(client, "RG.PYEXECUTE", script.format(expression=expression, trigger="loops"), "ID", "looping")
    assert error_of(client, "RG.TRIGGER", "loops")
    wait_until(lambda: ready(client, 1), "the worker is replaced")
    assert "(trigger 'loops') of session looping" in info(client)["worker_last_running"]
    assert "(trigger 'loops') of session looping" in client.node.log
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]


@pytest.mark.parametrize("body", ["sum(range(10**12))", "__import__('time').sleep(3600)"])
def test_a_miss_that_hangs_inside_c_is_ended_at_its_deadline_and_named(client: Any, body: str) -> None:
    send(client, "RG.PYEXECUTE", MISS.format(body=body), "ID", "hanging")
    assert error_of(client, "GET", "miss:1")
    wait_until(lambda: ready(client, 1), "the worker is replaced")
    assert "(commands get, keys 'miss:*') of session hanging" in client.node.log
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]


def test_misses_that_loop_in_python_are_interrupted_and_cost_nobody_else_anything(client: Any) -> None:
    send(client, "RG.PYEXECUTE", MISS.format(body="while True: pass"))
    for number in range(5):  # more than the threads that may run them
        assert "answer in time" in error_of(client, "GET", f"miss:{number}")
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]
    assert info(client)["worker_restarts"] == 0


def test_a_loop_inside_c_in_a_script_is_ended_and_the_log_names_its_line(client: Any) -> None:
    assert error_of(client, "RG.PYEXECUTE", "x = 1\nsum(range(10**12))", "ID", "script")
    wait_until(lambda: ready(client, 1), "the worker is replaced")
    assert "RG.PYEXECUTE of default" in info(client)["worker_last_running"]
    assert 'File "<session script>", line 2' in client.node.log


def test_a_loop_in_python_is_interrupted_and_costs_nobody_else_anything(client: Any) -> None:
    code = "def f(r):\n    while True: pass\nGB('CommandReader').map(f).register(trigger='spins', mode='async_local')"
    send(client, "RG.PYEXECUTE", code)
    for _ in range(4):  # more than the pool has threads
        assert "answer in time" in error_of(client, "RG.TRIGGER", "spins")
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]
    assert info(client)["worker_restarts"] == 0


def test_an_event_that_loops_is_ended_like_a_trigger(client: Any) -> None:
    send(client, "RG.CONFIGSET", "ExecutionMaxIdleTime", "1")
    code = "def f(r):\n    while True: pass\nGB('KeysReader').foreach(f).register(prefix='e:*', mode='async_local')"
    send(client, "RG.PYEXECUTE", code)
    for number in range(4):
        client.set(f"e:{number}", "x")
    wait_until(lambda: data_of(client)["numFailures"] + data_of(client)["numAborted"] == 4, "all four are ended")
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]
    assert info(client)["worker_restarts"] == 0


def data_of(client: Redis) -> dict[str, Any]:
    dump = next(dump for dump in send(client, "RG.DUMPREGISTRATIONS") if dump[3] == "KeysReader")
    return dict(zip(dump[7][::2], dump[7][1::2], strict=True))


def test_a_stopped_worker_of_a_real_node_is_replaced(client: Any) -> None:
    os.kill(int(info(client)["worker_pid"]), signal.SIGSTOP)
    assert "does not answer" in error_of(client, "RG.TRIGGER", "kept")
    wait_until(lambda: ready(client, 1), "the worker is replaced")
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]


def test_a_function_that_crashes_is_named(client: Any) -> None:
    send(client, "RG.PYEXECUTE", LOOP.format(expression="__import__('ctypes').string_at(0)", trigger="crashes"))
    assert "worker" in error_of(client, "RG.TRIGGER", "crashes")
    wait_until(lambda: ready(client, 1), "the worker is replaced")
    assert "signal 11" in info(client)["worker_last_end"]
    assert "trigger 'crashes'" in info(client)["worker_last_running"]


@pytest.mark.parametrize(
    ("harm", "restarts"), [("os._exit(9)", 3), ("sum(range(10**12))", 3), ("time.sleep(3600)", 3), ("spin()", 1)]
)
def test_a_stored_script_that_harms_the_worker_when_it_is_run_again_is_put_away(
    client: Any, harm: str, restarts: int
) -> None:
    flag = client.node.folder / "harm"
    code = f"import os, time\ndef spin():\n    while True: pass\nif os.path.exists({str(flag)!r}): {harm}\n" + echo(
        "harmful"
    )
    send(client, "RG.PYEXECUTE", code, "ID", "harmful")
    flag.touch()
    kill_worker(client)
    wait_until(lambda: ready(client, restarts), "the worker is there without it", 60)
    assert info(client)["sessions_inactive_ids"] == "harmful"
    assert "is not active" in error_of(client, "RG.TRIGGER", "harmful")
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]
    (id,) = (dump[1] for dump in send(client, "RG.DUMPREGISTRATIONS") if "'harmful'" in dump[9])
    assert send(client, "RG.UNREGISTER", id) == "OK"
    assert info(client)["sessions_inactive"] == 0


def test_unregistering_leaves_the_state_of_the_other_functions_alone(client: Any) -> None:
    code = (
        "n = []\n"
        "GB('CommandReader').map(lambda r: n.append(1) or len(n)).register(trigger='count', mode='async_local')\n"
        + echo("other")
    )
    send(client, "RG.PYEXECUTE", code)
    assert send(client, "RG.TRIGGER", "count") == ["1"]
    (id,) = (dump[1] for dump in send(client, "RG.DUMPREGISTRATIONS") if dump[7][-1][1] == "other")
    assert send(client, "RG.UNREGISTER", id) == "OK"
    assert send(client, "RG.TRIGGER", "count") == ["2"]
    assert error_of(client, "RG.TRIGGER", "other") == "subcommand not found"
