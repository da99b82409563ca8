"""The reader: stores the shipped model on every master, under the tag of its shard, where it is not there yet."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.engine import Engine
from shardqa.errors import BadModel
from shardqa.loader.retry import WORKER_SECONDS, retry
from shardqa.models.scoring import Scoring

BATCH_SIZE = 16  # rows that wait and are run together; more only makes the first one wait longer
MODEL_FILE = "model.onnx"
Shard = tuple[ClusterNode, str]  # a master and its tag


@dataclass(frozen=True, slots=True)
class ReaderModel:
    name: str
    blob: bytes  # ONNX
    label: str  # what AI.MODELGET … META shows as the tag: name, digest and scoring, by which an equal reader is known

    @classmethod
    def read(cls, name: str, folder: Path) -> "ReaderModel":
        """Raises BadModel when the folder has no model file, or no scoring."""
        path = folder / MODEL_FILE
        try:
            blob = path.read_bytes()
        except OSError as error:
            raise BadModel(
                f"the model {path} can't be read: {error.strerror}; check out the repository whole"
            ) from error
        return cls(name, blob, Scoring.load(folder).on_label(f"{name}@{sha256(blob).hexdigest()[:16]}"))


async def store(engine: Engine, shards: Sequence[Shard], model: ReaderModel) -> list[str]:
    """Stores the model on every master that has not this very one; returns those it stored it on.

    Raises ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    stored = await asyncio.gather(*(_store_on(engine, shard, model) for shard in shards))
    return [str(node.name) for (node, _), is_new in zip(shards, stored, strict=True) if is_new]


async def _store_on(engine: Engine, shard: Shard, model: ReaderModel) -> bool:
    node, tag = shard
    key = keys.model(model.name, tag)
    if await label_of(engine, node, key) == model.label:
        return False
    command = ("AI.MODELSTORE", key, "ONNX", "CPU", "TAG", model.label, "BATCHSIZE", BATCH_SIZE, "BLOB", model.blob)
    await retry(lambda: engine.masters.on(node, *command), WORKER_SECONDS)
    return True


async def label_of(engine: Engine, node: ClusterNode, key: str) -> str | None:
    """The tag of the model stored at `key`; None where there is none."""
    if not await retry(lambda: engine.masters.on(node, "EXISTS", key), WORKER_SECONDS):
        return None
    reply = await retry(lambda: engine.masters.on(node, "AI.MODELGET", key, "META"), WORKER_SECONDS)
    return _fields(reply).get("tag", "")


def _fields(reply: Any) -> dict[str, str]:
    """Name/value pairs, whether they came flat (RESP2) or as a map (RESP3)."""
    pairs = list(reply.items()) if isinstance(reply, dict) else list(zip(reply[::2], reply[1::2], strict=True))
    return {_text(name): _text(value) for name, value in pairs}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
