"""Follows the epoch of each corpus over pub/sub.

One task of the engine's loop owns the subscription. While it stands, the epochs known here are current and a
repeated question costs no network at all; while it is down (`following` is false) the engine reads epochs afresh
for every question, so that an answer is never older than the text.

Redis promises no delivery: the cluster bus drops messages while a link between nodes is down, and a frozen node keeps
its connections open. So the connection is tried when it is silent, and what is known is read again after a while.
"""

import asyncio
import itertools
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeAlias

from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError, RedisClusterException, RedisError

from shardqa import keys
from shardqa.engine.connections import Shards

STOP_SECONDS = 0.1  # between attempts to cancel the subscription's task
RETRY_SECONDS = 1.0  # between attempts to subscribe again
SILENCE_SECONDS = 2.0  # without a message before the node is pinged, and again before it is given up
KNOWN_SECONDS = 60.0  # for which epochs are believed without being read again

PartEpochs: TypeAlias = dict[tuple[str, str], int]  # by corpus and tag


@dataclass(slots=True, eq=False)  # each is itself: several of one corpus are under way at once
class EpochReading:
    """Epochs of a corpus being read from all shards: what is announced meanwhile may be newer than what is read."""

    corpus: str
    is_followed: bool  # the subscription stood when it began, and has stood since
    announced: dict[str, int] = field(default_factory=dict)  # tag -> epoch


@dataclass(slots=True)
class _Known:
    epochs: dict[str, int]  # by tag
    until: float  # monotonic seconds


class Epochs:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._known: dict[str, _Known] = {}  # by corpus
        self._readings: list[EpochReading] = []  # those under way
        self._task: asyncio.Task[None] | None = None
        self._changes = 0  # announcements, and losses of the subscription
        self.following = False  # the subscription stands

    def start(self) -> None:
        assert self._task is None, "started twice"
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        while self._task is not None and not self._task.done():
            self._task.cancel()  # again and again: redis-py's reads with a timeout may swallow a cancellation
            await asyncio.wait([self._task], timeout=STOP_SECONDS)

    def known(self, corpus: str) -> dict[str, int] | None:
        """The epoch of every shard by its tag, or None when they must be read afresh."""
        known = self._known.get(corpus)
        return known.epochs if self.following and known is not None and monotonic() < known.until else None

    def known_of(self, corpora: Iterable[str]) -> PartEpochs | None:
        """The epochs of several corpora, or None when those of one must be read afresh."""
        every = {corpus: self.known(corpus) for corpus in corpora}
        if None in every.values():
            return None
        return {(corpus, tag): epoch for corpus, own in every.items() for tag, epoch in (own or {}).items()}

    def moment(self) -> int | None:
        """Returns another number after every change of any corpus; None while changes may be missed."""
        return self._changes if self.following else None

    @contextmanager
    def reading(self, corpus: str) -> Iterator[EpochReading]:
        """Begins before the shards are asked for their epochs; `learn` takes it with what they said."""
        reading = EpochReading(corpus, self.following)
        self._readings.append(reading)
        try:
            yield reading
        finally:
            self._readings.remove(reading)

    @contextmanager
    def readings(self, corpora: Iterable[str]) -> Iterator[list[EpochReading]]:
        """Begins a reading of each corpus."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.reading(corpus)) for corpus in corpora]

    def learn_of(self, readings: Iterable[EpochReading], epochs: PartEpochs) -> None:
        for reading in readings:
            self.learn(reading, {tag: epoch for (corpus, tag), epoch in epochs.items() if corpus == reading.corpus})

    def learn(self, reading: EpochReading, epochs: dict[str, int]) -> None:
        """Takes all shards' epochs, as just read: replaces what was known (tags change when slots move)."""
        if not reading.is_followed:
            return  # an announcement may have been missed since a shard was asked
        current = {tag: max(epoch, reading.announced.get(tag, 0)) for tag, epoch in epochs.items()}
        self._known[reading.corpus] = _Known({**reading.announced, **current}, monotonic() + KNOWN_SECONDS)

    def announce(self, corpus: str, tag: str, epoch: int) -> None:
        """Notes that one shard's part of a corpus changed."""
        self._changes += 1
        for reading in self._readings:
            if reading.corpus == corpus:
                reading.announced[tag] = max(epoch, reading.announced.get(tag, 0))
        belief = self._known.get(corpus)
        if belief is not None:
            belief.epochs[tag] = max(epoch, belief.epochs.get(tag, 0))

    async def _follow(self) -> None:
        for attempt in itertools.count():
            client = self._shards.subscriber(attempt)
            try:
                async with client.pubsub() as channel:
                    await channel.subscribe(keys.EPOCH_CHANNEL)
                    await self._listen(channel)
            except (RedisError, RedisClusterException, OSError):
                pass  # the node is gone; another is tried below
            finally:
                self._lose()
                await client.aclose()
            self._shards.refresh()
            await asyncio.sleep(RETRY_SECONDS)

    async def _listen(self, channel: PubSub) -> None:
        """Listens until the node is gone or silent, even to PING. Raises what the connection raises."""
        is_pinged = False
        while True:
            message = await channel.get_message(timeout=SILENCE_SECONDS)
            if message is not None:
                is_pinged = False
                self._hear(message)
            elif is_pinged:
                raise ConnectionError("the node keeps the connection open and says nothing")
            else:
                await channel.ping()
                is_pinged = True

    def _lose(self) -> None:
        """Forgets all epochs: what is announced from now on is missed."""
        self.following = False
        self._changes += 1
        self._known.clear()
        for reading in self._readings:
            reading.is_followed = False

    def _hear(self, message: dict[str, object]) -> None:
        if message["type"] == "subscribe":
            self.following = True
        data = message["data"]
        if message["type"] != "message" or not isinstance(data, bytes):
            return
        parts = data.decode("utf-8", "replace").split(" ")
        if len(parts) == 3 and parts[2].isdigit():
            self.announce(parts[0], parts[1], int(parts[2]))
