"""Replies of functions that describe a shard, decoded: `RG.TRIGGER Shard` and `RG.TRIGGER Corpora`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """The reply of Streams: entries of a shard's `ingest:` streams."""

    waiting: int
    done: int
    failed: int  # put aside, and still there

    @classmethod
    def parse(cls, reply: Any) -> StreamProgress:
        record = record_of(reply)
        return cls(int(record["waiting"]), int(record["done"]), int(record["failed"]))


def record_of(reply: Any) -> dict[str, Any]:
    """A function's reply: one record, JSON text."""
    record = reply[0] if isinstance(reply, list) else reply
    fields = orjson.loads(record)
    assert isinstance(fields, dict), f"a function replied {type(fields).__name__}, not an object"
    return fields


@dataclass(frozen=True, slots=True)
class ShardDescription:
    """The reply of Shard, and a part of that of Corpora."""

    tag: str
    indexing: bool  # it reads its passages into its index
    passages: int  # in its index, those of all corpora that the client may ask
    refuses: str | None  # why Redis stores nothing now

    @classmethod
    def parse(cls, reply: Any) -> ShardDescription:
        record = record_of(reply)
        return cls(str(record["tag"]), bool(record["indexing"]), int(record["passages"]), record["refuses"])


@dataclass(frozen=True, slots=True)
class CorpusPart:
    """A shard's part of a corpus."""

    documents: int
    passages: int
    characters: int
    bytes: int  # of the documents' texts
    epoch: int
    encoded: int | None = None  # passages with a vector of the shard's encoder; None where none are to have one
    languages: bool = False  # the pair of many languages reads it


@dataclass(frozen=True, slots=True)
class DroppedPart:
    """A shard's part of a corpus that is being dropped."""

    documents: int  # that it had
    removed: int  # of them


@dataclass(frozen=True, slots=True)
class CorporaOfShard:
    """The reply of Corpora: those that the client may ask."""

    shard: ShardDescription
    corpora: Mapping[str, CorpusPart]
    dropping: Mapping[str, DroppedPart]

    @classmethod
    def parse(cls, reply: Any) -> CorporaOfShard:
        record = record_of(reply)
        return cls(
            ShardDescription.parse(reply),
            {name: CorpusPart(**part) for name, part in record["corpora"].items()},
            {name: DroppedPart(**part) for name, part in record["dropping"].items()},
        )
