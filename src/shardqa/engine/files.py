"""Files as they were read, each in the slot of its name: that of its document, where it became one.

A file is of the texts that it became. Where a document says something else by now, its file is none. One that holds
several documents goes with the first of them that is deleted, since the rest of it would hold that one, too.
"""

import logging
from collections.abc import Mapping
from hashlib import blake2b

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine.connections import Shards
from shardqa.errors import BadDocumentId, ShardqaError
from shardqa.schema import Document

UPLOAD = "upload:"  # and the file's name: origin of what it holds

log = logging.getLogger("shardqa.engine")


class Files:
    def __init__(self, settings: Settings, shards: Shards) -> None:
        self.most = settings.keep_megabytes * 1_000_000  # bytes of one
        self._shards = shards

    async def keep(self, corpus: str, name: str, texts: Mapping[str, str], content: bytes) -> None:
        """Stores the file of documents (id -> `text_mark`), which stand whatever keeps it from being stored."""
        if len(content) > self.most:
            return
        try:
            key = keys.file(corpus, name)
            if any(id_ != name for id_ in texts):
                await self._shards.by_key(keys.files(corpus), "SADD", name)
            await self._shards.by_key(key, "UNLINK")
            fields = [word for mark in texts.values() for word in (mark, "")]
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
            name = name_of(document.id, document.origin)
            return bool(await self._shards.by_key(keys.file(corpus, name), "HEXISTS", text_mark(document)))
        except ShardqaError:
            return False

    async def of(self, corpus: str, document: Document) -> bytes | None:
        """The file of a document. Raises ClusterUnavailable."""
        try:
            key = keys.file(corpus, name_of(document.id, document.origin))
        except BadDocumentId:  # a path that is too long for a name
            return None
        mark, content = await self._shards.by_key(key, "HMGET", text_mark(document), "content")
        return None if mark is None or content is None else as_bytes(content)


def name_of(id_: str, origin: str) -> str:
    """The name of the file that a document came from: what its id has of it, else the path, as where lines have ids."""
    if not origin.startswith("/"):
        return origin.removeprefix(UPLOAD) if origin.startswith(UPLOAD) else id_
    folder, last, _ = f"/{id_}/".rpartition(f"/{origin.rpartition('/')[2]}/")
    return (folder + last)[1:-1] or origin


def text_mark(document: Document) -> str:
    """The field that says of a file that it became this document's text."""
    return "of:" + blake2b(document.text.encode(), digest_size=16).hexdigest()


def as_bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value
