"""Key events: registrations in the order of each key, watches in batches with their resyncs, and cluster peers."""

import contextlib
from collections.abc import Callable

import pytest
from redis import ResponseError

from shardqa.worker import resp
from shardqa.worker.frames import Type
from tests.unit.worker_client import NODE, WorkerClient

WATCH = """
async def changed(events):
    log(f'changed {[(e.event, e.key, e.type) for e in events]}')
async def resync(reason):
    log(f'resync {reason}')
runtime.watch('doc:', changed, resync)
GB('CommandReader').map(lambda r: 'ok').register(trigger='t', mode='async_local')
"""


def event(worker: WorkerClient, target: str, name: str, key: str | bytes, type: str = "hash") -> None:
    worker.send(Type.EVENT, target, name, key, type)


def test_an_event_of_a_key_that_is_gone_has_no_value(worker: WorkerClient) -> None:
    id = worker.register("GB().foreach(lambda r: log(r)).register(prefix='g:*', mode='async_local')")
    event(worker, id, "del", "g:1", "none")
    assert worker.wait_log("g:1") == str({"key": "g:1", "value": None, "type": "empty", "event": "del"})


def test_watched_events_come_in_order_with_resyncs_between(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(role="replica", started=False)
    worker.send(Type.SESSION, "s", "default", WATCH, "1", f"{NODE}-1")
    worker.start()
    assert worker.wait_log("resync start")
    event(worker, "watch", "hset", b"doc:\xff")
    event(worker, "watch", "hset", "other:1")
    assert worker.wait_log("changed") == "changed " + str([("hset", "doc:\udcff", "hash")]).encode(
        "utf-8", "surrogateescape"
    ).decode("utf-8", "replace")
    worker.send(Type.RESYNC, "flush")
    event(worker, "watch", "del", "doc:2", "none")
    assert worker.wait_log("resync") == "resync flush"
    assert "doc:2" in worker.wait_log("changed")


def test_an_upgraded_session_watches_only_once(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker()
    for _ in range(2):
        worker.execute(WATCH, "ID", "watch", "UPGRADE")
        worker.wait_log("resync start")
    event(worker, "watch", "hset", "doc:1")
    worker.wait_log("changed")
    worker.execute("")
    assert [frame.items() for frame in worker.of(Type.WATCH)] == [[b"doc:", b"watch"]]
    with contextlib.suppress(StopIteration):
        raise AssertionError(next(f for f in worker.of(Type.LOG) if b"changed" in f.payload))


def test_a_watch_that_fails_goes_on(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker()
    worker.execute(WATCH.replace("log(f'changed", "1/0 if events[0].event == 'bad' else log(f'changed"))
    worker.wait_log("resync start")
    event(worker, "watch", "bad", "doc:1")
    assert "ZeroDivisionError" in worker.wait_log("failed")
    event(worker, "watch", "good", "doc:1")
    assert worker.wait_log("good")


OTHERS = f"""\
{"c" * 40} 127.0.0.1:2@10002 master - 0 0 1 connected 10923-16383
{"b" * 40} 127.0.0.1:1@10001 master - 0 0 1 connected 0-5460
"""


def slots(words: list[bytes]) -> bytes:
    """CLUSTER NODES of three masters; this node has slots 5461 to 10922."""
    if words[0] == b"CLUSTER":
        return resp.encode(f"{OTHERS}{NODE} :7000@17000 myself,master - 0 0 1 connected 5461-10922\n".encode())
    return resp.encode(["masterauth", ""])


def no_slots(words: list[bytes]) -> bytes:
    return resp.encode(f"{NODE} :7000@17000 myself,master - 0 0 1 connected\n".encode())


def a_replicas_view(words: list[bytes]) -> bytes:
    return resp.encode(f"{OTHERS}{NODE} :7000@17000 myself,slave {'b' * 40} 0 0 1 connected\n".encode())


TAG = "GB('ShardsIDReader').map(lambda id: hashtag()).run(mode='async_local')"


@pytest.mark.parametrize(("view", "tag"), [(slots, b"8M"), (a_replicas_view, b"06S")], ids=["master", "replica"])
def test_the_hashtag_is_of_the_lowest_slot_of_the_shards_master(
    start_worker: Callable[..., WorkerClient], view: Callable[[list[bytes]], bytes], tag: bytes
) -> None:
    worker = start_worker(clustered=True, answer=view)
    assert worker.execute(TAG) == [[tag], []]


def test_a_node_without_slots_has_no_hashtag(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(clustered=True, answer=no_slots)
    assert "owns no slots" in str(worker.execute(TAG))


def test_peers_that_are_away_are_errors_in_their_places(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(clustered=True, answer=slots)
    code = "async def f(r):\n    return [str(x) for x in await runtime.peers('PING')]\n"
    code += "GB('ShardsIDReader').map(f).run(mode='async_local', convertToStr=False)"
    (replies,), _ = worker.execute(code)
    assert [
        b"shard 127.0.0.1:%d did not answer" % port in reply for port, reply in zip((1, 2), replies, strict=True)
    ] == [True, True]


def test_nothing_is_registered_while_a_shard_is_away(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(clustered=True, answer=slots)
    reply = worker.execute("GB('CommandReader').register(trigger='nowhere')")
    assert "nothing was registered, because of shard 127.0.0.1:1" in str(reply)
    assert str(worker.request("RG.TRIGGER", "nowhere")) == "ERR subcommand not found"


def test_a_trigger_says_which_shard_could_not_run_it(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(clustered=True, answer=slots, started=False)
    worker.send(Type.SESSION, "s", "default", "GB('CommandReader').register(trigger='everywhere')", "1", f"{NODE}-1")
    worker.start()
    assert "shard 127.0.0.1:1 did not answer" in str(worker.request("RG.TRIGGER", "everywhere"))


def test_a_loop_that_stands_still_is_broken_up(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(config=("timeout", "1000"))
    id = worker.register(
        "async def f(r):\n    while True: pass\n"
        "GB().map(f).register(prefix='a', commands=['get'], eventTypes=['keymiss'], mode='async_local')"
    )
    reply = worker.miss(id, "a")
    assert isinstance(reply, ResponseError)
    assert "was stopped" in str(reply)
    assert worker.execute("") == b"OK"


def test_statistics_are_sent_when_they_change(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker()
    worker.execute("runtime.stat('answers_us_p50', 12.5)")
    items = worker.wait(lambda f: f.type is Type.STATS and b"answers_us_p50" in f.payload).items()
    assert dict(zip(items[::2], items[1::2], strict=True))[b"answers_us_p50"] == b"12.5"
