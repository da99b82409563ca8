"""Misses of plain functions: answered by the thread that read them, as on their usual way and at nobody's cost."""

from typing import Any

from shardqa.worker.frames import Type
from shardqa.worker.gears.pipeline.steps import LENGTH, LIGHT, is_light
from tests.unit.worker_client import WorkerClient

TAIL = "GB().map(f).register(prefix='m:*', commands=['get'], eventTypes=['keymiss'], mode='async_local')"
THREAD = "import threading\n{how} f(r):\n    override_reply(threading.current_thread().name)\n"
GATE = """
import threading
gate = threading.Event()
def f(r):
    if r['key'] == 'm:waits':
        gate.wait(20)
    else:
        gate.set()
    override_reply(r['key'])
"""


def keymiss(worker: WorkerClient, function: str, tail: str = TAIL) -> str:
    return worker.register(f"{function}\n{tail}")


def counts(worker: WorkerClient, id: str) -> dict[str, Any]:
    dump = next(dump for dump in worker.request("RG.DUMPREGISTRATIONS", "WITH", "STATISTICS") if dump[1].decode() == id)
    flat = dump[7] + dump[-1]
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def is_of_reading(name: bytes) -> bool:
    return name == b"MainThread" or name.startswith(b"reading")


def test_a_plain_function_runs_in_the_thread_that_read_the_miss(worker: WorkerClient) -> None:
    assert is_of_reading(worker.miss(keymiss(worker, THREAD.format(how="def")), "m:1"))


def test_a_coroutine_stays_in_the_loop(worker: WorkerClient) -> None:
    assert worker.miss(keymiss(worker, THREAD.format(how="async def")), "m:1") == b"loop"


def test_steps_that_join_records_go_to_the_pool(worker: WorkerClient) -> None:
    tail = TAIL.replace(".map(f)", ".map(f).accumulate(lambda a, r: r)")
    assert worker.miss(keymiss(worker, THREAD.format(how="def"), tail), "m:1").startswith(b"function")


def test_a_global_that_misses_make_when_they_need_it_is_made_once(worker: WorkerClient) -> None:
    code = "import time\nmade, loaded = [], None\ndef f(r):\n    global loaded\n    if loaded is None:\n"
    code += "        time.sleep(0.2)\n        made.append(1)\n        loaded = True\n    override_reply(len(made))\n"
    id = keymiss(worker, code)
    asked = [worker.ask(Type.MISS, "default", id, f"m:{n}", "GET", f"m:{n}") for n in range(4)]
    assert [worker.reply(one) for one in asked] == [1, 1, 1, 1]


def test_a_function_that_waits_holds_up_no_other_frame(worker: WorkerClient) -> None:
    id = keymiss(worker, GATE, TAIL.replace("mode=", "concurrency=2, mode="))
    waiting = worker.ask(Type.MISS, "default", id, "m:waits", "GET", "m:waits")
    assert worker.execute("") == b"OK"
    assert worker.miss(id, "m:opens") == b"m:opens"
    assert worker.reply(waiting) == b"m:waits"


def test_a_function_may_ask_redis_in_the_thread_that_reads(worker: WorkerClient) -> None:
    code = "import threading\ndef f(r):\n    override_reply([threading.current_thread().name, execute('get', 'x')])\n"
    worker.answer = lambda words: b"$5\r\nfound\r\n"
    thread, found = worker.miss(keymiss(worker, code), "m:1")
    assert is_of_reading(thread)
    assert found == b"found"


def test_its_calls_have_the_rights_of_the_miss(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    execute('get', 'x')\n")
    worker.rights.clear()
    asked = worker.ask(Type.MISS, "somebody", id, "m:1", "GET", "m:1")
    worker.reply(asked)
    assert worker.rights == [f"r{asked}"]


def test_an_atomic_block_works_there(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    with atomic():\n        override_reply(isInAtomicBlock())\n")
    asked = worker.ask(Type.MISS, "default", id, "m:1", "GET", "m:1")
    worker.link.send(Type.CALLED, worker.wait(lambda f: f.type is Type.LOCK).id, b"+OK\r\n")
    worker.link.send(Type.CALLED, worker.wait(lambda f: f.type is Type.UNLOCK).id, b"+OK\r\n")
    assert worker.reply(asked) == 1


def test_what_it_gives_to_await_is_awaited_in_the_loop_and_the_steps_go_on(worker: WorkerClient) -> None:
    code = "import asyncio, threading\nasync def later(r):\n    await asyncio.sleep(0)\n"
    code += "    return threading.current_thread().name\ndef f(r):\n    return later(r)\n"
    id = keymiss(worker, code, TAIL.replace(".map(f)", ".map(f).map(override_reply)"))
    assert worker.miss(id, "m:1") == b"loop"
    found = counts(worker, id)
    assert (found["numTriggered"], found["numSuccess"], found["queue"]) == (1, 1, 0)


def test_what_is_awaited_then_can_be_cancelled(worker: WorkerClient) -> None:
    code = "import asyncio\nasync def later():\n    await asyncio.sleep(1000)\ndef f(r):\n    return later()\n"
    id = keymiss(worker, code)
    asked = worker.ask(Type.MISS, "default", id, "m:1", "GET", "m:1")
    worker.execute("")
    worker.send(Type.CANCEL, id=asked)
    assert "was stopped" in str(worker.reply(asked))
    assert counts(worker, id)["numAborted"] == 1


def test_its_runs_and_errors_are_counted(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    1 / len(r['key'][2:])\n")
    assert worker.miss(id, "m:1") is None
    assert "ZeroDivisionError" in str(worker.miss(id, "m:"))
    found = counts(worker, id)
    assert (found["numTriggered"], found["numSuccess"], found["numFailures"], found["queue"]) == (2, 1, 1, 0)
    assert b"ZeroDivisionError" in found["lastError"]
    assert "ZeroDivisionError" in str(worker.request("RG.PYLOGS")[-1])


def test_one_that_never_ends_is_stopped_and_counted(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    log('it spins')\n    while True: pass")
    asked = worker.ask(Type.MISS, "default", id, "m:1", "GET", "m:1")
    worker.wait_log("it spins")
    assert counts(worker, id)["queue"] == 1
    worker.send(Type.CANCEL, id=asked)
    assert "was stopped" in str(worker.reply(asked))
    assert counts(worker, id)["numAborted"] == 1


def test_a_cancel_that_comes_with_the_miss_is_heard(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    while True: pass")
    with worker.together():
        asked = worker.ask(Type.MISS, "default", id, "m:1", "GET", "m:1")
        worker.send(Type.CANCEL, id=asked)
    assert "was stopped" in str(worker.reply(asked))


def test_functions_that_take_long_go_to_the_pool(worker: WorkerClient) -> None:
    id = keymiss(worker, THREAD.format(how="def") + "    import time; time.sleep(0.01)\n")
    assert any(worker.miss(id, "m:1").startswith(b"function") for _ in range(100))


def test_a_miss_behind_a_forget_finds_nothing(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    override_reply('still here')")
    with worker.together():
        worker.send(Type.FORGET, id)
        asked = worker.ask(Type.MISS, "default", id, "m:1", "GET", "m:1")
    assert worker.reply(asked) is None


def test_a_miss_behind_its_session_has_the_new_function(worker: WorkerClient) -> None:
    code = f"def f(r):\n    override_reply('old')\n{TAIL}"
    assert worker.execute(code, "ID", "replaced") == b"OK"
    id = worker.wait(lambda f: f.type is Type.REGISTER).items()[4].decode()
    for _ in range(20):
        with worker.together():
            worker.send(Type.SESSION, "replaced", "default", code.replace("old", "new"), "1", id)
            asked = worker.ask(Type.MISS, "default", id, "m:1", "GET", "m:1")
        assert worker.reply(asked) == b"new"


def test_a_trigger_of_a_coroutine_needs_no_thread_of_the_pool(worker: WorkerClient) -> None:
    code = "import threading\ngate = threading.Event()\nasync def f(r):\n    return {'n': len(r), 's': 'text'}\n"
    code += "def wait(r):\n    log('one waits')\n    gate.wait(20)\n"
    code += "GB('CommandReader').map(f).register(trigger='quick', mode='async_local')\n"
    code += "GB('CommandReader').foreach(wait).register(trigger='waits', mode='async_local')\n"
    code += "async def end(r):\n    gate.set()\n"
    code += "GB('CommandReader').foreach(end).register(trigger='ends', mode='async_local')\n"
    assert worker.execute(code) == b"OK"
    waiting = [worker.ask(Type.REQUEST, "default", "RG.TRIGGER", "waits") for _ in range(3)]
    for _ in waiting:
        worker.wait_log("one waits")
    assert worker.request("RG.TRIGGER", "quick") == [b"{'n': 1, 's': 'text'}"]
    worker.request("RG.TRIGGER", "ends")
    for asked in waiting:
        assert worker.reply(asked) == [b"['waits']"]


LIGHT_ONES = [7, "x" * 10**6, b"x", None, {"key": "a", "value": None}]
HEAVY = [{"key": "x" * (LENGTH + 1)}, {n: n for n in range(LIGHT + 1)}, {"v": {}}, [], object()]
HEAVY += [type("Own", (str,), {})("x")]


def test_only_what_is_small_and_no_users_own_is_light() -> None:
    assert all(map(is_light, LIGHT_ONES))
    assert not any(map(is_light, HEAVY))
