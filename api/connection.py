"""The app's way to its cluster: connects in the background for as long as it takes, so the API starts without one.

Owned by the app's lifespan; everything runs on the event loop's thread.
"""

import asyncio
import contextlib
import logging
import time

from redis.exceptions import RedisError

from shardqa.api.metrics import Metrics
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable, ShardqaError

FIRST_WAIT = 2.0  # seconds that a start waits for the cluster, so that the first request rarely meets 503
FIRST_PAUSE = 0.2  # seconds between the first two attempts; doubles up to
LONGEST_PAUSE = 5.0
FRESH = 1.0  # seconds for which a look at the cluster's readiness serves every asker

log = logging.getLogger("shardqa.api")


class Connection:
    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self._engine: Engine | None = None
        self._problem = f"the cluster at {settings.redis} was not reached yet"
        self._task: asyncio.Task[None] | None = None
        self._look = asyncio.Lock()  # one look at the readiness at a time
        self._looked = float("-inf")  # monotonic seconds of the last look
        self._seen: tuple[bool, list[str]] = (False, [])

    @property
    def engine(self) -> Engine:
        """The connected engine. Raises ClusterUnavailable with the reason of the last attempt."""
        if self._engine is None:
            raise ClusterUnavailable(self._problem)
        return self._engine

    @property
    def connected(self) -> Engine | None:
        """The engine, or None before the cluster was reached."""
        return self._engine

    async def open(self) -> None:
        """Starts connecting and waits a moment for the first success."""
        self._task = asyncio.create_task(self._connect(), name="connect to the cluster")
        await asyncio.wait({self._task}, timeout=FIRST_WAIT)

    async def close(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._engine is not None:
            await self._engine.close()

    async def readiness(self) -> tuple[bool, list[str]]:
        """Returns (whether some shard can answer, what is missing); asks the shards once a second at most."""
        if self._engine is None:
            return False, [self._problem]
        async with self._look:
            if time.monotonic() - self._looked > FRESH:
                self._seen = await self._ask_shards(self._engine)
                self._looked = time.monotonic()
        return self._seen

    async def _ask_shards(self, engine: Engine) -> tuple[bool, list[str]]:
        try:
            return await engine.cluster.readiness()
        except (ShardqaError, RedisError, OSError) as error:
            return False, [str(error)]

    async def _connect(self) -> None:
        pause = FIRST_PAUSE
        while self._engine is None:
            try:
                self._engine = await Engine.connect(self.settings)
            except (ShardqaError, RedisError, OSError) as error:
                self._tell(error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
        self.metrics.connected.set(1)
        log.info("connected to the cluster at %s", self.settings.redis)

    def _tell(self, error: Exception) -> None:
        problem = str(error) if isinstance(error, ShardqaError) else f"the cluster at {self.settings.redis}: {error}"
        if problem != self._problem:
            log.warning("%s", problem)
        self._problem = problem
