"""Copying a model of this shard to another one: piece by piece, whatever its size.

A frame to Redis takes 1 GiB, so a model that lies in a file is read from there, and never held.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from redis import ResponseError

from shardqa.streaming import FilePart, StreamedFile, parts_of

if TYPE_CHECKING:
    from shardqa.worker.ai.stored_models import StoredModels
    from shardqa.worker.nodes import Cluster

STORE_SECONDS = 120.0  # to load it there
SLOWEST = 4 << 20  # bytes a second that it is waited for beyond that

Call = Callable[..., Awaitable[Any]]
Part = FilePart | memoryview


async def copy_model(cluster: Cluster, models: StoredModels, call: Call, key: str, to: str) -> None:
    """Stores the model at `key` under `to` on the shard of `to`; `call` runs a command on this node.

    Raises redis.ResponseError: there is no such model, or the other shard refused it.
    """
    meta, parts = await _read(models, call, key)
    words = ("AI.MODELSTORE", to, meta[b"backend"], meta[b"device"], "TAG", meta[b"tag"], *_options(meta), "BLOB")
    size = sum(part.length if isinstance(part, FilePart) else len(part) for part in parts)
    await cluster.send_to_owner(to, [*words, *parts], STORE_SECONDS + size / SLOWEST)


async def _read(models: StoredModels, call: Call, key: str) -> tuple[Mapping[bytes, Any], list[Part]]:
    """Returns the fields of META and the pieces of the file."""
    path = models.file_of(key)
    if path is None:
        meta = _meta(await call("AI.MODELGET", key, "META", "BLOB"))
        blobs = meta[b"blob"] if isinstance(meta[b"blob"], list) else [meta[b"blob"]]
        return meta, [part for blob in blobs for part in parts_of(blob)]
    meta = _meta(await call("AI.MODELGET", key, "META"))
    if models.file_of(key) != path:
        raise ResponseError(f"TRYAGAIN {key} was replaced while it was read")
    try:
        return meta, [*StreamedFile.of(path).parts()]
    except OSError as error:
        raise ResponseError(f"TRYAGAIN the file of {key} can't be read: {error}") from error


def _meta(reply: Sequence[Any]) -> dict[bytes, Any]:
    """Returns the names and values of an AI.MODELGET … META."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _options(meta: Mapping[bytes, Any]) -> list[Any]:
    """Returns the words of AI.MODELSTORE before the file; a zero is the default and is left out."""
    sizes = ("BATCHSIZE", "MINBATCHSIZE", "MINBATCHTIMEOUT")
    words = [word for name in sizes if (value := meta[name.lower().encode()]) for word in (name, value)]
    lists = ("PADDED", "INPUTS", "OUTPUTS") if meta[b"backend"] == b"TF" else ("PADDED",)  # others' files say the rest
    for name in lists:
        names = meta.get(name.lower().encode(), [])
        words += [name, len(names), *names] if names else []
    return words
