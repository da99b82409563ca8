"""Removes the passages of a document, and what ends with them. The worker's loop only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redis import ResponseError

from shardqa import keys
from shardqa.gears_functions import document_hash
from shardqa.gears_functions.shard import slots
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.worker.runtime import Argument, Runtime

PASSAGES_PER_UNLINK = 400  # passages unlinked in one tick: about a millisecond of Redis' time


@dataclass(frozen=True, slots=True)
class Removed:
    passages: int
    epoch: int


class Removal:
    def __init__(self, runtime: Runtime, sync: KeyspaceSync, epochs: ShardEpochs) -> None:
        self._runtime = runtime
        self._sync = sync
        self._epochs = epochs

    async def unfit(self, key: str, doc: keys.DocKey) -> None:
        """Removes the passages of a document, held by the caller, that is gone or no longer fit to be read.

        It leaves one whose slot is moving to another shard: MIGRATE shows as a `del` too, so the slot is looked at
        first.
        """
        if (await slots.look(self._runtime)).holds(key):
            is_hash = await self._runtime.call("TYPE", key) == b"hash"
            await self.remove(key, doc, [("HDEL", key, "digest", "passages")] if is_hash else [])

    async def remove(self, key: str, doc: keys.DocKey, last: Sequence[tuple[Argument, ...]]) -> Removed:
        """Removes all passages that the document may have; `last` are commands that end it."""
        numbers = await self._numbers(key, doc)
        epoch = await self._sync.epoch(doc.corpus)
        if not numbers and not last:
            return Removed(0, epoch)
        while len(numbers) > PASSAGES_PER_UNLINK:
            # The rest may fail: each tick is a change of its own.
            step = await self._epochs.remove(doc.corpus, [unlink(doc, numbers[:PASSAGES_PER_UNLINK])])
            self._epochs.written(step)
            self._runtime.progress()
            numbers = numbers[PASSAGES_PER_UNLINK:]
        rest = [unlink(doc, numbers)] if numbers else []
        file = ("UNLINK", keys.file(doc.corpus, doc.document))  # that it was read from
        step = await self._epochs.remove(doc.corpus, [*rest, file, *last])
        index = self._sync.index(doc.corpus)
        names = [name for name in index.table.keys_of(doc.document) if index.remove(name)]
        self._epochs.written(step)
        return Removed(len(names), step.epoch)

    async def _numbers(self, key: str, doc: keys.DocKey) -> list[int]:
        """Returns the numbers of all passages that the document may have."""
        names = self._sync.index(doc.corpus).table.keys_of(doc.document)
        numbers = {keys.parse_passage(name).n for name in names}
        try:
            count = document_hash.count_of_passages(await self._runtime.call("HGET", key, "passages"))
            numbers.update(range(count or 0))
        except ResponseError as error:
            if not str(error).startswith("WRONGTYPE"):
                raise
        return sorted(numbers)


def unlink(doc: keys.DocKey, numbers: Iterable[int]) -> tuple[Argument, ...]:
    """Returns the command that removes passages and their tokens."""
    passages = [keys.passage(doc.corpus, doc.document, n) for n in numbers]
    names = [name for passage in passages for name in (passage, keys.tokens_of_passage(passage))]
    return ("UNLINK", *names)
