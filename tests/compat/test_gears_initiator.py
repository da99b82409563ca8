"""The worker that began a cluster-wide execution is killed in each of its phases: nothing hangs, nothing stays."""

import threading

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import send
from tests.nodes import wait_until
from tests.workers import kill_worker, ready_worker

HELD = """
import asyncio
async def hold(*record):
    execute('SET', 'held:{' + hashtag() + '}', 'x')
    await asyncio.sleep(1000)
"""
PHASES = {
    "reading": "GB('ShardsIDReader').map(hold).run()",
    "folding before the shuffle": "GB('ShardsIDReader').aggregateby(lambda id: 'x', 0, hold, hold).run()",
    "after the shuffle": "GB('ShardsIDReader').repartition(lambda id: id).map(hold).run()",
    "grouping": "GB('ShardsIDReader').groupby(lambda id: id, hold).run()",
    "after the collection": "GB('ShardsIDReader').collect().map(hold).run()",
}


def marks(shard: Redis) -> list[str]:
    """Keys that a function leaves when it has come to where it waits."""
    return [str(key) for key in shard.keys("held:*")]


def runs(shard: Redis) -> bool:
    return any(entry[3] == "running" for entry in send(shard, "RG.DUMPEXECUTIONS"))


@pytest.mark.parametrize(
    ("phase", "words"), [*((phase, ()) for phase in PHASES), ("reading", ("UNBLOCKING",))], ids=lambda value: str(value)
)
def test_an_execution_ends_on_all_shards_with_its_initiator(
    shards: list[Redis], phase: str, words: tuple[str, ...]
) -> None:
    initiator, *others = shards
    replies: list[str] = []

    def ask() -> None:
        try:
            replies.append(str(send(initiator, "RG.PYEXECUTE", HELD + PHASES[phase], *words)))
        except ResponseError as error:
            replies.append(str(error))

    client = threading.Thread(target=ask)
    client.start()
    wait_until(lambda: any(map(marks, shards)), f"it is {phase}")
    pid = kill_worker(initiator)
    client.join(60)
    assert len(replies) == 1
    assert ("worker" in replies[0]) is (not words)
    wait_until(lambda: not any(map(runs, others)), "the other shards have ended their parts", 60)
    ready_worker(initiator, {pid})
    assert not runs(initiator)
    assert send(initiator, "RG.PYEXECUTE", "GB('ShardsIDReader').count().run()") == [["3"], []]
    for shard in shards:
        for key in marks(shard):
            shard.delete(key)
