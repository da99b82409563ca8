"""Makes a cluster ready to answer: functions, reader and encoder on every master, passages in every index.

The functions are one session that the module keeps and replays. Its code is two lines that import them, so a node that
starts with a newer package runs the newer functions without being told.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.description import ShardDescription
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable, ShardFailed
from shardqa.loader import models
from shardqa.loader.models import ShardModel
from shardqa.models import embedding, shipped
from shardqa.retry import WORKER_SECONDS, retry

SESSION = "shardqa"
CODE = "from shardqa.gears_functions.registration import register\nregister(GearsBuilder, runtime, override_reply)\n"
LOOK_SECONDS = 0.25  # between two looks at the indexes
TELL_SECONDS = 10.0  # between two reports


@dataclass(frozen=True, slots=True)
class Prepared:
    reader: ShardModel
    registered: list[str]  # masters that lacked the functions
    stored: list[str]  # masters that lacked the reader
    encoder_stored: list[str] = field(default_factory=list)  # masters that lacked the encoder


@dataclass(frozen=True, slots=True)
class Registered:
    shards: list[models.Shard]  # every master with its tag
    new: list[str]  # masters that lacked the functions


async def prepare(engine: Engine, force: bool = False) -> Prepared:
    """Registers and stores what is missing (the functions anew everywhere with `force`).

    Raises BadModel when the shipped reader or encoder is not what its checksums say, before anything is sent; and
    ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    reader = ShardModel.reader(shipped.NAME, shipped.checked_folder())
    encoder = shipped_encoder()
    registration = await register(engine, force)
    names = await models.store(engine, registration.shards, reader)
    return Prepared(reader, registration.new, names, await _store_encoder(engine, registration.shards, encoder))


def shipped_encoder() -> ShardModel:
    """Reads the shipped encoder. Raises BadModel."""
    return ShardModel.encoder(shipped.ENCODER_NAME, shipped.checked_folder(shipped.encoder_folder()))


async def _store_encoder(engine: Engine, shards: Sequence[models.Shard], encoder: ShardModel) -> list[str]:
    """Stores the encoder unless somebody removed it or pushed one of his own; returns the masters that lacked it.

    One of a former release, or of a form that is no longer read, is replaced.
    """
    if await engine.shards.by_key(keys.NO_ENCODER, "EXISTS"):
        return []
    labels = [await models.label_of(engine, node, keys.model(keys.ENCODER, tag)) for node, tag in shards]
    ours = f"{shipped.ENCODER_NAME}@"
    if any(one and embedding.encoder_of_label(one) and not one.startswith(ours) for one in labels):
        return []
    return await models.store(engine, shards, encoder)


async def register(engine: Engine, force: bool = False) -> Registered:
    """Registers the functions on every master that lacks them, on all with `force`.

    Waits for workers that still start. Raises ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    nodes = engine.shards.nodes()
    outcomes = await asyncio.gather(*(_register_on(engine, node, force) for node in nodes))
    new = [str(node.name) for node, (_, is_new) in zip(nodes, outcomes, strict=True) if is_new]
    return Registered([(node, tag) for node, (tag, _) in zip(nodes, outcomes, strict=True)], new)


async def _register_on(engine: Engine, node: ClusterNode, force: bool) -> tuple[str, bool]:
    """Returns (the shard's tag, whether the functions were registered now)."""
    if not force and (description := await _description(engine, node)) is not None:
        return description.tag, False
    command = ("RG.PYEXECUTE", CODE, "ID", SESSION, "UPGRADE", "DESCRIPTION", "question answering")
    await retry(lambda: engine.shards.on(node, *command), WORKER_SECONDS)
    after = await _description(engine, node)
    if after is None:
        raise ClusterUnavailable(f"node {node.name} took the functions and has none; run 'shardqa up' again")
    return after.tag, True


async def _description(engine: Engine, node: ClusterNode) -> ShardDescription | None:
    """Asks a shard for its description; None where the functions are not registered."""
    try:
        reply = await retry(lambda: engine.shards.on(node, "RG.TRIGGER", "Shard"), WORKER_SECONDS)
    except ShardFailed:
        return None
    return ShardDescription.parse(reply)


async def wait_for_indexes(engine: Engine, tell: Callable[[int], None]) -> None:
    """Returns once all indexes have their passages; calls `tell` with how many are to come, at once and now and then.

    A shard that fails meanwhile is not waited for. Raises ClusterUnavailable when no node answers.
    """
    last = float("-inf")
    clock = asyncio.get_running_loop().time
    while (shards := await engine.cluster.shards()) and any(shard.indexing for shard in shards):
        if clock() - last >= TELL_SECONDS:
            last = clock()
            tell(sum(shard.passages for shard in shards))
        await asyncio.sleep(LOOK_SECONDS)
