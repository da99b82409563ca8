"""Writes a document's passages: what all that store or cut one anew have in common.

All that a document becomes is written in one tick, which replicas and the AOF see as one MULTI; a big document takes
several, and then its `digest` comes last: without it the document counts as not done and is done again. The worker's
loop only; cutting into passages runs beside it. The caller holds the document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from redis import RedisError, ResponseError

from shardqa import keys, places
from shardqa.errors import BadDocument, CorpusDropping, ShardFailed
from shardqa.gears_functions import document_hash
from shardqa.gears_functions.document_hash import FIELDS, Fields, Stored
from shardqa.gears_functions.index.catalogue import DocumentInfo
from shardqa.gears_functions.runtime import raise_first, write
from shardqa.gears_functions.shard.removal import AT_ONCE, unlink
from shardqa.gears_functions.splitting import Passage, split_in_slices
from shardqa.transient import is_write_refusal

if TYPE_CHECKING:
    from shardqa.gears_functions.runtime import Argument, Runtime
    from shardqa.gears_functions.shard.document_lock import DocumentLock
    from shardqa.gears_functions.shard.epochs import ShardEpochs
    from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
    from shardqa.models.tokenizer import Tokenizer

FRAME = 64  # passages written in one tick and indexed before the loop serves others: about 10 ms


@dataclass(frozen=True, slots=True)
class Parts:
    """A document as it will lie in Redis."""

    title: str
    digest: str
    passages: list[Passage]
    places: places.Raw
    info: DocumentInfo


@dataclass(frozen=True, slots=True)
class Written:
    passages: int
    is_changed: bool
    epoch: int


class DocumentWriter:
    def __init__(
        self, runtime: Runtime, tokenizer: Tokenizer, sync: KeyspaceSync, epochs: ShardEpochs, lock: DocumentLock
    ) -> None:
        self._runtime = runtime
        self._tokenizer = tokenizer
        self._sync = sync
        self._epochs = epochs
        self._lock = lock

    async def stored(self, key: str) -> Stored | None:
        """Returns what is at `key` now; None for another type than a hash."""
        try:
            *fields, digest, count = await self._runtime.call("HMGET", key, *FIELDS, "digest", "passages")
        except ResponseError as error:
            if str(error).startswith("WRONGTYPE"):
                return None
            raise
        return Stored(fields, (digest or b"").decode("ascii", "replace"), document_hash.count_of_passages(count))

    async def put(
        self, key: str, parsed: keys.DocKey, fields: Fields, stored: Stored, *first: tuple[Argument, ...]
    ) -> Written:
        """Writes passages unless they are there already; `first` are commands that go ahead of them."""
        digest = await asyncio.to_thread(fields.digest)
        if stored.digest == digest and stored.passages is not None:
            if first and document_hash.encoded(fields) != stored.fields:
                await write(self._runtime, first)  # the source may change alone: no passage depends on it
            return Written(stored.passages, False, await self._sync.epoch(parsed.corpus))
        passages = await self.split(fields)
        if not passages:
            raise BadDocument(f"document {key!r} has no words, only blanks and control characters; give it a text")
        old = self._old_count(parsed, stored)
        if not first:
            await self._demand_whole(parsed, old)
        info = DocumentInfo(len(fields.text.encode()), fields.metadata)
        parts = Parts(fields.title, digest, passages, places.check(fields.places), info)
        epoch = await self._write(key, parsed, parts, old, list(first))
        return Written(len(passages), True, epoch)

    async def split(self, fields: Fields) -> list[Passage]:
        """Cuts in slices: threads are few, and whole big documents would keep small ones out until their deadline."""
        slices = split_in_slices(fields.text, self._tokenizer, places.check(fields.places))
        passages = list[Passage]()
        while (part := await asyncio.to_thread(next, slices, None)) is not None:
            passages += part
            self._runtime.progress()
        return passages

    def check_dropping(self, parsed: keys.DocKey) -> None:
        """Raises CorpusDropping."""
        if self._sync.dropped.covers(parsed.corpus, parsed.tag):
            raise CorpusDropping(
                f"corpus {parsed.corpus!r} is being dropped, and its earlier documents are still being removed; "
                "add to it again once that is done"
            )

    async def _demand_whole(self, parsed: keys.DocKey, count: int) -> None:
        """Raises what Redis says where a part, or the shard's tag, has moved ahead to another shard. Else what is left
        would be written, in vain, and each write is an event that has it written again."""
        names = [name(parsed.corpus, parsed.document, n) for n in range(count) for name in (keys.passage, keys.tokens)]
        commands = [("EXISTS", name) for name in (*names, keys.epoch(parsed.corpus, self._runtime.hashtag()))]
        for first in range(0, len(commands), 2 * FRAME):
            page = commands[first : first + 2 * FRAME]
            raise_first(page, await self._runtime.calls(page))

    async def _write(
        self, key: str, parsed: keys.DocKey, parts: Parts, old: int, head: list[tuple[Argument, ...]]
    ) -> int:
        """Writes passages in place of `old` ones and returns the epoch from which they are found."""
        count = len(parts.passages)
        await self._sync.epoch(parsed.corpus)
        old = await self._shorten(key, parsed, count, old)
        # Until the last frame `passages` covers all that may be there, so that a later run can remove it.
        head += [("HSET", key, "passages", max(old, count)), ("HDEL", key, "digest")]
        last = (count - 1) // FRAME * FRAME
        for first in range(0, last, FRAME):
            # Each frame is a change of its own: the next may fail, and what was cached before is false already.
            step = self._epochs.next(parsed.corpus)
            await write(self._runtime, [*step.commands, *head, *_frame(parsed, parts, first)])
            self._index(parsed, parts, first)
            self._epochs.written(step)
            self._runtime.progress()
            await asyncio.sleep(0)
            head = []
        surplus = [unlink(parsed, range(count, old))] if old > count else []
        done = ("HSET", key, "passages", count, "digest", parts.digest)
        step = self._epochs.next(parsed.corpus)
        try:
            await write(self._runtime, [*step.commands, *head, *_frame(parsed, parts, last), *surplus, done])
        except (RedisError, ShardFailed):
            await self._mark_unfinished(key)
            raise
        self._index(parsed, parts, last)
        self._remove_from_index(parsed, range(count, old))
        self._epochs.written(step)
        return step.epoch

    async def _mark_unfinished(self, key: str) -> None:
        """A tick goes on past what Redis refuses in it: the digest may be there, and a part of the passages not."""
        (reply,) = await self._runtime.calls([("HDEL", key, "digest")])
        if isinstance(reply, Exception) and not is_write_refusal(reply):
            why = f"{key!r} may be written in part ({reply}); 'shardqa corpus retokenise' mends it"
            self._runtime.log(why, "warning")

    async def _shorten(self, key: str, parsed: keys.DocKey, count: int, old: int) -> int:
        """Removes the end of a text much longer than the new one, which a single tick would take too long for.

        Returns how many passages may be left; what is left is as good as before, and no longer known to be whole.
        """
        while old - count > AT_ONCE:
            surplus = range(old - AT_ONCE, old)
            step = self._epochs.next(parsed.corpus)
            await write(self._runtime, [*step.commands, ("HDEL", key, "digest"), unlink(parsed, surplus)])
            self._remove_from_index(parsed, surplus)
            self._epochs.written(step)
            self._runtime.progress()
            old -= AT_ONCE
        return old

    def _old_count(self, parsed: keys.DocKey, stored: Stored) -> int:
        """Returns one more than the highest number of a passage that the document may have."""
        names = self._sync.index(parsed.corpus).passages_of(parsed.document)
        return max([stored.passages or 0, *(keys.parse_passage(name).n + 1 for name in names)])

    def _index(self, parsed: keys.DocKey, parts: Parts, first: int) -> None:
        self.check_dropping(parsed)
        index = self._sync.index_to_change(parsed.corpus)
        for n, p in enumerate(parts.passages[first : first + FRAME], first):
            info = None if n else parts.info
            name = keys.passage(parsed.corpus, parsed.document, n)
            index.put(name, parts.title, p.text, p.end, info, places.below(parts.title, p.path))
        self._lock.indexed(parsed)

    def _remove_from_index(self, parsed: keys.DocKey, numbers: Sequence[int]) -> None:
        index = self._sync.index_to_change(parsed.corpus)
        for n in numbers:
            index.remove(keys.passage(parsed.corpus, parsed.document, n))


def _frame(parsed: keys.DocKey, parts: Parts, first: int) -> list[tuple[Argument, ...]]:
    """Returns the commands that write FRAME passages and their tokens."""
    commands: list[tuple[Argument, ...]] = []
    for n, p in enumerate(parts.passages[first : first + FRAME], first):
        name = (parsed.corpus, parsed.document, n)
        marks = places.within(parts.places, p.start, p.end)
        place: tuple[Argument, ...] = ("text", p.text, "start", p.start, "end", p.end, "title", parts.title)
        place = (*place, "places", orjson.dumps(marks).decode() if marks else "")
        place = (*place, "path", places.below(parts.title, p.path))
        if not n:
            place = (*place, "bytes", parts.info.size, "metadata", parts.info.metadata)
        commands.append(("HSET", keys.passage(*name), *place))
        commands.append(("AI.TENSORSET", keys.tokens(*name), "INT32", len(p.ids), "BLOB", p.ids.tobytes()))
    return commands
