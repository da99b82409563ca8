"""Writes a document's passages: what all that store or cut one anew have in common.

All that a document becomes is written in one tick, which replicas and the AOF see as one MULTI; a big document takes
several, and then its `digest` comes last: without it the document counts as not done and is done again. The worker's
loop only; cutting into passages runs beside it. The caller holds the document.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from redis import RedisError

from shardqa import keys
from shardqa.analysis import Analysed, analyse
from shardqa.errors import BadDocument, CorpusDropping, ShardFailed
from shardqa.gears_functions import document_hash
from shardqa.gears_functions.document_hash import Fields, Incoming, Stored
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.document_parts import FRAME, Parts, tick_size
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.pairs import Pair, Pairs
from shardqa.gears_functions.shard.quarantine import Quarantine
from shardqa.gears_functions.shard.questions import ActiveQuestions
from shardqa.gears_functions.shard.removal import PASSAGES_PER_UNLINK, unlink
from shardqa.gears_functions.splitting import BLOCK, Passage, split_in_slices
from shardqa.gears_functions.writes import raise_first
from shardqa.transient import is_write_refusal
from shardqa.worker.runtime import Argument, Runtime

QUIET, PATIENCE = 0.01, 0.1  # seconds without a question before the next slice of a long text, and waited at most
LONG_TEXT = 100  # characters that take longer to analyse than to look whether anybody else waits


@dataclass(frozen=True, slots=True)
class Written:
    passages: int
    is_changed: bool
    epoch: int


@dataclass(eq=False)
class DocumentWriter:
    _runtime: Runtime
    _pairs: Pairs
    _sync: KeyspaceSync
    _epochs: ShardEpochs
    _lock: DocumentLock
    _questions: ActiveQuestions

    def __post_init__(self) -> None:
        self.quarantine = Quarantine(self._runtime)

    async def put(self, one: Incoming, before: Stored, *first: tuple[Argument, ...]) -> Written:
        """Writes passages unless they are there already; `first` are commands that go ahead of them."""
        if before.digest == one.digest and before.passages is not None:
            if first and document_hash.encoded(one.fields) != before.fields:
                await self._write_quietly(first)  # the origin may change alone: no passage depends on it
            return Written(before.passages, False, await self._sync.epoch(one.doc.corpus))
        async with self.quarantine.reading(one.key, one.digest):
            pair = await self._pairs.of(one.doc.corpus)
            passages = await self.split(one.fields, pair)
            parts = await asyncio.to_thread(Parts.of, one.key, one.fields, one.digest, passages)
            old = self._old_count(one.doc, before)
            if not first:
                await self._demand_whole(one.doc, old)
            epoch = await self._write(one.key, one.doc, parts, old, list(first))
            return Written(len(parts.passages), True, epoch)

    async def put_new(self, corpus: str, new: Sequence[Incoming]) -> dict[str, Written]:
        """Writes small documents that were not there: cut in one turn of a thread, written many in one tick.

        Returns those written, by key; it leaves out those that are better seen to one by one. Raises as `put` where a
        tick fails, and then none of its documents counts as done.
        """
        ends = await self.quarantine.ends()
        fit = [one for one in new if one.digest[:16] not in ends]
        cut = await asyncio.to_thread(self._cut, fit, await self._pairs.of(corpus))
        await self._sync.epoch(corpus)
        outcomes = dict[str, Written]()
        while cut:
            count = tick_size([parts for _, parts in cut])
            outcomes |= await self._write_together(corpus, cut[:count])
            cut = cut[count:]
        return outcomes

    def _cut(self, new: Sequence[Incoming], pair: Pair) -> list[tuple[Incoming, Parts]]:
        """Leaves out what is refused or long: whoever puts it alone is told why. Any thread."""
        cut = list[tuple[Incoming, Parts]]()
        for one in new:
            with self.quarantine.shown(one.digest), suppress(BadDocument):
                slices = split_in_slices(one.fields.text, pair.tokenizer, one.fields.marks)
                passages = [passage for part in slices for passage in part]
                parts = Parts.of(one.key, one.fields, one.digest, passages)
                if len(parts.frames()) == 1:
                    cut.append((one, parts))
        return cut

    async def _write_together(self, corpus: str, cut: Sequence[tuple[Incoming, Parts]]) -> dict[str, Written]:
        words = [await self._analysed(parts, range(len(parts.passages))) for _, parts in cut]
        step = self._epochs.next(corpus)
        commands = step.commands
        for one, parts in cut:
            commands += parts.commands_of_new(one)
        try:
            await self._write_quietly(commands)
        except (RedisError, ShardFailed) as error:
            await self._mark_unfinished([one.key for one, _ in cut])
            if is_write_refusal(error):  # each is whole, or not there
                removals = ((one.key, *unlink(one.doc, range(len(parts.passages)))[1:]) for one, parts in cut)
                await self._write_quietly([("UNLINK", *names) for names in removals])
            raise
        for (one, parts), analysed in zip(cut, words, strict=True):
            self.quarantine.forget(one.key)
            with self.quarantine.shown(one.digest):
                self._index(one.doc, parts, range(len(parts.passages)), analysed)
        self._epochs.written(step)
        return {one.key: Written(len(parts.passages), True, step.epoch) for one, parts in cut}

    async def split(self, fields: Fields, pair: Pair) -> list[Passage]:
        """Cuts a text slice by slice: whole big ones would keep the few threads, and small ones past their deadline."""
        slices = split_in_slices(fields.text, pair.tokenizer, fields.marks)
        passages = list[Passage]()
        while (part := await asyncio.to_thread(next, slices, None)) is not None:
            passages += part
            self._runtime.progress()
            if len(fields.text) > BLOCK:
                await self._questions.quiet(QUIET, PATIENCE)
        return passages

    def check_dropping(self, doc: keys.DocKey) -> None:
        """Raises CorpusDropping while the document's corpus is being dropped."""
        if self._sync.dropped.covers(doc.corpus, doc.tag):
            raise CorpusDropping(
                f"corpus {doc.corpus!r} is being dropped, and its earlier documents are still being removed; "
                "add to it again once that is done"
            )

    async def _demand_whole(self, doc: keys.DocKey, count: int) -> None:
        """Raises Redis' refusal where a part of the document, or the shard's tag, has already moved to another shard.

        The rest would be written in vain, and each write is an event that has it written again.
        """
        names = [name(doc.corpus, doc.document, n) for n in range(count) for name in (keys.passage, keys.tokens)]
        commands = [("EXISTS", name) for name in (*names, keys.epoch(doc.corpus, self._runtime.hashtag()))]
        for first in range(0, len(commands), 2 * FRAME):
            page = commands[first : first + 2 * FRAME]
            raise_first(page, await self._runtime.calls(page))

    async def _write(self, key: str, doc: keys.DocKey, parts: Parts, old: int, head: list[tuple[Argument, ...]]) -> int:
        """Writes passages in place of `old` ones and returns the epoch from which they are found."""
        count = len(parts.passages)
        await self._sync.epoch(doc.corpus)
        old = await self._shorten(key, doc, count, old)
        # Until the last frame `passages` covers all that may be there, so that a later run can remove it.
        head += [("HSET", key, "passages", max(old, count)), ("HDEL", key, "digest")]
        *frames, last = parts.frames()
        for frame in frames:
            words = await self._analysed(parts, frame)
            # Each frame is a change of its own: the next may fail, and what was cached before is false already.
            step = self._epochs.next(doc.corpus)
            await self._write_quietly([*step.commands, *head, *parts.commands_of(doc, frame)])
            self._index(doc, parts, frame, words)
            self._sync.show_size()
            self._epochs.written(step)
            self._runtime.progress()
            await self._questions.quiet(QUIET, PATIENCE)
            head = []
        surplus = [unlink(doc, range(count, old))] if old > count else []
        end = ("HSET", key, "passages", count, "digest", parts.digest)
        words = await self._analysed(parts, last)
        step = self._epochs.next(doc.corpus)
        try:
            await self._write_quietly([*step.commands, *head, *parts.commands_of(doc, last), *surplus, end])
        except (RedisError, ShardFailed):
            await self._mark_unfinished([key])
            raise
        self._index(doc, parts, last, words)
        self._remove_from_index(doc, range(count, old))
        self._epochs.written(step)
        return step.epoch

    async def _write_quietly(self, commands: Sequence[tuple[Argument, ...]]) -> None:
        """Writes so that settling has nothing to do. Raises as `write`."""
        raise_first(commands, await self._runtime.calls(commands, quiet=True))

    async def _mark_unfinished(self, names: Sequence[str]) -> None:
        """Removes the digests of documents whose tick failed: Redis goes on in it, so passages may lack."""
        for key, reply in zip(names, await self._runtime.calls([("HDEL", n, "digest") for n in names]), strict=True):
            if isinstance(reply, Exception) and not is_write_refusal(reply):
                why = f"{key!r} may be written in part ({reply}); 'HDEL KEY digest' has it written again"
                self._runtime.log(why, "warning")

    async def _shorten(self, key: str, doc: keys.DocKey, count: int, old: int) -> int:
        """Removes the end of a text much longer than the new one, which a single tick would take too long for.

        Returns how many passages may be left; what is left is as good as before, and no longer known to be whole.
        """
        while old - count > PASSAGES_PER_UNLINK:
            surplus = range(old - PASSAGES_PER_UNLINK, old)
            step = self._epochs.next(doc.corpus)
            await self._write_quietly([*step.commands, ("HDEL", key, "digest"), unlink(doc, surplus)])
            self._remove_from_index(doc, surplus)
            self._epochs.written(step)
            self._runtime.progress()
            old -= PASSAGES_PER_UNLINK
        return old

    def _old_count(self, doc: keys.DocKey, before: Stored) -> int:
        """Returns one more than the highest number of a passage that the document may have."""
        names = self._sync.index(doc.corpus).table.keys_of(doc.document)
        return max([before.passages or 0, *(keys.parse_passage(name).n + 1 for name in names)])

    async def _analysed(self, parts: Parts, frame: range) -> list[Analysed]:
        """Analyses a text, and lets others in behind each passage that is long enough to hold them up."""
        words = list[Analysed]()
        for n in frame:
            words.append(analyse(parts.passages[n].text))
            if len(parts.passages[n].text) > LONG_TEXT:
                await asyncio.sleep(0)
        return words

    def _index(self, doc: keys.DocKey, parts: Parts, frame: range, words: list[Analysed]) -> None:
        self.check_dropping(doc)
        index = self._sync.index_to_change(doc.corpus)
        for n, analysed in zip(frame, words, strict=True):
            p, info = parts.passages[n], None if n else parts.info
            name = keys.passage(doc.corpus, doc.document, n)
            index.put(name, parts.title, p.text, p.end, info, parts.paths[n], analysed)
        self._lock.indexed(doc)

    def _remove_from_index(self, doc: keys.DocKey, numbers: Sequence[int]) -> None:
        index = self._sync.index_to_change(doc.corpus)
        for n in numbers:
            index.remove(keys.passage(doc.corpus, doc.document, n))
