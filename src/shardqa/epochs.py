"""Which state each corpus is in, followed over pub/sub.

One task of the engine's loop owns the subscription. While it stands, the epochs known here are current and a
repeated question costs no network at all; while it is down (`following` is false) the engine reads epochs afresh
for every question, so that an answer is never older than the text.
"""

import asyncio

from redis.exceptions import RedisError

from shardqa import keys
from shardqa.shards import Shards

STOP_SECONDS = 0.1  # between attempts to cancel the subscription's task
RETRY_SECONDS = 1.0  # between attempts to subscribe again


class Epochs:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._known: dict[str, dict[str, int]] = {}  # corpus -> tag -> epoch
        self._task: asyncio.Task[None] | None = None
        self.following = False  # the subscription stands

    def start(self) -> None:
        assert self._task is None, "started twice"
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        while self._task is not None and not self._task.done():
            self._task.cancel()  # again and again: redis-py's reads with a timeout may swallow a cancellation
            await asyncio.wait([self._task], timeout=STOP_SECONDS)

    def known(self, corpus: str) -> dict[str, int] | None:
        """tag -> epoch of every shard, or None when they must be read afresh."""
        return self._known.get(corpus) if self.following else None

    def learn(self, corpus: str, epochs: dict[str, int]) -> None:
        """All shards' epochs, as just read: replaces what was known (tags change when slots move)."""
        self._known[corpus] = dict(epochs)

    def announce(self, corpus: str, tag: str, epoch: int) -> None:
        """One shard's part changed."""
        known = self._known.get(corpus)
        if known is not None:
            known[tag] = max(epoch, known.get(tag, 0))

    async def _follow(self) -> None:
        while True:
            client = self._shards.subscriber()
            try:
                async with client.pubsub() as channel:
                    await channel.subscribe(keys.EPOCH_CHANNEL)
                    await channel.get_message(timeout=RETRY_SECONDS)  # the confirmation
                    self._known.clear()  # whatever was announced meanwhile was missed
                    self.following = True
                    async for message in channel.listen():
                        self._hear(message["data"])
            except (RedisError, OSError):
                pass  # the node is gone; another is tried below
            finally:
                self.following = False
                await client.aclose()
            self._shards.refresh()
            await asyncio.sleep(RETRY_SECONDS)

    def _hear(self, data: object) -> None:
        if not isinstance(data, bytes):
            return
        parts = data.decode("utf-8", "replace").split(" ")
        if len(parts) == 3 and parts[2].isdigit():
            self.announce(parts[0], parts[1], int(parts[2]))
