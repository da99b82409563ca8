"""Functions at work: steps, commands, replies, and those that fail, exit or never end."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from shardqa.worker import resp
from shardqa.worker.frames import Type
from shardqa.worker.gears.pipeline.run import describe
from tests.unit.worker_client import WorkerClient, decode


def keymiss(worker: WorkerClient, function: str) -> str:
    """Registers a keymiss function given as source of `async def f(r)` or `def f(r)`."""
    tail = "\nGB().map(f).register(prefix='a:*', commands=['get'], eventTypes=['keymiss'], mode='async_local')"
    return worker.register(function + tail)


def command(worker: WorkerClient, trigger: str, steps: str, before: str = "", register: str = "") -> None:
    code = f"{before}\nGB('CommandReader'){steps}.register(trigger={trigger!r}, mode='async_local'{register})"
    reply = worker.execute(code)
    assert reply == b"OK", reply


def test_a_trigger_gets_name_and_arguments_as_its_record(worker: WorkerClient) -> None:
    command(worker, "words", "", register=", convertToStr=False")
    assert worker.request("RG.TRIGGER", "words", "a b", "ü") == [[b"words", b"a b", "ü".encode()]]


STACK = """
import sys
def names():
    frame, files = sys._getframe(1), []
    while frame is not None:
        files += [frame.f_code.co_name] * ('/shardqa/worker/' in frame.f_code.co_filename)
        frame = frame.f_back
    return len(files)
async def coroutine(r): return names()
def plain(r): return names()
"""


@pytest.mark.parametrize(("function", "frames"), [("coroutine", 8), ("plain", 2)])
def test_few_frames_lie_between_the_loop_and_a_function(worker: WorkerClient, function: str, frames: int) -> None:
    """With three of the thread that reads, and the five that wait for a plain function, ten at most."""
    command(worker, f"stack-{function}", f".map({function})", STACK)
    assert worker.request("RG.TRIGGER", f"stack-{function}") == [str(frames).encode()]


@pytest.mark.parametrize(
    ("steps", "words", "reply"),
    [
        (".map(lambda r: [type(x).__name__ for x in r])", ("text", b"\xff"), b"['str', 'str', 'bytes']"),
        (".flatmap(lambda r: r[1:]).count()", ("a", "b"), b"2"),
        (".map(lambda r: int(r[1])).map(slow).map(lambda x: x * 2).map(lambda x: slow(x))", ("1",), b"5"),
        (
            ".map(lambda r: [hashtag(), gearsConfigGet('nothing', 'default'), isAsyncAllow()])",
            (),
            b"['06S', 'default', True]",
        ),
    ],
    ids=["bytes that are no text", "count", "async and plain", "settings"],
)
def test_a_triggers_steps_make_its_reply(worker: WorkerClient, steps: str, words: Any, reply: bytes) -> None:
    before = "import asyncio\nasync def slow(x):\n    await asyncio.sleep(0)\n    return x + 1"
    command(worker, steps, steps, before)
    assert worker.request("RG.TRIGGER", steps, *words) == [reply]


def test_an_argument_that_the_module_does_not_know_is_a_functions_to_read(
    start_worker: Callable[..., WorkerClient],
) -> None:
    worker = start_worker(config=("DbHost", "db.example"))
    command(worker, "host", ".map(lambda r: [gearsConfigGet('DbHost'), configGet('none')])")
    assert worker.request("RG.TRIGGER", "host") == [b"['db.example', None]"]


@pytest.mark.parametrize("function", ["def f(r):", "async def f(r):"])
def test_a_function_executes_a_trigger_of_mode_sync(worker: WorkerClient, function: str) -> None:
    worker.execute("GB('CommandReader').map(lambda r: 'inner ' + r[1]).register(trigger='within', mode='sync')")
    command(worker, function, ".map(f)", f"{function}\n    return execute('RG.TRIGGER', r[1], 'x')")
    assert worker.request("RG.TRIGGER", function, "within") == [b"['inner x']"]
    assert "of a trigger of mode='sync', and 'def" in str(worker.request("RG.TRIGGER", function, "def f(r):"))


def test_execute_gives_text_where_it_is_utf8_and_bytes_else(worker: WorkerClient) -> None:
    worker.answer = lambda words: b"*3\r\n$2\r\n\xc3\xbc\r\n$1\r\n\xff\r\n:7\r\n"
    command(worker, "run", ".map(lambda r: execute('LRANGE', 'k', 0, 1.5))", register=", convertToStr=False")
    assert worker.request("RG.TRIGGER", "run") == [["ü".encode(), b"\xff", 7]]


@pytest.mark.parametrize(
    "value", [b"-ERR not an error", b"+OK", "-5", "+49 40", "", "ünïcode", b"\x00\xff\r\n", 7, None, ["a", [1, None]]]
)
def test_override_reply_carries_anything_as_data(worker: WorkerClient, value: Any) -> None:
    id = keymiss(worker, f"async def f(r):\n    override_reply({value!r})")
    assert worker.miss(id, "a:1") == decode(resp.encode(value))


def test_a_flat_error_ends_the_function_with_its_text_alone(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    flat_error('BUSY later')\n    log('it went on')\n    override_reply('on')")
    assert str(worker.miss(id, "a:1")) == "BUSY later"
    worker.execute("")
    assert "it went on" not in str(worker.of(Type.LOG))


def test_a_miss_sees_its_key_even_when_it_is_no_text(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    override_reply([r['key'], r['event'], r['value'], get_command()])")
    assert worker.miss(id, b"a:\xff") == [b"a:\xff", b"keymiss", None, [b"GET", b"a:\xff"]]


def test_fifty_slow_async_misses_wait_side_by_side_and_each_gets_its_own_reply(worker: WorkerClient) -> None:
    code = "import asyncio\ngate = []\nasync def f(r):\n    gate.append(1)\n"
    code += "    while len(gate) < 50:\n        await asyncio.sleep(0.005)\n    override_reply(r['key'])"
    id = keymiss(worker, code)
    asked = {key: worker.ask(Type.MISS, "default", id, key, "GET", key) for key in (f"a:{n}" for n in range(50))}
    assert {key: worker.reply(frame).decode() for key, frame in asked.items()} == {key: key for key in asked}


def test_a_fault_of_ours_is_reported_with_its_code(worker: WorkerClient) -> None:
    before = "from shardqa.errors import BadDocument\ndef f(r):\n    raise BadDocument('it is empty')"
    command(worker, "fault", ".map(f)", before)
    assert str(worker.request("RG.TRIGGER", "fault")) == "ERR bad_document: it is empty"


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("1/0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(7)", "SystemExit: 7"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("next(iter([]))", "StopIteration"),
        ("raise RecursionError('x' * 100000)", "RecursionError"),
    ],
)
def test_a_function_that_raises_or_exits_gets_an_error_and_the_worker_goes_on(
    worker: WorkerClient, kind: str, body: str, text: str
) -> None:
    id = keymiss(worker, f"{kind} f(r):\n    {body}")
    assert text in str(worker.miss(id, "a:1"))
    assert worker.execute("") == b"OK"


def test_a_task_that_exits_does_not_end_the_worker(worker: WorkerClient) -> None:
    code = "import asyncio, sys\nasync def leave():\n    sys.exit(1)\n"
    code += (
        "async def f(r):\n    asyncio.create_task(leave())\n    await asyncio.sleep(0.01)\n    override_reply('here')"
    )
    assert worker.miss(keymiss(worker, code), "a:1") == b"here"


def test_cancelled_loops_give_their_threads_back(worker: WorkerClient) -> None:
    id = keymiss(worker, "def f(r):\n    while True: pass")
    for _ in range(4):  # one more than the pool has threads
        asked = worker.ask(Type.MISS, "default", id, "a:1", "GET", "a:1")
        time.sleep(0.05)
        worker.send(Type.CANCEL, id=asked)
        assert "was stopped" in str(worker.reply(asked))
    command(worker, "after-loops", ".map(lambda r: 'free')")
    assert worker.request("RG.TRIGGER", "after-loops") == [b"free"]


def test_a_cancel_of_what_is_done_already_does_nothing(worker: WorkerClient) -> None:
    worker.send(Type.CANCEL, id=1)
    worker.send(Type.CANCEL, id=999_999_999)
    assert worker.execute("") == b"OK"


def test_print_goes_to_the_log_and_not_into_the_protocol(worker: WorkerClient) -> None:
    command(worker, "print", ".map(lambda r: print('seen in the log'))")
    worker.request("RG.TRIGGER", "print")
    worker.execute("import sys; sys.stdout.flush()")
    assert "seen in the log" in worker.log.read_text()


def test_run_coroutine_reports_to_its_callback(worker: WorkerClient) -> None:
    before = "async def later(x):\n    return x\ndef start(r):\n"
    before += "    runCoroutine(later(r[1]), lambda result, error: log(f'got {result} {error}'), 0.01)"
    command(worker, "later", ".foreach(start)", before)
    worker.request("RG.TRIGGER", "later", "five")
    assert worker.wait_log("got five None")


def test_a_command_without_a_word_is_an_error_and_reaches_no_module(worker: WorkerClient) -> None:
    worker.rights.clear()
    assert "a command without a word" in str(worker.execute("execute()"))
    assert "a command without a word" in str(worker.execute("GB('ShardsIDReader').map(lambda r: execute()).run()"))
    assert worker.rights == []


def test_a_run_over_one_plain_key_does_not_scan(worker: WorkerClient) -> None:
    others = {b"TYPE": b"+string\r\n", b"SCAN": b"-ERR scanned\r\n"}
    worker.answer = lambda words: others.get(words[0], b"$1\r\nv\r\n")
    assert worker.execute("GB().map(lambda r: r['value']).run('s:1')") == [[b"v"], []]


def test_an_error_whose_text_raises_is_told_by_its_class() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise KeyError("no text")

    assert describe(Silent()) == "ERR Silent: its text raises KeyError"
