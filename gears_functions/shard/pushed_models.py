"""Models that somebody pushed, which every shard shall have: those that this one lacks are looked for.

Clients run them and can't wait for a copy, so a shard looks when it starts, becomes a master, or has another tag.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from redis import ResponseError

from shardqa import keys
from shardqa.errors import ClusterUnavailable
from shardqa.gears_functions.shard import slots
from shardqa.gears_functions.shard.stray_models import LOOK_SECONDS, text
from shardqa.models.pushed import is_pushed
from shardqa.worker.runtime import KeyEvent, Runtime

Obtain = Callable[[str], Awaitable[None]]
LabelOf = Callable[[str], Awaitable[str | None]]
MIGRATES = 500 << 20  # bytes of a model that MIGRATE moves: Redis takes no word above 512 MiB


class PushedModels:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime, obtain: Obtain, label: LabelOf) -> None:
        self._runtime = runtime
        self._obtain = obtain
        self._label = label
        self._completing: asyncio.Task[None] | None = None
        self._complete_as: str | None = None  # the tag under which this shard has all pushed models
        self._logged = ""  # why a pushed model did not come, as it was logged last
        runtime.watch("model:", self._unwatched, self._resync)

    async def _unwatched(self, events: Sequence[KeyEvent]) -> None:
        """Does nothing: what others store or delete is theirs."""

    async def _resync(self, reason: str) -> None:
        self._complete_as = None
        if self._completing is None or self._completing.done():
            self._completing = asyncio.create_task(self._stay_complete())

    async def _stay_complete(self) -> None:
        while True:
            try:
                if self._runtime.role() == "master":
                    await self._complete(self._runtime.hashtag())
            except (ResponseError, ClusterUnavailable) as error:  # as while this shard knows of no slot of its own
                self._runtime.log(f"pushed models can't be looked for yet: {error}", "verbose")
            await asyncio.sleep(LOOK_SECONDS)

    async def _complete(self, own: str) -> None:
        if await self._made_way(own):
            self._complete_as = None
        if own != self._complete_as and await self._copied_all(own):
            self._complete_as = own

    async def _copied_all(self, own: str) -> bool:
        """Copies what this shard lacks; returns whether every shard listed its models and all of them are here now."""
        now = await slots.look(self._runtime)
        if now.moving or not now.begins_with(own):
            return False
        replies = await self._runtime.peers("AI._MODELSCAN")
        replies.append(await self._runtime.call("AI._MODELSCAN"))  # it may hold the only copy, under a former tag
        pairs = [pair for reply in replies if not isinstance(reply, Exception) for pair in reply]
        labels = {text(key): text(label) for key, label in pairs}
        names = {keys.name_of_model(key) for key, label in labels.items() if is_pushed(label)}
        missing = [name for name in sorted(name for name in names if name) if not await self._copied(name)]
        return not missing and not any(isinstance(reply, Exception) for reply in replies)

    async def _copied(self, name: str) -> bool:
        """Returns whether this shard has the model now; logs why it does not."""
        try:
            await self._obtain(name)
        except ClusterUnavailable as error:
            self._runtime.log(f"{name} is to come: {error}", "verbose" if self._logged == str(error) else "warning")
            self._logged = str(error)
            return False
        return True

    async def _made_way(self, own: str) -> bool:
        """Drops models that are too large for MIGRATE, since their slot could not leave else; returns whether any.

        The shard gets them again under its next tag, from another one; a model that no other has stays.
        """
        above = {key: keys.name_of_model(key) for key in self._runtime.models_above(MIGRATES)}
        large = {key: name for key, name in above.items() if name is not None and key == keys.model(name, own)}
        now = await slots.look(self._runtime) if large else slots.ALL
        leaving = [key for key in large if slots.slot_of(key) in now.moving and now.serves(slots.slot_of(key))]
        if not leaving:
            return False
        replies = await self._runtime.peers("AI._MODELSCAN")
        pairs = [pair for reply in replies if not isinstance(reply, Exception) for pair in reply]
        copies = {(keys.name_of_model(text(key)), text(label)) for key, label in pairs}
        count = 0
        for key in leaving:
            label = await self._label(large[key])
            if label is not None and is_pushed(label) and (large[key], label) in copies:
                await self._runtime.call("UNLINK", key)
                self._runtime.log(f"{key} is too large to leave with its slot and is dropped; it is copied anew later")
                count += 1
        return count > 0
