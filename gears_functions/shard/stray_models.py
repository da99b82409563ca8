"""Copies of models that came with moved slots: each is dropped once its slot has settled and the shard has its own."""

import asyncio

from redis import ResponseError

from shardqa import keys
from shardqa.gears_functions.shard import slots
from shardqa.models.pushed import is_pushed
from shardqa.models.scoring import Scoring
from shardqa.worker.runtime import Runtime

LOOK_SECONDS = 2.0  # between two looks
ATTEMPTS = 60


class StrayModels:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tidying: asyncio.Task[None] | None = None
        self._has_arrived = False  # a copy, since tidying looked last

    def look_soon(self) -> None:
        self._has_arrived = True
        if self._tidying is None or self._tidying.done():
            self._tidying = asyncio.create_task(self._tidy())

    async def _tidy(self) -> None:
        for _ in range(ATTEMPTS):
            await asyncio.sleep(LOOK_SECONDS)
            self._has_arrived = False
            try:
                is_tidy = self._runtime.role() != "master" or await self._drop_strays()
                if is_tidy and not self._has_arrived:
                    return
            except ResponseError as error:  # this shard has no slots now, or Redis refuses for a while
                self._runtime.log(f"copies of models can't be looked at yet: {error}", "verbose")

    async def _drop_strays(self) -> bool:
        """Drops other shards' copies of what this shard has; returns whether none is left.

        Only readers that were stored with their scoring, and pushed models: whatever else lies under such a key is its
        owner's.
        """
        own, now = self._runtime.hashtag(), await slots.look(self._runtime)
        if now.moving or not now.begins_with(own):
            return False  # the tag is about to change, and with it which copy is this shard's
        reply = await self._runtime.call("AI._MODELSCAN")
        labels = {text(key): text(label) for key, label in reply}
        strays = {
            key: name
            for key, label in labels.items()
            if (name := keys.name_of_model(key)) and key != keys.model(name, own) and is_ours(label)
        }
        spare = [key for key, name in strays.items() if keys.model(name, own) in labels]
        for key in spare:
            await self._runtime.call("UNLINK", key)
            self._runtime.log(f"{key} came with its slot and is dropped: this shard has a copy of its own")
        return len(spare) == len(strays)  # of the others this shard's own is still to come


def is_ours(label: str) -> bool:
    return is_pushed(label) or Scoring.of_label(label) is not None


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
