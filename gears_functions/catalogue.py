"""The documents of a corpus: `Documents` lists them, `Drop` removes them all.

RG.TRIGGER Documents <corpus> <after: bucket:id, or nothing> <limit> [<view: a filter, see shardqa/filters.py>]
RG.TRIGGER Drop <corpus>

Both tell the buckets that this shard vouches for: their slots are here and stay, and nothing of them waits to be read.
Whoever asks all shards has seen everything once every bucket was vouched for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from shardqa import keys
from shardqa.errors import BadData
from shardqa.gears_functions import arguments, documents, permissions

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.shard.state import ShardState

MAX_LIMIT = 1_001  # documents of one list: a page, and one more to see whether it is the last
TOLD = ("title", "source", "origin", "metadata", "passages")  # fields of a `doc:` hash that lists show


class Catalogues:
    """The worker's loop only."""

    def __init__(self, shard: ShardState) -> None:
        self._shard = shard

    async def documents(self, record: Record) -> str:
        corpus, after, wanted, *given = arguments.words(record, "Documents <corpus> <after> <limit> [<view>]", 3, 4)
        keys.check_corpus(corpus)
        limit = arguments.number("limit", wanted, 1, MAX_LIMIT)
        bucket, colon, document = after.partition(":")
        if after and not (colon and bucket in keys.ALL_BUCKETS):
            raise BadData(f"after={after[:40]!r} is no place in a list; send bucket:id of the last document")
        await permissions.to_read(self._shard.runtime, corpus)
        await self._shard.synced()
        before = await self._shard.settled()
        found = self._shard.index(corpus).catalogue.after(bucket, document, limit, "".join(given))
        listed = await self._listed(corpus, found)
        settled = before & await self._shard.settled()
        return self._reply(documents=listed, buckets=sorted(name for name in settled if name >= bucket))

    async def _listed(self, corpus: str, found: list[tuple[str, str]]) -> list[dict[str, Any]]:
        """Without those that are gone meanwhile, or between shards: of these the bucket is not vouched for."""
        commands = [
            command
            for _, document in found
            for key in [keys.doc(corpus, document)]
            for command in (("HMGET", key, *TOLD), ("HSTRLEN", key, "text"))
        ]
        replies = await self._shard.runtime.calls(commands) if commands else []
        return [
            _entry(bucket, document, fields, size)
            for (bucket, document), fields, size in zip(found, replies[::2], replies[1::2], strict=True)
            if not isinstance(fields, Exception) and not isinstance(size, Exception) and size
        ]

    async def drop(self, record: Record) -> str:
        (corpus,) = arguments.words(record, "Drop <corpus>", 1, 1)
        keys.check_corpus(corpus)
        await permissions.to_drop(self._shard.runtime, corpus)
        await self._shard.synced()
        dropped, index = self._shard.dropped, self._shard.index(corpus)
        settled = await self._shard.settled()
        if index.documents or dropped.progress(corpus):
            counts = {bucket: len(index.catalogue.of_bucket(bucket)) for bucket in index.catalogue.buckets()}
            await dropped.mark(corpus, sorted(settled), counts)
            await self._shard.changed(corpus)
        progress = dropped.progress(corpus)
        return self._reply(
            buckets=sorted(settled),
            documents=progress.documents if progress else 0,
            removed=progress.removed if progress else 0,
            is_left=progress is not None,
            epoch=await self._shard.epoch(corpus),
        )

    def _reply(self, **fields: Any) -> str:
        return orjson.dumps({"tag": self._shard.runtime.hashtag(), **fields}).decode()


def _entry(bucket: str, document: str, fields: list[bytes | None], size: int) -> dict[str, Any]:
    title, source, origin, metadata = ((value or b"").decode("utf-8", "replace") for value in fields[:4])
    passages = documents.count_of_passages(fields[4])
    return {
        "bucket": bucket,
        "id": document,
        "title": title,
        "source": source,
        "origin": origin,
        "metadata": metadata,
        "passages": passages or 0,
        "bytes": size,
    }
