"""A lock per document: one function at a time changes it, and the keyspace watch skips its passages meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from shardqa import keys

if TYPE_CHECKING:
    from shardqa.gears_functions.shard.epochs import ShardEpochs
    from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
    from shardqa.gears_functions.shard.open_changes import OpenChanges


class DocumentLock:
    """The worker's loop only."""

    def __init__(self, changes: OpenChanges, epochs: ShardEpochs, sync: KeyspaceSync) -> None:
        self._changes = changes
        self._epochs = epochs
        self._sync = sync
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by doc key

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[keys.DocKey]:
        """Holds a document against other functions; the watch leaves its passages alone until the end.

        Where the change fails, its part of the index is read back from the keyspace. Raises BadKey.
        """
        parsed = keys.parse_doc(key)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            self._changes.begin(parsed)
            try:
                yield parsed
            except BaseException:
                self._epochs.doubt(parsed.corpus)
                await self._sync.read_back(key, parsed, self._changes.end(parsed))
                raise
            await self._sync.bring_in(self._changes.end(parsed))

    def indexed(self, parsed: keys.DocKey) -> None:
        """The holder has put into the index what it wrote: the events of that tell nothing new."""
        self._changes.indexed(parsed)
        self._sync.show_size()
