"""Functions that hang, loop inside C or crash, on a real node: they cost the worker at most, and are named."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import echo, registrations, send
from tests.nodes import Node, running_node, wait_until
from tests.workers import kill_worker

ASYNC = """
async def work(record):
    return __import__('time').sleep(3600)
GB('CommandReader').map(work).register(trigger='loops', mode='async_local')
"""
LOOP = "def f(record):\n    {body}\nGB({reader!r}).foreach(f).register({arguments}, mode='async_local')"
MISS = "prefix='miss:*', commands=['get'], eventTypes=['keymiss']"
IN_C = "sum(range(10**12))"
IN_PYTHON = "while True: pass"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running_node(tmp_path_factory.mktemp("hanging") / "node", module_arguments=("TIMEOUT", "2000")) as node:
        yield node


@pytest.fixture
def client(node: Node) -> Iterator[Redis]:
    """A client of a node with the trigger `kept` and nothing else."""
    with node.client(decode_responses=True) as client:
        wait_until(lambda: info(client)["worker_state"] == "ready", "the worker is ready")
        for entry in registrations(client):
            send(client, "RG.UNREGISTER", entry["id"])
        send(client, "RG.PYEXECUTE", echo("kept"), "ID", "kept", "UPGRADE")
        yield client


def info(client: Redis) -> dict[str, Any]:
    return {name.removeprefix("shardqa_"): value for name, value in client.info("shardqa").items()}


def error_of(client: Redis, *words: str) -> str:
    with pytest.raises(ResponseError) as caught:
        send(client, *words)
    return str(caught.value)


def errors_at_once(node: Node, *commands: tuple[str, ...]) -> list[str]:
    """Gives the errors that as many clients get."""

    def error(words: tuple[str, ...]) -> str:
        with node.client(decode_responses=True) as client:
            return error_of(client, *words)

    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(error, commands))


def wait_for_restarts(client: Redis, before: int, count: int = 1) -> None:
    def ready() -> bool:
        now = info(client)
        return bool(now["worker_state"] == "ready" and now["worker_restarts"] == before + count)

    wait_until(ready, "the worker is replaced", 60)


def test_a_function_that_hangs_inside_c_is_ended_at_its_deadline_and_named(node: Node, client: Redis) -> None:
    before = info(client)["worker_restarts"]
    send(client, "RG.PYEXECUTE", ASYNC, "ID", "looping")
    assert error_of(client, "RG.TRIGGER", "loops")
    wait_for_restarts(client, before)
    assert "(trigger 'loops') of session looping" in info(client)["worker_last_running"]
    assert "(trigger 'loops') of session looping" in node.log
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]


def test_a_miss_that_hangs_inside_c_is_ended_at_its_deadline_and_named(node: Node, client: Redis) -> None:
    before = info(client)["worker_restarts"]
    code = LOOP.format(body=IN_C, reader="KeysReader", arguments=MISS)
    send(client, "RG.PYEXECUTE", code, "ID", "hanging")
    assert error_of(client, "GET", "miss:1")
    wait_for_restarts(client, before)
    assert "(commands get, keys 'miss:*') of session hanging" in node.log
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]


@pytest.mark.parametrize(
    ("reader", "arguments", "command"),
    [("CommandReader", "trigger='spins'", ("RG.TRIGGER", "spins")), ("KeysReader", MISS, ("GET", "miss:{n}"))],
    ids=["triggers", "misses"],
)
def test_what_loops_in_python_is_interrupted_and_costs_nobody_else_anything(
    node: Node, client: Redis, reader: str, arguments: str, command: tuple[str, ...]
) -> None:
    before = info(client)["worker_restarts"]
    send(client, "RG.PYEXECUTE", LOOP.format(body=IN_PYTHON, reader=reader, arguments=arguments))
    commands = [tuple(word.format(n=n) for word in command) for n in range(5)]  # more than threads may run them
    for error in errors_at_once(node, *commands):
        assert "answer in time" in error
    assert send(client, "RG.TRIGGER", "kept") == ["yes"]
    assert info(client)["worker_restarts"] == before


def test_a_run_of_a_script_has_its_deadline_for_each_record(client: Redis) -> None:
    before = info(client)["worker_restarts"]
    send(client, "RG.CONFIGSET", "ExecutionMaxIdleTime", "1000")
    send(client, "MSET", "run:1", "", "run:2", "", "run:3", "")
    code = "def f(r):\n    {}\n    return r['key']\nGB().map(f).run('run:*')"
    results, errors = send(client, "RG.PYEXECUTE", code.format("__import__('time').sleep(1)"))
    assert (sorted(results), errors) == (["run:1", "run:2", "run:3"], [])
    (error,) = send(client, "RG.PYEXECUTE", code.format(IN_PYTHON))[1]
    assert error.startswith("TIMEOUT the function was stopped: it ran too long")
    assert info(client)["worker_restarts"] == before


@pytest.mark.parametrize(
    "function",
    [
        "async def f(r): return await createFuture()",
        "def f(r): return createFuture()",
        "async def f(r):\n    try: await createFuture()\n    finally: await createFuture()",
    ],
    ids=["coroutine", "future", "coroutine that swallows its end once"],
)
def test_what_a_script_awaits_has_the_deadline_of_its_record(client: Redis, function: str) -> None:
    send(client, "RG.CONFIGSET", "ExecutionMaxIdleTime", "1000")
    code = f"{function}\nGB('PythonReader').map(f).run(lambda: iter([1, 2]))"
    id = send(client, "RG.PYEXECUTE", code, "UNBLOCKING")
    running = ["executionId", id, "status", "running", "registered", 0]
    wait_until(lambda: running not in send(client, "RG.DUMPEXECUTIONS"), "it has ended")
    results, errors = send(client, "RG.GETRESULTS", id)
    assert results == []
    assert [error.startswith("TIMEOUT the function was stopped: it ran too long") for error in errors] == [True, True]


def test_a_function_that_waits_for_a_coroutine_ends_at_its_deadline_and_costs_no_worker(client: Redis) -> None:
    before = info(client)["worker_restarts"]
    code = """
async def never(r): return await createFuture()
GB('CommandReader').map(never).register(hook='hget', mode='async_local')
GB('CommandReader').map(lambda r: call_next(*r[1:])).register(hook='hget', mode='async_local')
"""
    send(client, "RG.PYEXECUTE", code)
    assert "answer in time" in error_of(client, "HGET", "h", "f")
    wait_until(lambda: sum(one["numAborted"] for one in registrations(client)) == 1, "the outer hook has ended")
    assert info(client)["worker_restarts"] == before


def test_a_loop_inside_c_in_a_script_is_ended_and_the_log_names_its_line(node: Node, client: Redis) -> None:
    before = info(client)["worker_restarts"]
    assert error_of(client, "RG.PYEXECUTE", f"x = 1\n{IN_C}", "ID", "script")
    wait_for_restarts(client, before)
    last = str(info(client)["worker_last_running"])  # a hook of the test before may be there, too, about to end
    assert "RG.PYEXECUTE of default" in last
    assert 'File "<session script>", line 2' in node.log


def test_a_function_that_crashes_is_named(client: Redis) -> None:
    before = info(client)["worker_restarts"]
    crash = "GB('CommandReader').map(lambda r: __import__('ctypes').string_at(0)).register(trigger='crashes')"
    send(client, "RG.PYEXECUTE", crash)
    assert "worker" in error_of(client, "RG.TRIGGER", "crashes")
    wait_for_restarts(client, before)
    assert "signal 11" in info(client)["worker_last_end"]
    assert "trigger 'crashes'" in info(client)["worker_last_running"]


@pytest.mark.parametrize(("harm", "restarts"), [(IN_C, 3), ("spin()", 1)])
def test_a_stored_script_that_harms_the_worker_when_it_is_run_again_is_put_away(
    start_node: Callable[..., Node], harm: str, restarts: int
) -> None:
    node = start_node(module_arguments=("TIMEOUT", "1000"))  # of its own: others' sessions would be run again, too
    flag = node.folder / "harm"
    code = f"import os\ndef spin():\n    while True: pass\nif os.path.exists({str(flag)!r}): {harm}\n"
    with node.client(decode_responses=True) as client:
        send(client, "RG.PYEXECUTE", echo("kept"))
        send(client, "RG.PYEXECUTE", code + echo("harmful"), "ID", "harmful")
        flag.touch()
        kill_worker(client)
        wait_for_restarts(client, 0, restarts)
        assert info(client)["sessions_inactive_ids"] == "harmful"
        assert "is not active" in error_of(client, "RG.TRIGGER", "harmful")
        assert send(client, "RG.TRIGGER", "kept") == ["yes"]
        (id,) = (entry["id"] for entry in registrations(client) if "'harmful'" in entry["PD"])
        assert send(client, "RG.UNREGISTER", id) == "OK"
        assert info(client)["sessions_inactive"] == 0


def test_events_that_wait_when_a_function_ends_the_worker_are_run_by_the_next_one(client: Redis) -> None:
    before = info(client)["worker_restarts"]
    body = "execute('RPUSH', 'begun', r['key'])\n    if r['key'] == 'wait:2': __import__('os')._exit(1)"
    code = f"def f(r):\n    {body}\nGB().foreach(f).register('wait:*', mode='async_local')"
    assert send(client, "RG.PYEXECUTE", code) == "OK"
    client.mset({f"wait:{number}": 1 for number in range(6)})
    wait_until(lambda: "wait:5" in client.lrange("begun", 0, -1), "all have begun", 60)
    # A worker may end before the module has heard that "wait:1" was done, which is run again then, and first blamed.
    assert info(client)["worker_restarts"] - before in (2, 3)
    assert set(client.lrange("begun", 0, -1)) == {f"wait:{number}" for number in range(6)}
    (entry,) = [one for one in registrations(client) if "wait:*" in one["args"]]
    assert (entry["numFailures"], "'wait:2' was dropped" in entry["lastError"]) == (1, True)


def test_unregistering_leaves_the_state_of_the_other_functions_alone(client: Redis) -> None:
    count = "n = []\nGB('CommandReader').map(lambda r: n.append(1) or len(n)).register(trigger='count')\n"
    send(client, "RG.PYEXECUTE", count + echo("other"))
    assert send(client, "RG.TRIGGER", "count") == ["1"]
    (id,) = (entry["id"] for entry in registrations(client) if entry["args"][1] == "other")
    assert send(client, "RG.UNREGISTER", id) == "OK"
    assert send(client, "RG.TRIGGER", "count") == ["2"]
    assert error_of(client, "RG.TRIGGER", "other") == "subcommand not found"
