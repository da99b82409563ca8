"""Counts the requests of each key over all API processes of a cluster.

The sliding window of two minutes: what came in this one, and of the last one the share that still lies within 60
seconds. A process counts at once what it serves itself, and exchanges counts by Redis every EXCHANGE seconds: a request
costs no round trip, and a key gets at most that long more than it is for. One event loop.
"""

import asyncio
import logging
import math
import time
from dataclasses import dataclass

from redis.exceptions import RedisError

from shardqa.api.connection import Connection
from shardqa.api.faults import TooManyOfKey
from shardqa.engine.api_keys import ApiKey
from shardqa.errors import ShardqaError

EXCHANGE = 1.0  # seconds
MINUTE = 60
HAIR = 1e-6  # seconds that rounding may hide: at the very moment a request is still one too many

log = logging.getLogger("shardqa.api")


@dataclass(slots=True)
class RequestCount:
    minute: int
    unsent: int = 0  # requests of this minute that Redis does not count yet
    sent: int = 0  # those that it counts, of all processes, or that are on their way to it
    before: int = 0  # of the minute before

    def turn(self, minute: int) -> None:
        """Begins the next minute, in which unsent requests of the last count: too many are refused, never too few."""
        if minute != self.minute:
            self.before = self.sent if minute == self.minute + 1 else 0
            self.minute, self.sent = minute, 0

    def send(self, count: int) -> None:
        self.unsent -= count
        self.sent += count

    def within(self, now: float) -> float:
        """Returns about how many requests the last 60 seconds had."""
        return self.before * (1 - now % MINUTE / MINUTE) + self.sent + self.unsent

    def wait(self, limit: int, now: float) -> int:
        """The whole seconds until fewer than `limit` requests lie within 60 seconds, if no more come; at least 1."""
        past, current, left = now % MINUTE, self.sent + self.unsent, limit
        before, until = self.before, 0.0
        if current < limit:
            left -= current
        else:  # this minute's own are too many: they must become the last one's, and fade
            before, until = current, MINUTE - past
            past = 0.0
        enough = MINUTE * (1 - left / before) if before else 0.0  # seconds of a minute after which enough of it is gone
        return math.floor(until + max(0.0, enough - past) + HAIR) + 1


class Allowances:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._counts: dict[str, RequestCount] = {}  # by the key's id
        self._exchanging: asyncio.Task[None] | None = None

    async def take(self, key: ApiKey) -> int:
        """Counts one request of a key that has a limit; returns how many it has left. Raises TooManyOfKey."""
        assert key.per_minute is not None
        if key.id not in self._counts:
            self._counts[key.id] = RequestCount(_minute())
            await self._exchange()
        elif self._exchanging is None or self._exchanging.done():
            self._exchanging = asyncio.create_task(self._exchange_soon())
        count = self._counts.setdefault(key.id, RequestCount(_minute()))
        count.turn(_minute())
        now = time.time()
        if count.within(now) >= key.per_minute:
            wait = count.wait(key.per_minute, now)
            raise TooManyOfKey(f"the key {key.id} is for {key.per_minute:,} requests a minute; wait {wait} s", wait)
        count.unsent += 1
        return max(0, math.floor(key.per_minute - count.within(now)))

    async def _exchange_soon(self) -> None:
        await asyncio.sleep(EXCHANGE)
        await self._exchange()

    async def _exchange(self) -> None:
        """Sends the counts of this process and takes those of all; without Redis this process counts alone."""
        minute = _minute()
        self._counts = {id_: count for id_, count in self._counts.items() if count.minute >= minute - 1}
        amounts = {id_: count.unsent for id_, count in self._counts.items()}
        for id_, count in self._counts.items():
            count.turn(minute)
            count.send(amounts[id_])
        try:
            totals = await self._connection.engine.api_keys.count_requests(minute, amounts)
        except (ShardqaError, RedisError) as error:
            log.warning("requests of keys are counted by this process alone: %s", error)
            return
        for id_, (now, before) in totals.items():
            if (known := self._counts.get(id_)) is not None and known.minute == minute:
                known.sent, known.before = now, before


def _minute() -> int:
    return int(time.time()) // MINUTE
