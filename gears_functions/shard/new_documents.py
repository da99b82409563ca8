"""Writes many small documents that were not there: cut in one turn of a thread, written many in one tick.

As for one document (document_writer.py) the digest comes last: without it a document counts as not done. The caller
holds them all; the worker's loop only, but for `_cut`.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from redis import RedisError

from shardqa import keys
from shardqa.errors import BadDocument, ShardFailed
from shardqa.gears_functions.document_hash import Fields
from shardqa.gears_functions.shard.document_parts import Parts, tick_size
from shardqa.gears_functions.shard.document_writer import DocumentWriter, Written
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.removal import unlink
from shardqa.gears_functions.splitting import split_in_slices
from shardqa.models.tokenizer import Tokenizer
from shardqa.transient import is_write_refusal


@dataclass(frozen=True, slots=True)
class New:
    """A document that was not there."""

    key: str
    doc: keys.DocKey
    fields: Fields
    digest: str


class NewDocuments:
    def __init__(self, tokenizer: Tokenizer, sync: KeyspaceSync, epochs: ShardEpochs, writer: DocumentWriter) -> None:
        self._tokenizer = tokenizer
        self._sync = sync
        self._epochs = epochs
        self._writer = writer

    async def put(self, corpus: str, new: Sequence[New]) -> dict[str, Written]:
        """Writes documents that were not there, many in one tick; returns those written.

        It leaves out those that are better seen to one by one. Raises as `DocumentWriter.put` where a tick fails, and
        then none of its documents counts as done.
        """
        ends = await self._writer.quarantine.ends()
        cut = await asyncio.to_thread(self._cut, [one for one in new if one.digest[:16] not in ends])
        await self._sync.epoch(corpus)
        outcomes = dict[str, Written]()
        while cut:
            count = tick_size([parts for _, parts in cut])
            outcomes |= await self._write_together(corpus, cut[:count])
            cut = cut[count:]
        return outcomes

    def _cut(self, new: Sequence[New]) -> list[tuple[New, Parts]]:
        cut = list[tuple[New, Parts]]()
        for document in new:
            with self._writer.quarantine.shown(document.digest):
                parts = self._parts_of(document)
            if parts is not None and len(parts.frames()) == 1:
                cut.append((document, parts))
        return cut

    def _parts_of(self, document: New) -> Parts | None:
        """Returns a document's parts; None where it is refused: whoever puts it alone is told why."""
        with suppress(BadDocument):
            slices = split_in_slices(document.fields.text, self._tokenizer, document.fields.marks)
            passages = [passage for part in slices for passage in part]
            return Parts.of(document.key, document.fields, document.digest, passages)
        return None

    async def _write_together(self, corpus: str, cut: Sequence[tuple[New, Parts]]) -> dict[str, Written]:
        words = [await self._writer.analysed(parts, range(len(parts.passages))) for _, parts in cut]
        step = self._epochs.next(corpus)
        commands = step.commands
        for one, parts in cut:
            commands += parts.commands_of_new(one.key, one.doc, one.fields)
        try:
            await self._writer.write_quietly(commands)
        except (RedisError, ShardFailed) as error:
            await self._writer.mark_unfinished([one.key for one, _ in cut])
            if is_write_refusal(error):  # each is whole, or not there
                removals = ((one.key, *unlink(one.doc, range(len(parts.passages)))[1:]) for one, parts in cut)
                await self._writer.write_quietly([("UNLINK", *names) for names in removals])
            raise
        for (one, parts), analysed in zip(cut, words, strict=True):
            self._writer.quarantine.forget(one.key)
            with self._writer.quarantine.shown(one.digest):
                self._writer.index(one.doc, parts, range(len(parts.passages)), analysed)
        self._epochs.written(step)
        return {one.key: Written(len(parts.passages), True, step.epoch) for one, parts in cut}
