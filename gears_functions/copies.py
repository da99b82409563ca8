"""The shard's own copy of a model: under the shard's tag, fetched from another shard where it is missing.

A shard's tag changes when its lowest slot moves; its copy then lies under a key that is gone or elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from redis import ResponseError

from shardqa import keys
from shardqa.errors import ClusterUnavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardqa.gears_functions.runtime import Runtime

PAUSE = 5.0  # seconds after a fetch that found nothing before the peers are asked again


class Copies:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._fetching = asyncio.Lock()  # a model is megabytes: one fetch at a time
        self._not_before = 0.0  # loop time of the next fetch

    async def run(self, model: str, inputs: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Runs a model on this shard. Raises ClusterUnavailable when no shard has it."""
        key = keys.model(model, self._runtime.hashtag())
        try:
            return await self._runtime.run_model(key, inputs, outputs)
        except ResponseError:
            if await self._runtime.call("EXISTS", key):
                raise
        await self._fetch(model, key)
        return await self._runtime.run_model(key, inputs, outputs)

    async def _fetch(self, model: str, key: str) -> None:
        async with self._fetching:
            loop = asyncio.get_running_loop()
            if await self._runtime.call("EXISTS", key):
                return
            if loop.time() >= self._not_before:
                for tag in await self._tags():
                    if await self._copy(keys.model(model, tag), key):
                        self._runtime.log(f"model {model!r} was copied from the shard {{{tag}}}")
                        return
                self._not_before = loop.time() + PAUSE
        raise ClusterUnavailable(
            f"no shard has the model {model!r}; run 'shardqa models push', or start the cluster with 'shardqa up'"
        )

    async def _tags(self) -> list[str]:
        """Of the other shards."""
        replies = await self._runtime.peers("RG.TRIGGER", "Corpora")
        return [str(orjson.loads(reply[0])["tag"]) for reply in replies if not isinstance(reply, Exception)]

    async def _copy(self, theirs: str, ours: str) -> bool:
        for reply in await self._runtime.peers("AI.MODELGET", theirs, "META", "BLOB"):
            if isinstance(reply, Exception):
                continue  # all but one say that the key is not theirs
            meta = dict(zip(reply[::2], reply[1::2], strict=True))
            blob = meta[b"blob"]
            parts = blob if isinstance(blob, list) else [blob]
            name = (meta[b"backend"], meta[b"device"], "TAG", meta[b"tag"])
            await self._runtime.call("AI.MODELSTORE", ours, *name, "BLOB", *parts)
            return True
        return False
