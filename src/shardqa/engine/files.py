"""Files as people uploaded them, each in the slot of its name: that of its document, where it became one.

A file is of the texts that it became. Where a document says something else by now, its file is none. One that holds
several documents goes with the first of them that is deleted, since the rest of it would hold that one, too.
"""

import logging
from collections.abc import Sequence
from hashlib import blake2b

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine.connections import Shards
from shardqa.errors import ShardqaError
from shardqa.schema import Document

UPLOAD = "upload:"  # and the file's name: origin of what it holds

log = logging.getLogger("shardqa.engine")


class Files:
    def __init__(self, settings: Settings, shards: Shards) -> None:
        self._most = settings.keep_megabytes * 1_000_000
        self._shards = shards

    async def keep(self, corpus: str, name: str, documents: Sequence[Document], content: bytes) -> None:
        """Stores the file of documents, which stand whatever keeps their file from being stored."""
        if len(content) > self._most:
            return
        try:
            key = keys.file(corpus, name)
            if any(document.id != name for document in documents):
                await self._shards.by_key(keys.files(corpus), "SADD", name)
            await self._shards.by_key(key, "UNLINK")
            fields = [word for document in documents for word in (_field(document), "")]
            await self._shards.by_key(key, "HSET", "content", content, *fields)
        except ShardqaError as fault:
            log.warning("the file %s in %s is not kept: %s", name, corpus, fault)

    async def forget(self, corpus: str) -> None:
        """Removes files that hold several documents; shards remove others with theirs. Raises ClusterUnavailable."""
        for name in await self._shards.by_key(keys.files(corpus), "SMEMBERS"):
            await self._shards.by_key(keys.file(corpus, as_bytes(name).decode()), "UNLINK")
        await self._shards.by_key(keys.files(corpus), "UNLINK")

    async def has(self, corpus: str, document: Document) -> bool:
        """Whether a document has a file; False where that can't be known now."""
        try:
            return bool(await self._shards.by_key(keys.file(corpus, name_of(document)), "HEXISTS", _field(document)))
        except ShardqaError:
            return False

    async def of(self, corpus: str, document: Document) -> bytes | None:
        """The file of a document. Raises ClusterUnavailable."""
        key = keys.file(corpus, name_of(document))
        mark, content = await self._shards.by_key(key, "HMGET", _field(document), "content")
        return None if mark is None or content is None else as_bytes(content)


def name_of(document: Document) -> str:
    """The name of the file that a document came from."""
    return document.origin.removeprefix(UPLOAD) if document.origin.startswith(UPLOAD) else document.id


def _field(document: Document) -> str:
    return "of:" + blake2b(document.text.encode(), digest_size=16).hexdigest()


def as_bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value
