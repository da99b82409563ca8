"""`Delete` removes a document with its passages, tokens and answers; `Drop` removes all documents of a corpus.

    RG.TRIGGERONKEY Delete <doc key>
    RG.TRIGGER Drop <corpus>        names the buckets that this shard vouches for, as `Documents` does

The worker's loop only.
"""

from shardqa import keys
from shardqa.errors import Indexing
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.marks import Marks
from shardqa.gears_functions.shard.removal import Removal
from shardqa.worker.runtime import Runtime


class Delete:
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
        outcome = {"document": doc.document, "deleted": was_there, "passages": removal.passages}
        return arguments.reply(self._runtime, **outcome, epoch=removal.epoch)


class Drop:
    def __init__(self, runtime: Runtime, sync: KeyspaceSync, *marks: Marks) -> None:
        self._runtime = runtime
        self._sync = sync
        self._marks = marks  # what the corpus has off goes with it

    async def drop(self, record: Record) -> str:
        (corpus,) = arguments.words(record, "Drop <corpus>", 1, 1)
        keys.check_corpus(corpus)
        await permissions.to_drop(self._runtime, corpus)
        is_known = True
        try:
            await self._sync.synced()
        except Indexing:
            is_known = False  # an index that can't be read must not keep what it is of
        drops, index = self._sync.dropped, self._sync.index(corpus)
        buckets = await self._sync.settled()
        if index.table.count_of_documents() or drops.progress(corpus) or not is_known:
            counts = {bucket: len(index.catalogue.of_bucket(bucket)) for bucket in index.catalogue.buckets()}
            await drops.mark(corpus, sorted(buckets), counts)
            await self._sync.changed(corpus)
        for marks in self._marks:
            if marks.covers(corpus):
                await marks.choose(corpus, is_marked=False)
        progress = drops.progress(corpus)
        return arguments.reply(
            self._runtime,
            buckets=sorted(buckets),
            documents=progress.documents if progress else 0,
            removed=progress.removed if progress else 0,
            is_left=progress is not None,
            epoch=await self._sync.epoch(corpus),
        )
