"""Records between shards: what waits is bounded on both sides, and a full inbox holds up whoever sends to it."""

import asyncio
from typing import Any

from shardqa.worker.gears.cluster.exchange import BATCH, FULL, ROOM, TAKEN, Far, Inbox, Near


async def turns(number: int = 50) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def filled(near: Near, batches: int) -> None:
    for number in range(batches):
        await near.put([number] * BATCH)
    await near.close()


async def test_an_inbox_of_this_shard_holds_up_its_sender_while_it_is_full() -> None:
    inbox = Inbox(["here"])
    sending = asyncio.create_task(filled(Near(inbox, "here"), 20))
    await turns()
    assert inbox.is_full()
    assert not sending.done()
    taken = [len(batch) async for batch in inbox.batches()]
    await sending
    assert taken == [BATCH] * 20


class Shard:
    """A shard that takes batches while it has room."""

    def __init__(self) -> None:
        self.inbox = Inbox(["here"])
        self.offered: list[int] = []
        self.refused = asyncio.Event()

    async def take(self, last: bool, records: list[Any]) -> int:
        self.offered.append(len(records))
        if self.inbox.is_full():
            self.refused.set()
            return FULL
        self.inbox.put("here", records, last)
        return TAKEN


async def test_a_full_shard_holds_up_who_sends_to_it_and_loses_nothing() -> None:
    shard, put = Shard(), list[int]()
    far = Far(shard.take, lambda: False, lambda error: None)

    async def send() -> None:
        for number in range(20 * BATCH):
            await far.put([number])
            put.append(number)
        await far.close()

    sending = asyncio.create_task(send())
    await shard.refused.wait()
    await turns()
    assert not sending.done()
    assert len(put) <= ROOM + 2 * BATCH  # beside what the inbox has: a batch on its way, and the next one
    received = [number async for batch in shard.inbox.batches() for number in batch]
    await sending
    assert received == list(range(20 * BATCH))


async def test_nothing_more_goes_to_a_shard_that_has_left() -> None:
    shard, lost = Shard(), list[bool]()
    far = Far(shard.take, lambda: bool(lost), lambda error: None)
    await far.put([0] * BATCH)
    lost.append(True)
    await far.put([1] * BATCH)
    await far.close()
    assert len(shard.offered) <= 1
