"""`Delete`: removes a document with its passages, tokens and answers.

RG.TRIGGERONKEY Delete <doc key>
"""

import orjson

from shardqa import keys
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.removal import Removal
from shardqa.worker.runtime import Runtime


class Delete:
    """The worker's loop only."""

    def __init__(self, runtime: Runtime, lock: DocumentLock, removal: Removal) -> None:
        self._runtime = runtime
        self._lock = lock
        self._removal = removal

    async def delete(self, record: Record) -> str:
        (key,) = arguments.words(record, "Delete <doc key>", 1, 1)
        keys.parse_doc(key)
        await permissions.to_delete(self._runtime, key)
        async with self._lock.hold(key) as doc:
            was_there = bool(await self._runtime.call("EXISTS", key))
            removal = await self._removal.remove(key, doc, [("UNLINK", key)] if was_there else [])
        tag = self._runtime.hashtag()
        reply = {"tag": tag, "document": doc.document, "deleted": was_there}
        return orjson.dumps({**reply, "passages": removal.passages, "epoch": removal.epoch}).decode()
