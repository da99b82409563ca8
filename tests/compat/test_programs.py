"""Behaviour that programs written for RedisGears 1.2 rely on, as they met it."""

import os
from pathlib import Path

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import registrations, send
from tests.nodes import running_node, wait_until
from tests.onnx_models import adder


def test_functions_see_the_variables_that_environment_names(tmp_path: Path) -> None:
    environment = {**os.environ, "SQA_TOKEN": "t0k", "SQA_OTHER": "hidden"}
    code = "import os\nGB('ShardsIDReader').map(lambda _: [*map(os.environ.get, ('SQA_TOKEN', 'SQA_OTHER'))]).run()"
    arguments = ("ENVIRONMENT", "SQA_TOKEN,SQA_ABSENT")
    with running_node(tmp_path, module_arguments=arguments, environment=environment) as node, node.client() as client:
        assert send(client, "RG.PYEXECUTE", code) == [[b"['t0k', None]"], []]


def test_a_sync_keys_reader_holds_its_writer_until_the_function_has_run(client: Redis) -> None:
    code = """
import time
def slow(record):
    time.sleep(0.05)
    execute('SET', 'hold-seen:' + record['key'], record['event'])
    if record['key'] == 'hold:bad': raise ValueError('no')
GB('KeysReader').foreach(slow).register(prefix='hold:*', mode='sync', readValue=False)
"""
    assert send(client, "RG.PYEXECUTE", code, "ID", "held-writer") == "OK"
    assert client.hset("hold:1", "field", "x") == 1
    assert client.get("hold-seen:hold:1") == "hset"
    assert client.delete("hold:1", "other") == 1
    assert client.get("hold-seen:hold:1") == "del"
    assert client.set("hold:bad", 1) is True  # its own reply, whatever the function does
    client.eval("return redis.call('SET', 'hold:lua', 1)", 0)  # nobody waits in a script, and no event is lost
    wait_until(lambda: client.get("hold-seen:hold:lua") == "set")
    (entry,) = [one for one in registrations(client) if "hold:*" in one["args"]]
    assert (entry["numTriggered"], entry["numFailures"]) == (4, 1)


def test_a_sync_stream_reader_holds_its_writer_until_the_message_is_done(client: Redis) -> None:
    function = "lambda r: execute('SET', 'done:' + r['key'], r['id'])"
    code = f"GB('StreamReader').foreach({function}).register('held-*', mode='sync')"
    assert send(client, "RG.PYEXECUTE", code, "ID", "held") == "OK"
    for _ in range(3):
        id = client.xadd("held-s", {"a": 1})
        assert client.get("done:held-s") == id
    assert client.xlen("held-s") == 0


def test_each_record_goes_through_all_steps_before_the_next(client: Redis) -> None:
    code = """
count = 0
def more(_):
    global count
    count += 1
GB('PythonReader').flatmap(lambda n: [n, n]).foreach(more).map(lambda r: (r, count)).run(lambda: iter('abc'))
"""
    expected = [str((letter, 2 * number + half)) for number, letter in enumerate("abc") for half in (1, 2)]
    assert send(client, "RG.PYEXECUTE", code) == [expected, []]


def test_info_shows_the_backends_that_were_needed(tmp_path: Path) -> None:
    with running_node(tmp_path, module_arguments=("NAME", "ai")) as node, node.client() as client:
        assert not [name for name in client.info("modules") if "onnxruntime" in name]
        send(client, "AI.MODELSTORE", "adder", "ONNX", "CPU", "BLOB", adder())  # while the worker starts
        info = client.info("modules")
        assert {"ai_onnxruntime_version", "ai_onnxruntime_memory"} <= info.keys()
        assert "ai_Torch_version" not in info
        with pytest.raises(ResponseError, match="in a deprecated AI"):
            send(client, "AI.DAGRUN", "|>", "AI.MODELEXECUTE", "adder", "INPUTS", 2, "a", "b", "OUTPUTS", 1, "c")


def test_a_time_event_runs_until_its_key_is_deleted_also_after_a_restart(tmp_path: Path) -> None:
    code = "import redisgears\nredisgears.registerTimeEvent(0.1, lambda: execute('INCR', 'beats'), 'clock')"
    with running_node(tmp_path) as node:
        client = node.client(decode_responses=True)
        assert send(client, "RG.PYEXECUTE", code) == "OK"
        wait_until(lambda: int(client.get("beats") or 0) > 1)
        node.restart()
        beats = int(wait_until(lambda: client.get("beats")))
        wait_until(lambda: int(client.get("beats") or 0) > beats + 1, "it goes on")
        assert client.delete("clock") == 1
        wait_until(lambda: registrations(client) == [], "it has ended")


def test_a_record_whose_future_nobody_can_continue_fails(client: Redis) -> None:
    code = "GB('CommandReader').map(lambda r: gearsFuture()).register(trigger='lost', mode='async_local')"
    assert send(client, "RG.PYEXECUTE", code) == "OK"
    with pytest.raises(ResponseError, match="did not called continue"):
        send(client, "RG.TRIGGER", "lost")


def test_a_key_that_is_not_there_gives_an_empty_record_without_scan(client: Redis) -> None:
    code = "GB().map(lambda r: (r['type'], r['value'])).run('programs:nothing', noScan=True)"
    assert send(client, "RG.PYEXECUTE", code) == [["('empty', None)"], []]


def test_the_event_of_a_key_that_has_gone_has_the_type_empty(client: Redis) -> None:
    for name, types in ("strings", ["string"]), ("empties", ["empty"]), ("all", None):
        seen = f"lambda r: execute('RPUSH', 'absent-{name}', r['event'], r['type'], str(r['value']))"
        code = f"GB('KeysReader').foreach({seen}).register('absent:*', mode='sync', keyTypes={types})"
        assert send(client, "RG.PYEXECUTE", code, "ID", f"absent-{name}") == "OK"
    client.set("absent:1", "x")
    client.delete("absent:1")
    assert client.lrange("absent-strings", 0, -1) == ["set", "string", "x"]
    assert client.lrange("absent-empties", 0, -1) == ["del", "empty", "None"]
    assert client.lrange("absent-all", 0, -1) == ["set", "string", "x", "del", "empty", "None"]


def test_a_function_that_executes_what_is_no_command_reads_that(client: Redis) -> None:
    for name in "NOPE", "RG.NOPE":
        (error,) = send(client, "RG.PYEXECUTE", f"GB('ShardsIDReader').map(lambda _: execute('{name}')).run()")[1]
        assert error.startswith(f"ERR unknown command '{name}'")


def test_coroutines_that_place_records_fail_them(client: Redis) -> None:
    code = "async def f(*_): return 1\nGB('ShardsIDReader')."
    for step in "repartition(f)", "batchgroupby(lambda r: r, f)":
        results, errors = send(client, "RG.PYEXECUTE", f"{code}{step}.run()")
        assert not results
        assert "coroutine are not allow on" in errors[0]


def test_an_event_that_waits_for_a_future_can_be_aborted(client: Redis) -> None:
    code = """
held = []
def wait(record):
    held.append(gearsFuture())
    return held[-1]
GB().map(wait).register('aborted:*', mode='async_local')
"""
    assert send(client, "RG.PYEXECUTE", code) == "OK"
    client.set("aborted:1", 1)
    id = wait_until(lambda: [e[1] for e in send(client, "RG.DUMPEXECUTIONS") if e[3] == "running"])[0]
    assert send(client, "RG.ABORTEXECUTION", id) == "OK"
    errors = wait_until(lambda: [e["lastError"] for e in registrations(client) if e["numAborted"] and e["lastError"]])
    assert "ERR the execution was aborted" in errors


def test_the_executions_of_a_registration_go_with_it(client: Redis) -> None:
    assert send(client, "RG.PYEXECUTE", "GB().register('gone:*', mode='async_local')", "ID", "gone") == "OK"
    before = {entry[1] for entry in send(client, "RG.DUMPEXECUTIONS")}
    client.mset({"gone:1": 1, "gone:2": 2})
    ids = wait_until(lambda: [e[1] for e in send(client, "RG.DUMPEXECUTIONS") if e[1] not in before and e[3] == "done"])
    (registration,) = (entry["id"] for entry in registrations(client) if "gone:*" in entry["args"])
    assert send(client, "RG.UNREGISTER", registration) == "OK"
    assert not set(ids) & {entry[1] for entry in send(client, "RG.DUMPEXECUTIONS")}
