"""The shard's own copy of a model: under the shard's tag, sent by another shard where it is missing.

    RG.TRIGGER Push <model> <tag of the shard that shall send> <key>

A shard's tag changes when its lowest slot moves; its copy then lies under a key that is gone or elsewhere. It is sent,
not fetched: storing a model blocks until the worker has loaded it, which a function's own commands must not: it
takes an ordinary connection, and only those to other shards are at hand. Where the slot went, a second copy arrives,
which nobody uses (stray_models.py). A reader is sent for when a question needs it, a model that somebody pushed before
(pushed_models.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from numpy.typing import NDArray
from redis import ResponseError

from shardqa import keys
from shardqa.description import ShardDescription
from shardqa.errors import ClusterUnavailable, WritesRefused
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.pushed_models import PushedModels
from shardqa.gears_functions.shard.stray_models import StrayModels, is_ours, text
from shardqa.gears_functions.writes import refusal
from shardqa.models.scoring import Scoring, shipped_scoring
from shardqa.transient import is_between_shards, write_refusal
from shardqa.worker.runtime import Runtime

T = TypeVar("T")
ARRIVING_SECONDS = 5.0  # for which a run waits for a copy whose slot is on its way, or that is being loaded
LOOK_SECONDS = 0.05  # between looks whether it is there
RETRY_SECONDS = 5.0  # seconds after a fetch that found nothing before the peers are asked for this model again
REFUSED_PAUSES = 10  # times as long as the fetch took, where it was refused: a large one is sent whole before that
ANSWER_SECONDS = 5.0  # after which a shard that sends a model says that it does
NOT_LOADED = "model key is empty"  # how a run says that the worker has no such model
STORED, NOT_HERE, ON_ITS_WAY = "1", "0", "2"  # replies of Push
LABELS = 8  # whose scoring is kept, parsed
MAX_MISSED = 100  # names of models remembered as missing; a client may send any


class ModelSync:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._fetching = asyncio.Lock()  # a model is megabytes: one fetch at a time
        self._missed: dict[str, tuple[float, str]] = {}  # model that did not come -> (loop time of its next fetch, why)
        self._sending: dict[str, asyncio.Task[None]] = {}  # by the key that it is stored under
        self._strays = StrayModels(runtime)
        self._pushed = PushedModels(runtime, self.obtain, self.label)

    async def run(
        self, model: str, inputs: Mapping[str, NDArray[Any]], outputs: Sequence[str]
    ) -> dict[str, NDArray[Any]]:
        """Runs a model on this shard, as `Runtime.run_model` does. Raises as `_once_loaded`."""
        return await self._once_loaded(model, lambda key: self._runtime.run_model(key, inputs, outputs))

    async def note(self, model: str, name: str) -> str:
        """Returns a note of a model's file, as `Runtime.model_note` does. Raises as `_once_loaded`."""
        return await self._once_loaded(model, lambda key: self._runtime.model_note(key, name))

    async def _once_loaded(self, model: str, use: Callable[[str], Awaitable[T]]) -> T:
        """Raises ClusterUnavailable where no shard has the model, or it is long on its way."""
        loop = asyncio.get_running_loop()
        until = loop.time() + ARRIVING_SECONDS
        while True:
            key = keys.model(model, self._runtime.hashtag())
            try:
                return await use(key)
            except ResponseError as error:
                if NOT_LOADED not in str(error):
                    raise
            if loop.time() > until:
                raise ClusterUnavailable(
                    f"the model {model!r} is not loaded on this shard: it is on its way, or its worker can't load it "
                    "(the Redis log says so); try again in a moment"
                )
            try:
                if await self._runtime.call("EXISTS", key):
                    await asyncio.sleep(LOOK_SECONDS)  # it came with its slot, and is being loaded
                else:
                    await self._fetch(model, key)
            except ResponseError as error:
                if not is_between_shards(error):
                    raise
                await asyncio.sleep(LOOK_SECONDS)  # its slot is leaving: the shard will have another tag

    def scoring(self, model: str) -> Scoring:
        """Returns how the copy that was run is scored: the shipped way where its label is silent."""
        return _scoring_of(self.loaded_label(model) or "")

    def loaded_label(self, model: str) -> str | None:
        """Returns the TAG of the copy that would be run now; None: none is loaded."""
        return self._runtime.model_tag(keys.model(model, self._runtime.hashtag()))

    async def label(self, model: str) -> str | None:
        """Returns the TAG of this shard's copy; None: there is none."""
        try:
            reply = await self._runtime.call("AI.MODELGET", keys.model(model, self._runtime.hashtag()), "META")
        except ResponseError:
            return None
        return str(_meta(reply)[b"tag"].decode("utf-8", "replace"))

    async def has(self, model: str) -> bool:
        return bool(await self._runtime.call("EXISTS", keys.model(model, self._runtime.hashtag())))

    async def obtain(self, model: str) -> None:
        """Has another shard send its copy. Raises ClusterUnavailable when none has it, or there is no room for it."""
        await self._fetch(model, keys.model(model, self._runtime.hashtag()))

    async def _fetch(self, model: str, key: str) -> None:
        async with self._fetching:
            if await self._runtime.call("EXISTS", key):
                return
            await self._check_room(model)
            loop = asyncio.get_running_loop()
            not_before, why = self._missed.get(model, (0.0, ""))
            if loop.time() >= not_before:
                began = loop.time()
                why, was_refused = await self._fetch_from_any(model, key)
                if not why:
                    self._strays.look_soon()
                    return
                await self._check_room(model)  # others have filled it meanwhile
                if len(self._missed) >= MAX_MISSED:
                    self._missed.clear()
                pause = max(RETRY_SECONDS, REFUSED_PAUSES * (loop.time() - began)) if was_refused else RETRY_SECONDS
                self._missed[model] = loop.time() + pause, why
        raise ClusterUnavailable(why)

    async def _fetch_from_any(self, model: str, key: str) -> tuple[str, bool]:
        """Asks the shards one by one for the model; returns why it did not come, and whether one failed to send it."""
        replies = await self._runtime.peers("RG.TRIGGER", "Shard")
        refusal = None
        for tag in [ShardDescription.parse(reply).tag for reply in replies if not isinstance(reply, Exception)]:
            refusals = await self._asked(model, tag, key)
            if await self._runtime.call("EXISTS", key):
                self._runtime.log(f"model {model!r} was copied from the shard {{{tag}}}")
                return "", False
            refusal = refusal or next(iter(refusals), None)
        silent = next((reply for reply in replies if isinstance(reply, Exception)), None)
        if silent is not None:
            why = f"no shard that answered has the model {model!r}, and one did not ({silent}); try again in a moment"
            return why, False
        if refusal is not None:
            return f"the model {model!r} could not be copied from another shard: {refusal}", True
        why = f"no shard has the model {model!r}; run 'shardqa prepare', or push it again"
        return why, False

    async def _check_room(self, model: str) -> None:
        """Raises WritesRefused where Redis stores nothing: a model is megabytes, which nobody need send then."""
        fault = write_refusal(await refusal(self._runtime))
        if fault is not None:
            raise WritesRefused(
                f"the model {model!r} is not on this shard, which stores nothing now: {fault}; "
                "'shardqa doctor' says how to mend it"
            )

    async def _asked(self, model: str, tag: str, key: str) -> list[Exception]:
        """Has one shard send the model, and waits until it has done that or failed; returns the errors."""
        while True:
            replies = await self._runtime.peers("RG.TRIGGER", "Push", model, tag, key)
            if not any(_answer(reply) == ON_ITS_WAY for reply in replies):
                break
        return [reply for reply in replies if isinstance(reply, Exception)]

    async def push(self, record: Record) -> str:
        """Stores this shard's model under another shard's key, if the record names this shard.

        Replies STORED, NOT_HERE, or ON_ITS_WAY: then ask again. Raises redis.ResponseError where it can't be stored
        there.
        """
        model, tag, key = arguments.words(record, "Push <model> <tag> <key>", 3, 3)
        await permissions.of_shards(self._runtime)
        if tag != self._runtime.hashtag() or not key.startswith(keys.model(model, "")[:-1]):
            return NOT_HERE
        if key not in self._sending:
            ours = await self._copy_of(model)
            if ours is None:
                return NOT_HERE
            self._sending[key] = asyncio.create_task(self._runtime.copy_model(ours, key))
        sending = self._sending[key]
        await asyncio.wait([sending], timeout=ANSWER_SECONDS)
        if not sending.done():
            return ON_ITS_WAY
        self._sending.pop(key, None)
        sending.result()
        return STORED

    async def _copy_of(self, model: str) -> str | None:
        """Returns the key of this shard's copy: under its tag, under one that it had before, or come with a slot."""
        own = keys.model(model, self._runtime.hashtag())
        if await self._runtime.call("EXISTS", own):
            return own
        labels = {text(key): text(label) for key, label in await self._runtime.call("AI._MODELSCAN")}
        return next((key for key, label in labels.items() if keys.name_of_model(key) == model and is_ours(label)), None)

    async def arrived(self, record: Record) -> None:
        """Has other shards' copies looked for soon: the key of a model was stored, or came here with its slot."""
        self._strays.look_soon()


@lru_cache(LABELS)
def _scoring_of(label: str) -> Scoring:
    return Scoring.of_label(label) or shipped_scoring()


def _answer(reply: Any) -> str | None:
    """Returns the word that Push replied; None for an error."""
    return text(reply[0]) if isinstance(reply, list) and reply else None


def _meta(reply: list[Any]) -> dict[bytes, Any]:
    """Returns the names and values of an AI.MODELGET … META."""
    return dict(zip(reply[::2], reply[1::2], strict=True))
