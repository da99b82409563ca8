"""RG.PYEXECUTE: what a script leaves registered, replaces, or leaves undone when it fails."""

import hashlib
import time
from collections.abc import Callable

import pytest
from redis import ResponseError

from shardqa.worker.frames import Type
from tests.unit.worker_client import NODE, WorkerClient

ECHO = "GB('CommandReader').map(lambda r: {value!r}).register(trigger={trigger!r}, mode='async_local')"


def echo(trigger: str, value: str = "yes") -> str:
    return ECHO.format(trigger=trigger, value=value)


def test_a_script_that_only_registers_replies_ok_and_tells_the_module_first(worker: WorkerClient) -> None:
    assert worker.execute(echo("first"), "ID", "s-first") == b"OK"
    session, user, code, count, id, *rest = worker.wait(lambda f: f.type is Type.REGISTER).items()
    assert (session, user, code.decode(), count) == (b"s-first", b"default", echo("first"), b"1")
    assert id.startswith(NODE.encode())
    assert rest == [b"CommandReader", b"async_local", b"", b"", b"first", b"0", b"0", b"0"]


def test_the_log_says_who_sent_which_script(worker: WorkerClient) -> None:
    code = echo("audited")
    worker.execute(code, "ID", "s-audit", user="anna")
    digest = hashlib.sha256(code.encode()).hexdigest()[:16]
    said = worker.wait_log("RG.PYEXECUTE by user")
    assert said == f"RG.PYEXECUTE by user 'anna' as session 's-audit': {len(code)} characters, sha256 {digest}"


@pytest.mark.parametrize(
    "code",
    [
        "GB('CommandReader').register(trigger='\\ud800')",
        "GB().register(prefix='\\ud800')",
        "GB().register(eventTypes=['\\ud800'])",
        "GB(desc='\\ud800').register()",
        "GB(desc=5).register()",
        "runtime.watch('\\ud800', None, None)",
    ],
)
def test_what_the_module_can_not_be_told_registers_nothing(worker: WorkerClient, code: str) -> None:
    before = worker.request("RG.PYDUMPSESSIONS")
    reply = str(worker.execute(echo("whole") + "\n" + code))
    assert "half a character" in reply or "wants a string" in reply
    assert worker.request("RG.PYDUMPSESSIONS") == before


def test_a_keys_reader_tells_its_prefix_events_types_and_commands(worker: WorkerClient) -> None:
    worker.register(
        "GB('KeysReader', desc='why').register(prefix='p:*', eventTypes=['keymiss'], commands=['get'], "
        "keyTypes=['string', 'hash'], mode='async_local')"
    )
    worker.execute("GB().register(prefix='q:*', mode='async_local')")
    items = worker.wait(lambda f: f.type is Type.REGISTER).items()
    assert items[5:] == [b"KeysReader", b"async_local", b"", b"q:*", b"", b"0", b"0", b"0"]


def test_a_script_that_raises_leaves_nothing_registered(worker: WorkerClient) -> None:
    reply = worker.execute(echo("lost") + "\nraise ValueError('no')")
    assert isinstance(reply, ResponseError)
    assert 'ValueError: no (File "<session' in str(reply)
    assert "line 2" in str(reply)
    assert str(worker.request("RG.TRIGGER", "lost")) == "ERR subcommand not found"
    assert not worker.of(Type.REGISTER)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("1defs", "SyntaxError: invalid syntax, invalid decimal literal"),
        ("raise StopIteration", "StopIteration"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("GB('TreeReader')", "reader does not exists: 'TreeReader'"),
        ("GB().register(mode='later')", "unknown execution mode 'later'"),
        ("GB().run(mode='later')", "unknown execution mode 'later'"),
        ("GB('KeysOnlyReader').register()", "KeysOnlyReader can't be registered"),
        ("GB('PythonReader').run(7)", "pyreader argument must be a function"),
        ("GB().run(7)", "wants a pattern of keys"),
        ("GB('StreamReader').register(batch=0)", "batch wants a number from 1 on"),
        ("GB('StreamReader').register(duration=-1)", "duration wants a number from 0 on"),
        ("GB('StreamReader').register(onFailedPolicy='pray')", "onFailedPolicy 'pray' does not exist"),
        ("GB('StreamReader').register(onFailedRetryInterval='1')", "wants seconds from 0 on"),
        ("GB().limit(-1)", "limit: length argument must be a number from 0 on"),
        ("GB().limit('5')", "limit: length argument must be a number from 0 on"),
        ("GB().accumulate(7)", "accumulate argument must be a function"),
        ("async def e(r): pass\nGB().localgroupby(e, len)", "can't be async"),
        ("GB().register(onRegistered=1)", "onRegistered argument must be a function"),
        ("GB(desc=1)", "desc wants a string"),
        ("flat_error('no more today')", "no more today"),
        ("GB().register(commands=['rg.trigger'])", "can't be hooked"),
        ("GB().register(keyTypes=['tree'])", "key type 'tree'"),
        ("GB().register(eventTypes='del')", "give a list"),
        ("GB().map(3)", "map argument must be a function"),
        ("GB('CommandReader').register()", "no trigger or hook argument"),
        ("GB('CommandReader').register(hook='migrate')", "can't be hooked"),
        ("GB('CommandReader').register(hook='hset', trigger='x')", "not both"),
        ("call_next()", "call_next works only"),
        ("GB('CommandReader').run()", "register it with a trigger"),
        ("GB().run(); GB().run()", "Can not run more then 1 executions in a single script"),
        ("override_reply(1)", "override_reply works only"),
    ],
)
def test_a_failing_script_gets_an_error_that_says_why(worker: WorkerClient, code: str, text: str) -> None:
    assert text in str(worker.execute(code))


def test_unknown_arguments_are_ignored_and_logged_once(worker: WorkerClient) -> None:
    code = "for n in range(2): GB().map(str).register(f'u{n}:*', sort=3, mode='async_local')"
    assert worker.execute(code) == b"OK"
    assert "register of a KeysReader ignores the unknown argument sort" in worker.wait_log("session")
    assert worker.execute("GB('PythonReader', None).run(lambda: iter([1]), keyTypes=['hash'])") == [[b"1"], []]
    assert len([frame for frame in worker.of(Type.LOG) if b"argument sort" in frame.payload]) == 0


@pytest.mark.parametrize(
    ("reader", "arguments", "text"),
    [
        ("KeysReader", "prefix='odd-a:*', eventTypes=['hset', 'update']", "event 'update' is none of Redis'"),
        ("StreamReader", "prefix='odd-[ab]:*'", "prefix 'odd-[ab]:*' is no pattern"),
    ],
)
def test_what_never_fires_is_registered_and_noted(worker: WorkerClient, reader: str, arguments: str, text: str) -> None:
    assert worker.execute(f"GB({reader!r}).register({arguments})") == b"OK"
    assert text in worker.wait_log(text)
    assert any(text.encode() in line[3] for line in worker.request("RG.PYLOGS"))


NO_PACKAGES = ("-r/etc/passwd", "--index-url=http://x", "git+https://x/y", "/tmp/a.whl", "../x", "x;y", "", "a b")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["ID"], "ID is missing"),
        *((["REQUIREMENTS", word], "not the name of a package") for word in NO_PACKAGES),
        (["REPLACE_WITH", "nobody"], "does not exist"),
        (["WHAT"], "Unknown arguments were given: 'WHAT'"),
    ],
)
def test_arguments_that_can_not_be_followed_are_refused(worker: WorkerClient, words: list[str], text: str) -> None:
    assert text in str(worker.execute(echo("refused"), *words))
    assert str(worker.request("RG.TRIGGER", "refused")) == "ERR subcommand not found"


def test_a_script_that_is_not_utf8_is_refused(worker: WorkerClient) -> None:
    assert "not UTF-8" in str(worker.request("RG.PYEXECUTE", b"\xff\xfe"))


def test_upgrade_replaces_all_that_the_session_registered(worker: WorkerClient) -> None:
    worker.execute(echo("old-a") + "\n" + echo("old-b"), "ID", "s-upgraded")
    assert worker.execute(echo("old-b", "new"), "ID", "s-upgraded", "UPGRADE") == b"OK"
    assert worker.request("RG.TRIGGER", "old-b") == [b"new"]
    assert str(worker.request("RG.TRIGGER", "old-a")) == "ERR subcommand not found"


def test_an_upgrade_that_fails_keeps_the_old_session(worker: WorkerClient) -> None:
    worker.execute(echo("kept"), "ID", "s-kept")
    assert "ZeroDivisionError" in str(worker.execute("1/0", "ID", "s-kept", "UPGRADE"))
    assert worker.request("RG.TRIGGER", "kept") == [b"yes"]


def test_a_stored_session_gets_its_registration_ids_back(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(started=False)
    worker.send(Type.SESSION, "s", "alice", echo("back"), "1", f"{NODE}-1")
    worker.start()
    assert worker.request("RG.TRIGGER", "back") == [b"yes"]
    (dumped,) = worker.request("RG.DUMPREGISTRATIONS")
    assert dumped[1].decode() == f"{NODE}-1"
    assert not worker.of(Type.REGISTER)
    assert worker.register(echo("later")) not in ("", f"{NODE}-1")


def test_a_stored_session_that_now_registers_more_is_stored_anew(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(started=False)
    worker.send(Type.SESSION, "s", "alice", echo("a") + "\n" + echo("b"), "1", f"{NODE}-7")
    worker.start()
    items = worker.wait(lambda f: f.type is Type.REGISTER).items()
    assert (items[0], items[1], items[3]) == (b"s", b"alice", b"2")


def body(trigger: str, description: str = "") -> tuple[str, ...]:
    return ("CommandReader", "async_local", description, "", trigger, "0", "0", "0")


def hook_body(prefix: str) -> tuple[str, ...]:
    return ("KeysReader", "async_local", "", prefix, "", "1", "keymiss", "0", "1", "get r 1 1")


HOOK = (
    "GB('KeysReader').map(lambda r: {value!r}).register(prefix={prefix!r}, eventTypes=['keymiss'], commands=['get'], \
mode='async_local')"
)


def test_what_a_newer_script_registers_in_another_order_keeps_the_id_of_its_keys_and_trigger(
    start_worker: Callable[..., WorkerClient],
) -> None:
    worker = start_worker(role="replica", started=False)
    lines = (echo("new"), echo("two", "2"), HOOK.format(value="hooked", prefix="a:*"), echo("one", "1"))
    stored = (*body("one"), *hook_body("a:*"), *body("two", "had another description"), *body("gone"))
    worker.send(Type.SESSION, "s", "default", "\n".join(lines), "4", "n-1", "n-2", "n-3", "n-4", *stored)
    worker.start()
    kept = {fields[1].decode(): str(fields) for fields in worker.request("RG.DUMPREGISTRATIONS")}
    assert "b'one'" in kept["n-1"]
    assert "b'two'" in kept["n-3"]
    assert "n-4" not in kept
    assert len(kept) == 4
    assert "missed" not in str(worker.miss("n-2", "a:1"))
    assert not worker.of(Type.REGISTER)  # a replica stores nothing


def test_a_master_stores_anew_what_registers_with_another_description(
    start_worker: Callable[..., WorkerClient],
) -> None:
    worker = start_worker(started=False)
    worker.send(Type.SESSION, "s", "alice", echo("a"), "1", f"{NODE}-7", *body("a", "of yesterday"))
    worker.start()
    items = worker.wait(lambda f: f.type is Type.REGISTER).items()
    assert items[4:8] == [f"{NODE}-7".encode(), b"CommandReader", b"async_local", b""]


def test_of_two_registrations_for_the_same_keys_each_keeps_its_id(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(started=False)
    script = "\n".join([HOOK.format(value="first", prefix="a:*"), HOOK.format(value="second", prefix="a:*")])
    worker.send(Type.SESSION, "s", "alice", script, "2", "n-1", "n-2", *hook_body("a:*"), *hook_body("a:*"))
    worker.start()
    assert [fields[1] for fields in worker.request("RG.DUMPREGISTRATIONS")] == [b"n-1", b"n-2"]
    assert not worker.of(Type.REGISTER)


def test_a_stored_session_that_fails_does_not_keep_the_worker_from_starting(
    start_worker: Callable[..., WorkerClient],
) -> None:
    worker = start_worker(started=False)
    worker.send(Type.SESSION, "bad", "default", "import gone_since", "1", f"{NODE}-1")
    worker.send(Type.SESSION, "good", "default", echo("good"), "1", f"{NODE}-2")
    worker.start()
    assert "session bad could not be replayed" in worker.wait_log("bad")
    assert "No module named 'gone_since'" in str(worker.miss(f"{NODE}-1", "answer:x"))
    assert worker.request("RG.TRIGGER", "good") == [b"yes"]


def test_what_was_unregistered_stays_out_of_a_replay(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(started=False)
    worker.send(Type.SESSION, "s", "default", echo("one") + "\n" + echo("two"), "2", "", f"{NODE}-2")
    worker.start()
    assert worker.request("RG.TRIGGER", "two") == [b"yes"]
    assert str(worker.request("RG.TRIGGER", "one")) == "ERR subcommand not found"
    assert not worker.of(Type.REGISTER)


def test_a_replica_forgets_a_session_whose_last_registration_went(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(role="replica", started=False)
    worker.send(Type.SESSION, "s", "default", echo("one"), "1", f"{NODE}-1")
    worker.start()
    worker.send(Type.SESSION, "s", "default", echo("one"), "1", "")
    worker.execute("")  # a replay takes a moment: the dump below must not overtake it
    deadline = time.monotonic() + 10
    while worker.request("RG.DUMPREGISTRATIONS") and time.monotonic() < deadline:
        pass
    assert worker.request("RG.DUMPREGISTRATIONS") == []


def test_the_commands_of_a_script_have_the_rights_of_its_request(worker: WorkerClient) -> None:
    worker.rights.clear()
    id = worker.ask(Type.REQUEST, "bob", "RG.PYEXECUTE", "execute('get', 'x')")
    worker.reply(id)
    assert worker.rights == [f"r{id}"]


def test_what_a_stored_script_left_running_goes_on_with_the_rights_of_its_session(worker: WorkerClient) -> None:
    code = """
import asyncio
async def later():
    await asyncio.sleep(0.2)
    await runtime.call('get', 'x')
    log('went on')
runCoroutine(later())
GB('CommandReader').register(trigger='left-running', mode='async_local')
"""
    worker.rights.clear()
    assert worker.execute(code, "ID", "lasting") == b"OK"
    worker.wait_log("went on")
    assert worker.rights == ["slasting"]


def test_a_script_is_released_after_its_reply(worker: WorkerClient) -> None:
    id = worker.ask(Type.REQUEST, "default", "RG.PYEXECUTE", "1/0")
    assert isinstance(worker.reply(id), Exception)
    assert worker.wait(lambda f: f.type is Type.RELEASE and f.id == id)


def test_a_session_is_registered_under_the_request_of_its_script(worker: WorkerClient) -> None:
    id = worker.ask(Type.REQUEST, "bob", "RG.PYEXECUTE", "GB('CommandReader').register(trigger='under')")
    worker.reply(id)
    assert worker.wait(lambda f: f.type is Type.REGISTER and f.id == id)


def test_scripts_without_an_id_leave_no_lines_behind_in_the_worker(worker: WorkerClient) -> None:
    count = "[sum(name.startswith('<session') for name in linecache.cache)]"
    script = f"import linecache\nGB('PythonReader').run(lambda: {count})"
    first = worker.execute(script)
    for n in range(3):
        worker.execute(f"x = {n}")
        worker.execute("raise ValueError('no')")
    assert worker.execute(script) == first


SLOW = """
import time
time.sleep(0.5)
GB('CommandReader').map(lambda r: 'yes').register(trigger='slow', mode='async_local')
GB('KeysReader').foreach(lambda r: override_reply('value')).register(
    prefix='s:*', eventTypes=['keymiss'], commands=['get'], mode='async_local')
GB('KeysReader').foreach(lambda r: log('heard ' + r['key'])).register(prefix='e:*', mode='async_local', readValue=False)
"""


def test_what_comes_while_its_session_is_replayed_waits_for_it(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker()
    with worker.together():
        for other in range(3):
            worker.send(Type.SESSION, f"other-{other}", "default", "import time; time.sleep(0.1)", "0")
        worker.send(Type.SESSION, "slow", "default", SLOW, "3", "s-1", "s-2", "s-3")
        triggered = worker.ask(Type.REQUEST, "default", "RG.TRIGGER", "slow")
        missed = worker.ask(Type.MISS, "default", "s-2", "s:1", "GET", "s:1")
        for number in range(3):
            worker.send(Type.EVENT, "s-3", "set", f"e:{number}", "string")
    assert worker.reply(triggered) == [b"yes"]
    assert worker.reply(missed) == b"value"
    assert worker.wait_log("heard e:0")
    assert worker.wait_log("heard e:2")


def test_functions_that_hang_hold_up_no_other_session(worker: WorkerClient) -> None:
    hanging = """
import threading
gate = threading.Event()
async def opened(_):
    gate.set()
GB('CommandReader').map(lambda r: gate.wait()).register(trigger='hangs', mode='async_local')
GB('CommandReader').map(opened).register(trigger='opens', mode='async_local')
"""
    assert worker.execute(hanging) == b"OK"
    assert worker.execute(echo("goes-on")) == b"OK"
    asked = [worker.ask(Type.REQUEST, "default", "RG.TRIGGER", "hangs") for _ in range(8)]
    assert worker.request("RG.TRIGGER", "goes-on") == [b"yes"]
    worker.request("RG.TRIGGER", "opens")
    assert [worker.reply(id) for id in asked] == [[b"True"]] * 8
