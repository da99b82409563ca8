"""Files as people uploaded them, each beside the document that it became: in its slot, so that it moves and goes along.

A file is of one text. Where the document says something else by now, its file is none.
"""

import logging
from hashlib import blake2b

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine.connections import Shards
from shardqa.errors import ShardqaError
from shardqa.schema import Document

log = logging.getLogger("shardqa.engine")


class Files:
    def __init__(self, settings: Settings, shards: Shards) -> None:
        self._most = settings.keep_megabytes * 1_000_000
        self._shards = shards

    async def keep(self, corpus: str, document: Document, content: bytes) -> None:
        """Stores the file of a document, which stands whatever keeps its file from being stored."""
        if len(content) > self._most:
            return
        try:
            key = keys.file(corpus, document.id)
            await self._shards.by_key(key, "HSET", "of", _digest(document), "content", content)
        except ShardqaError as fault:
            log.warning("the file of %s in %s is not kept: %s", document.id, corpus, fault)

    async def has(self, corpus: str, document: Document) -> bool:
        """Whether a document has a file; False where that can't be known now."""
        try:
            return (
                as_bytes(await self._shards.by_key(keys.file(corpus, document.id), "HGET", "of") or b"")
                == _digest(document).encode()
            )
        except ShardqaError:
            return False

    async def of(self, corpus: str, document: Document) -> bytes | None:
        """The file of a document. Raises ClusterUnavailable."""
        stored = await self._shards.by_key(keys.file(corpus, document.id), "HGETALL")
        fields = {as_bytes(name): as_bytes(value) for name, value in dict(stored or {}).items()}
        return fields.get(b"content") if fields.get(b"of") == _digest(document).encode() else None


def _digest(document: Document) -> str:
    return blake2b(document.text.encode(), digest_size=16).hexdigest()


def as_bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value
