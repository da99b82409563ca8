"""The shard's own copy of a model: under the shard's tag, sent by another shard where it is missing.

    RG.TRIGGER Push <model> <tag of the shard that shall send> <key>

A shard's tag changes when its lowest slot moves; its copy then lies under a key that is gone or elsewhere. It is sent,
not fetched: storing a model blocks until the worker has loaded it, which a function's own commands must not: it
takes an ordinary connection, and only those to other shards are at hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from redis import ResponseError

from shardqa import keys
from shardqa.errors import ClusterUnavailable
from shardqa.gears_functions import arguments
from shardqa.models.scoring import Scoring, shipped_scoring

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.runtime import Runtime

PAUSE = 5.0  # seconds after a fetch that found nothing before the peers are asked for this model again
MAX_MISSED = 100  # names of models remembered as missing; a client may send any


class Copies:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._fetching = asyncio.Lock()  # a model is megabytes: one fetch at a time
        self._not_before: dict[str, float] = {}  # model that no shard had -> loop time of its next fetch

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

    async def scoring(self, model: str) -> Scoring | None:
        """How this shard's copy is scored, the shipped way where whoever stored it did not say; None: there is none."""
        try:
            reply = await self._runtime.call("AI.MODELGET", keys.model(model, self._runtime.hashtag()), "META")
        except ResponseError:
            return None
        return Scoring.of_label(_meta(reply)[b"tag"].decode("utf-8", "replace")) or shipped_scoring()

    async def _fetch(self, model: str, key: str) -> None:
        async with self._fetching:
            loop = asyncio.get_running_loop()
            if await self._runtime.call("EXISTS", key):
                return
            if loop.time() >= self._not_before.get(model, 0.0):
                for tag in await self._tags():
                    if await self._pushed(model, tag, key):
                        self._runtime.log(f"model {model!r} was copied from the shard {{{tag}}}")
                        return
                if len(self._not_before) >= MAX_MISSED:
                    self._not_before.clear()
                self._not_before[model] = loop.time() + PAUSE
        raise ClusterUnavailable(
            f"no shard has the model {model!r}; run 'shardqa prepare', or start the cluster with 'shardqa up'"
        )

    async def _tags(self) -> list[str]:
        """Of the other shards."""
        replies = await self._runtime.peers("RG.TRIGGER", "Corpora")
        return [str(orjson.loads(reply[0])["tag"]) for reply in replies if not isinstance(reply, Exception)]

    async def _pushed(self, model: str, tag: str, key: str) -> bool:
        """Asks one shard to send the model; whether it came."""
        replies = await self._runtime.peers("RG.TRIGGER", "Push", model, tag, key)
        for reply in replies:
            if isinstance(reply, Exception):
                self._runtime.log(f"model {model!r} was not copied from {{{tag}}}: {reply}", "verbose")
        return bool(await self._runtime.call("EXISTS", key))

    async def push(self, record: Record) -> str:
        """Stores this shard's model under another shard's key, if this is the shard that was named; 1 or 0."""
        model, tag, key = arguments.words(record, "Push <model> <tag> <key>", 3, 3)
        ours = keys.model(model, self._runtime.hashtag())
        if tag != self._runtime.hashtag() or not key.startswith(keys.model(model, "")[:-1]):
            return "0"
        if not await self._runtime.call("EXISTS", ours):
            return "0"
        reply = await self._runtime.call("AI.MODELGET", ours, "META", "BLOB")
        meta = _meta(reply)
        parts = meta[b"blob"] if isinstance(meta[b"blob"], list) else [meta[b"blob"]]
        # To all others: the one that owns the key stores it, the rest say that it is not theirs.
        command = ("AI.MODELSTORE", key, meta[b"backend"], meta[b"device"], "TAG", meta[b"tag"], *_batching(meta))
        command = (*command, "BLOB", *parts)
        return str(sum(1 for stored in await self._runtime.peers(*command) if not isinstance(stored, Exception)))


def _meta(reply: list[Any]) -> dict[bytes, Any]:
    """AI.MODELGET's names and values."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _batching(meta: Mapping[bytes, Any]) -> list[Any]:
    """How the model was told to batch, as words of AI.MODELSTORE; a zero is left out, as it is by default."""
    names = ("BATCHSIZE", "MINBATCHSIZE", "MINBATCHTIMEOUT")
    return [word for name in names if (value := meta[name.lower().encode()]) for word in (name, value)]
