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


class HeldDocuments:
    """Documents that a function is changing, each with its passages that the watch passed over meanwhile."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], set[str]] = {}  # (corpus, document) -> keys of passages

    def begin(self, parsed: keys.DocKey) -> None:
        self._held[parsed.corpus, parsed.document] = set()

    def end(self, parsed: keys.DocKey) -> set[str]:
        """Returns what was passed over."""
        return self._held.pop((parsed.corpus, parsed.document))

    def passes_over(self, passage: keys.PassageKey, name: str) -> bool:
        """Whether the passage's document is held, and so is left to its holder."""
        held = self._held.get((passage.corpus, passage.document))
        if held is None:
            return False
        held.add(name)
        return True

    def indexed(self, parsed: keys.DocKey) -> None:
        """The holder has put into the index what it wrote: the events of that tell nothing new."""
        self._held[parsed.corpus, parsed.document].clear()


class DocumentLock:
    """The worker's loop only."""

    def __init__(self, held: HeldDocuments, epochs: ShardEpochs, sync: KeyspaceSync) -> None:
        self._held = held
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
            self._held.begin(parsed)
            try:
                yield parsed
            except BaseException:
                self._epochs.doubt(parsed.corpus)
                await self._sync.read_back(key, parsed, self._held.end(parsed))
                raise
            await self._sync.bring_in(self._held.end(parsed))
