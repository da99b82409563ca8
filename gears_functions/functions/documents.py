"""`Documents`: lists the documents of a corpus.

RG.TRIGGER Documents <corpus> <after: bucket:id, or nothing> <limit> [<view: a filter, see shardqa/filters.py>]

The reply names the buckets that this shard vouches for: their slots are here and stay, and nothing of them waits to be
read. Whoever asks all shards has seen everything once every bucket was vouched for.
"""

from typing import Any

from shardqa import keys
from shardqa.errors import BadData
from shardqa.gears_functions import arguments, document_hash, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.worker.runtime import Runtime

MAX_LIMIT = 1_001  # documents of one list: a page, and one more to see whether it is the last
TEXTS = ("title", "source", "origin", "metadata")  # fields of a `doc:` hash that lists show


class Documents:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime, sync: KeyspaceSync) -> None:
        self._runtime = runtime
        self._sync = sync

    async def documents(self, record: Record) -> str:
        corpus, after, number, *view = arguments.words(record, "Documents <corpus> <after> <limit> [<view>]", 3, 4)
        keys.check_corpus(corpus)
        limit = arguments.number("limit", number, 1, MAX_LIMIT)
        bucket, colon, document = after.partition(":")
        if after and not (colon and bucket in keys.ALL_BUCKETS):
            raise BadData(f"after={after[:40]!r} is no place in a list; send bucket:id of the last document")
        await permissions.to_read(self._runtime, corpus)
        await self._sync.synced()
        before = await self._sync.settled()
        entries = await self._entries(
            corpus, self._sync.index(corpus).catalogue.after(bucket, document, limit, "".join(view))
        )
        ours = before & await self._sync.settled()
        buckets = sorted(name for name in ours if name >= bucket)
        return arguments.reply(self._runtime, documents=entries, buckets=buckets)

    async def _entries(self, corpus: str, page: list[tuple[str, str]]) -> list[dict[str, Any]]:
        """Returns the entries of a page, without documents that have gone or lie between shards meanwhile."""
        commands = [
            command
            for _, document in page
            for key in [keys.doc(corpus, document)]
            for command in (("HMGET", key, *TEXTS, "passages"), ("HSTRLEN", key, "text"))
        ]
        replies = await self._runtime.calls(commands) if commands else []
        return [
            _entry(bucket, document, fields, size)
            for (bucket, document), fields, size in zip(page, replies[::2], replies[1::2], strict=True)
            if not isinstance(fields, Exception) and not isinstance(size, Exception) and size
        ]


def _entry(bucket: str, document: str, fields: list[bytes | None], size: int) -> dict[str, Any]:
    *texts, passages = fields
    return {
        "bucket": bucket,
        "id": document,
        **{name: (text or b"").decode("utf-8", "replace") for name, text in zip(TEXTS, texts, strict=True)},
        "passages": document_hash.count_of_passages(passages) or 0,
        "bytes": size,
    }
