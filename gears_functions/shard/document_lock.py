"""A lock per document: one function at a time changes it, and the keyspace watch skips its passages meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from shardqa import keys
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
        async with self.hold_all([key]) as docs:
            yield docs[key]

    @asynccontextmanager
    async def hold_all(self, names: Collection[str]) -> AsyncIterator[dict[str, keys.DocKey]]:
        """Holds several documents as `hold` does one; all take them in one order, so no two wait for each other."""
        documents = {key: keys.parse_doc(key) for key in sorted(names)}
        async with AsyncExitStack() as stack:
            for key in documents:
                await stack.enter_async_context(self._locks.setdefault(key, asyncio.Lock()))
            for doc in documents.values():
                self._changes.begin(doc)
            try:
                yield documents
            except BaseException:
                for key, passed_over in {key: self._changes.end(doc) for key, doc in documents.items()}.items():
                    self._epochs.doubt(documents[key].corpus)
                    await self._sync.read_back(key, documents[key], passed_over)
                raise
            self._sync.show_size()  # of all corpora: not for each document
            await self._sync.bring_in(set[str]().union(*map(self._changes.end, documents.values())))

    def indexed(self, doc: keys.DocKey) -> None:
        """Notes that the holder has put what it wrote into the index: the events of that tell nothing new."""
        self._changes.indexed(doc)
