"""Turns of key events: those of short functions share one, and each is run and counted as if it were alone."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from shardqa.worker import frames
from shardqa.worker.frames import Type
from tests.unit.worker_client import PATIENCE, WorkerClient

HOLDING = """
import asyncio
opened, seen = set(), []
async def f(r):
    seen.append(r['event'])
    log(f"began {r['key']}")
    while r['key'] not in opened: await asyncio.sleep(0.001)
async def open(r):
    opened.update(r[1:])
async def tell(r):
    return [event for event in seen if event.startswith('of k')]
GB('CommandReader').foreach(open).register(trigger='opens', mode='async_local')
GB('CommandReader').map(tell).register(trigger='tells', mode='async_local')
GB().foreach(f).register(prefix='k:*', readValue=False, mode='async_local')
"""
NOTING = """
seen = []
def f(r):
    {body}
    seen.append(r['key'])
    if len(seen) == {count}: log(f'all {{len(set(seen))}}')
GB().foreach(f).register(prefix='{prefix}:*', readValue={read}, mode='async_local')
"""


def noting(prefix: str, count: int, body: str = "pass", read: bool = False) -> str:
    return NOTING.format(prefix=prefix, count=count, body=body, read=read)


def event(worker: WorkerClient, target: str, name: str, key: str) -> None:
    worker.send(Type.EVENT, target, name, key, "hash")


def at_once(worker: WorkerClient, target: str, keys: Iterable[str]) -> None:
    """An event of each key, written together."""
    items = ([target.encode(), b"hset", key.encode(), b"hash"] for key in keys)
    worker.link.send_frame(b"".join(frames.encode(Type.EVENT, 0, frames.pack(each)) for each in items))


def of_events(worker: WorkerClient, prefix: str) -> tuple[str, dict[str, Any]]:
    """(id, its numbers) of the registration for keys of this prefix."""
    for dump in worker.request("RG.DUMPREGISTRATIONS", "WITH", "STATISTICS"):
        flat = dump[7] + dump[-1]
        found = {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
        if f"{prefix}:*".encode() in found["args"]:
            return dump[1].decode(), found
    raise AssertionError(f"nothing is registered for {prefix}")


def once_run(worker: WorkerClient, prefix: str, runs: int) -> dict[str, Any]:
    """Returns its numbers, once so many have ended."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = of_events(worker, prefix)[1]
        if found["numSuccess"] + found["numFailures"] + found["numAborted"] == runs and found["queue"] == 0:
            return found
    raise AssertionError(f"{prefix}: {found}")


def test_events_share_turns_and_none_is_lost_or_doubled(worker: WorkerClient) -> None:
    worker.answer = lambda words: b"*2\r\n$1\r\nf\r\n$%d\r\n%s\r\n" % (len(words[1]), words[1])
    id = worker.register(noting("t", 1000, body="assert r['value'] == {'f': r['key']}", read=True))
    worker.rights.clear()
    at_once(worker, id, (f"t:{n:03}" for n in range(1000)))
    assert worker.wait_log("all") == "all 1000"
    assert len(worker.rights) < 500  # CALL frames that read values
    assert once_run(worker, "t", 1000)["numSuccess"] == 1000


def test_an_event_that_fails_fails_alone(worker: WorkerClient) -> None:
    id = worker.register(noting("x", 295, body="1 / (int(r['key'][2:]) % 60)"))
    at_once(worker, id, (f"x:{n}" for n in range(300)))
    assert worker.wait_log("all")
    found = once_run(worker, "x", 300)
    assert (found["numSuccess"], found["numFailures"]) == (295, 5)
    assert b"ZeroDivisionError" in found["lastError"]


def test_an_event_that_never_ends_is_stopped_alone(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(config=("timeout", "1000"))
    worker.request("RG.CONFIGSET", "ExecutionMaxIdleTime", "1000")
    id = worker.register(noting("s", 299, body="while r['key'] == 's:200': pass"))
    at_once(worker, id, (f"s:{n}" for n in range(300)))
    assert worker.wait_log("all")
    found = once_run(worker, "s", 300)
    assert (found["numSuccess"], found["numFailures"], found["numAborted"]) == (299, 1, 0)
    assert b"TIMEOUT the function was stopped" in found["lastError"]


LAZY = """
import time
made, loaded = [], None
def f(r):
    global loaded
    if loaded is None:
        time.sleep(0.2)
        made.append(1)
        loaded = True
    log(f'made {len(made)}')
"""


@pytest.mark.parametrize("awaited", ["", ".map(g)"], ids=["plain", "around what awaits"])
def test_a_global_that_events_make_when_they_need_it_is_made_once(worker: WorkerClient, awaited: str) -> None:
    code = f"{LAZY}async def g(r):\n    return r\nGB(){awaited}.foreach(f)"
    id = worker.register(f"{code}.register(prefix='l:*', readValue=False, mode='async_local')")
    at_once(worker, id, (f"l:{n}" for n in range(6)))
    assert once_run(worker, "l", 6)["numSuccess"] == 6
    assert worker.wait_log("made") == "made 1"
    assert not [frame for frame in worker.of(Type.LOG) if b"made 2" in frame.payload]


def test_events_run_side_by_side_where_their_registration_allows_it(worker: WorkerClient) -> None:
    code = "import threading\nboth = threading.Barrier(2, timeout=60)\ndef f(r):\n    both.wait()\n"
    id = worker.register(code + "GB().foreach(f).register('c:*', readValue=False, mode='async_local', concurrency=2)")
    at_once(worker, id, ("c:1", "c:2"))
    assert once_run(worker, "c", 2)["numSuccess"] == 2


@pytest.mark.parametrize(("own", "failures"), [("", 1), (", ExecutionMaxIdleTime=10000", 0)])
def test_a_first_run_may_take_longer_than_later_ones_unless_its_registration_moves_its_deadline(
    start_worker: Callable[..., WorkerClient], own: str, failures: int
) -> None:
    worker = start_worker(config=("timeout", "500"))
    worker.request("RG.CONFIGSET", "ExecutionMaxIdleTime", "1")
    code = "import time\ndef f(r):\n    until = time.monotonic() + 1.5\n    while time.monotonic() < until: pass\n"
    id = worker.register(f"{code}GB().foreach(f).register(prefix='o:*', readValue=False, mode='async_local'{own})")
    at_once(worker, id, ("o:1", "o:2"))
    found = once_run(worker, "o", 2)
    assert (found["numSuccess"], found["numFailures"]) == (2 - failures, failures)


def test_what_an_event_gives_to_await_is_awaited_and_holds_its_key(worker: WorkerClient) -> None:
    code = (
        "import asyncio\nseen = []\nasync def later(r):\n    await asyncio.sleep(0.01)\n    seen.append(r['event'])\n"
    )
    code += "    if len(seen) == 20: log(f'all {seen}')\ndef f(r):\n    return later(r)\n"
    id = worker.register(code + "GB().foreach(f).register(prefix='w:*', readValue=False, mode='async_local')")
    for n in range(20):
        event(worker, id, str(n), "w:1")
    assert worker.wait_log("all") == f"all {[str(n) for n in range(20)]}"
    assert once_run(worker, "w", 20)["numSuccess"] == 20


def test_events_of_one_key_run_in_order_though_it_was_free_meanwhile(worker: WorkerClient) -> None:
    """Two wait for a turn; the third comes while the first runs and must not overtake the second."""
    assert worker.execute(HOLDING) == b"OK"
    id = of_events(worker, "k")[0]
    for n in range(16):
        event(worker, id, "set", f"k:{n}")
        worker.wait_log(f"began k:{n}")
    event(worker, id, "of k 1", "k:k")
    event(worker, id, "of k 2", "k:k")
    worker.request("RG.TRIGGER", "opens", "k:0")
    worker.wait_log("began k:k")
    event(worker, id, "of k 3", "k:k")
    worker.request("RG.TRIGGER", "opens", "k:k", *(f"k:{n}" for n in range(16)))
    once_run(worker, "k", 19)
    assert worker.request("RG.TRIGGER", "tells") == [b"['of k 1', 'of k 2', 'of k 3']"]


def test_events_that_wait_while_the_registration_goes_are_dropped(worker: WorkerClient) -> None:
    id = worker.register(noting("g", 1))
    with worker.together():
        event(worker, id, "set", "g:1")
        worker.send(Type.FORGET, id)
        event(worker, id, "set", "g:2")
    worker.request("RG.PYSTATS")
    assert worker.execute("") == b"OK"
    assert len([f for f in worker.of(Type.LOG) if b"g:2" in f.payload]) == 0


def test_frames_between_events_keep_their_place(worker: WorkerClient) -> None:
    code = "import asyncio\nseen = []\nasync def f(r):\n    seen.append(r['event'])\n"
    code += "async def tell(r):\n    await asyncio.sleep(0.1)\n    return seen\n"
    code += "GB('CommandReader').map(tell).register(trigger='between', mode='async_local')\n"
    code += "GB().foreach(f).register(prefix='b:*', readValue=False, mode='async_local')"
    assert worker.execute(code) == b"OK"
    id = of_events(worker, "b")[0]
    with worker.together():
        event(worker, id, "first", "b:1")
        asked = worker.ask(Type.REQUEST, "default", "RG.TRIGGER", "between")
    assert worker.reply(asked) == [b"['first']"]
