"""Models on every master, under the tag of its shard, where they are not there yet: readers, and any other file."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.engine import Engine
from shardqa.errors import BadModel
from shardqa.models import embedding
from shardqa.models.pushed import pushed_label
from shardqa.models.scoring import Scoring
from shardqa.retry import WORKER_SECONDS, retry
from shardqa.streaming import StreamedFile

STORE_SECONDS = 120.0  # to store a model on a shard whose worker still starts
BATCH_SIZE = 16  # rows that wait and are run together; more only makes the first one wait longer
MODEL_FILE = "model.onnx"
SLOWEST = 4 << 20  # bytes a second that a store is waited for, beyond what any store may take
BACKENDS = {".onnx": "ONNX", ".pt": "TORCH", ".pth": "TORCH", ".torchscript": "TORCH", ".tflite": "TFLITE"}
KINDS = sorted(set(BACKENDS.values()))
Shard = tuple[ClusterNode, str]  # a master and its tag


@dataclass(frozen=True, slots=True)
class ShardModel:
    name: str
    file: StreamedFile
    label: str  # AI.MODELGET's tag, by which an equal one is known: name, digest, a reader's scoring
    backend: str = "ONNX"
    device: str = "CPU"
    options: Sequence[str | int] = ("BATCHSIZE", BATCH_SIZE)  # further words of AI.MODELSTORE
    end: bytes = b""  # what goes behind the file

    @classmethod
    def reader(cls, name: str, folder: Path) -> "ShardModel":
        """Reads a reader's folder. Raises BadModel when it has no model file, or no scoring."""
        file, digest = _looked_at(folder / MODEL_FILE, "check out the repository whole")
        return cls(name, file, Scoring.load(folder).on_label(f"{name}@{digest[:16]}"))

    @classmethod
    def encoder(cls, name: str, folder: Path) -> "ShardModel":
        """Reads an encoder's folder; all encoders have one name. Raises BadModel when the folder has no model file."""
        file, digest = _looked_at(folder / MODEL_FILE, "write it with 'shardqa-models encoder'")
        return cls(keys.ENCODER, file, embedding.label(name, digest))

    @classmethod
    def of_file(
        cls, name: str, path: Path, backend: str = "", device: str = "CPU", batch_size: int = 0, tag: str = ""
    ) -> "ShardModel":
        """Reads any model; the backend is the file's kind unless given. Raises BadModel."""
        kind = backend.upper() or BACKENDS.get(path.suffix.lower(), "")
        if not kind:
            raise BadModel(f"the name of {path} does not tell its kind of model; give --backend ({', '.join(KINDS)})")
        if kind not in KINDS:
            raise BadModel(f"there is no backend {backend!r}; give --backend {', '.join(KINDS)}")
        file, digest = _looked_at(path, "give the path of one file")
        label = pushed_label(name, digest[:16], tag)
        return cls(name, file, label, kind, device, ("BATCHSIZE", batch_size) if batch_size else ())


def _looked_at(path: Path, remedy: str) -> tuple[StreamedFile, str]:
    """Returns the file, and its digest."""
    try:
        file = StreamedFile.of(path)
        return file, file.sha256()
    except OSError as error:
        raise BadModel(f"the model {path} can't be read: {error.strerror}; {remedy}") from error


async def store(engine: Engine, shards: Sequence[Shard], model: ShardModel) -> list[str]:
    """Stores the model on every master that lacks it or has another; returns those masters.

    Raises ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    outcomes = await asyncio.gather(*(_store_on(engine, shard, model) for shard in shards))
    return [str(node.name) for (node, _), is_new in zip(shards, outcomes, strict=True) if is_new]


async def _store_on(engine: Engine, shard: Shard, model: ShardModel) -> bool:
    node, tag = shard
    key = keys.model(model.name, tag)
    if await label_of(engine, node, key) == model.label:
        return False
    head = ("AI.MODELSTORE", key, model.backend, model.device, "TAG", model.label, *model.options, "BLOB")
    seconds = STORE_SECONDS + model.file.size / SLOWEST
    await retry(lambda: engine.shards.on(node, *head, *model.file.parts(), model.end, seconds=seconds), WORKER_SECONDS)
    return True


async def drop(engine: Engine, shards: Sequence[Shard], name: str) -> list[str]:
    """Removes a model from every master; returns those that had it.

    Raises ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    counts = await asyncio.gather(*(engine.shards.on(node, "UNLINK", keys.model(name, tag)) for node, tag in shards))
    return [str(node.name) for (node, _), count in zip(shards, counts, strict=True) if count]


async def label_of(engine: Engine, node: ClusterNode, key: str) -> str | None:
    """The tag of the model stored at `key`; None where there is none."""
    if not await retry(lambda: engine.shards.on(node, "EXISTS", key), WORKER_SECONDS):
        return None
    reply = await retry(lambda: engine.shards.on(node, "AI.MODELGET", key, "META"), WORKER_SECONDS)
    return text(fields(reply).get("tag", ""))


def fields(reply: Any) -> dict[str, Any]:
    """Returns name/value pairs, whether they came flat (RESP2) or as a map (RESP3)."""
    pairs = list(reply.items()) if isinstance(reply, dict) else list(zip(reply[::2], reply[1::2], strict=True))
    return {text(name): value for name, value in pairs}


def text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
