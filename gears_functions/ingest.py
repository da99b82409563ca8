"""`Ingest`: cuts a document into passages, on the shard that holds it.

    RG.TRIGGERONKEY Ingest <doc key> title <t> text <t> source <s> metadata <json>
        places <json, see shardqa.places> origin <file or address> replace no

Replies when the document is searchable. Any other writer's `doc:` hash comes here too, through the keyspace events of
`doc:*`. All that a document becomes is written in one tick, which replicas and the AOF see as one MULTI; a big document
takes several, and then its `digest` comes last: without it the document counts as not done and is done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
from redis import RedisError, ResponseError

from shardqa import keys, places
from shardqa.errors import (
    BadDocument,
    BadDocumentId,
    BadKey,
    CorpusDropping,
    DocumentTooLarge,
    IdTaken,
    ShardFailed,
)
from shardqa.gears_functions import arguments, documents, permissions
from shardqa.gears_functions.delete import AT_ONCE, Delete
from shardqa.gears_functions.documents import FIELDS, Fields
from shardqa.gears_functions.index.catalogue import OfDocument
from shardqa.gears_functions.runtime import raise_first
from shardqa.gears_functions.splitting import Passage, split_in_slices
from shardqa.transient import is_transient, is_write_refusal

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.runtime import Argument
    from shardqa.gears_functions.shard.state import ShardState

SCAN_COUNT = 100  # keys looked at per SCAN
SETTLE_PAUSE = 0.001  # seconds between documents, so that questions go ahead of looking at what rarely differs
FRAME = 64  # passages written in one tick and indexed before the loop serves others: about 10 ms
REMOVALS = ("del", "expired", "evicted", "rename_from")
USAGE = "Ingest <doc key> title <title> text <text> source <source> metadata <JSON object> …"


@dataclass(frozen=True, slots=True)
class Stored:
    """A `doc:` hash."""

    fields: list[bytes | None]  # in the order of FIELDS
    digest: str  # of what its passages were made of; empty when they are not, or not all, there
    passages: int | None  # as many as there may be; None: never ingested

    @property
    def text(self) -> bytes | None:
        return self.fields[FIELDS.index("text")]

    @property
    def origin(self) -> str:
        return (self.fields[FIELDS.index("origin")] or b"").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class New:
    """What a document becomes."""

    title: str
    digest: str
    passages: list[Passage]
    places: places.Raw
    of_document: OfDocument


class Ingest:
    """The worker's loop only; cutting into passages runs beside it."""

    def __init__(self, shard: ShardState, delete: Delete) -> None:
        self._shard = shard
        self._delete = delete
        self._tasks: set[asyncio.Task[str]] = set()  # documents on their way in, whether or not a client waits

    async def ingest(self, record: Record) -> str:
        if len(record) < 2:
            raise BadDocument(f"no document was given; the form is RG.TRIGGERONKEY {USAGE}")
        key = arguments.text(record[1], USAGE)
        keys.parse_doc(key)
        await permissions.to_write(self._shard.runtime, key)
        fields = documents.from_words(key, record[2:])
        begun = asyncio.Event()
        replace = documents.may_replace(record[2:])
        task = asyncio.create_task(self._ingest_given(key, fields, replace, begun))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Its client left or ran out of time. What has begun is finished, and a second try finds it done: tens of
            # megabytes take longer than a client waits, and from the beginning they would take as long again.
            if not begun.is_set():
                task.cancel()
            raise

    def _finished(self, task: asyncio.Task[str]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._shard.runtime.log(f"ingest failed: {error}", "verbose")  # its client, if still there, is told too

    async def _ingest_given(self, key: str, fields: Fields, replace: bool, begun: asyncio.Event) -> str:
        async with self._shard.document(key) as parsed:
            begun.set()
            self._check_dropped(parsed)
            stored = await self._stored(key)
            if stored is None:
                raise BadDocument(f"{key!r} holds another type than a hash; delete it first")
            if not replace:
                _check_origin(parsed, fields, stored)
            return await self._ingest(key, parsed, fields, stored, ("HSET", key, *fields.pairs()))

    async def again(self, key: str) -> bool:
        """Cuts a document anew; whether its passages or word pieces were others than are stored."""
        async with self._shard.document(key) as parsed:
            stored = await self._stored(key)
            if stored is None or stored.text is None or self._shard.dropped.covers(parsed.corpus, parsed.tag):
                return False
            fields = documents.from_hash(key, stored.fields)
            if stored.passages is not None and await self._is_as_stored(parsed, await self._split(fields), stored):
                return False
            await self._ingest(key, parsed, fields, replace(stored, digest=""))
            return True

    async def _is_as_stored(self, parsed: keys.DocKey, passages: Sequence[Passage], stored: Stored) -> bool:
        if not stored.digest or stored.passages != len(passages):
            return False
        for first in range(0, len(passages), FRAME):
            frame = list(enumerate(passages[first : first + FRAME], first))
            names = [(parsed.corpus, parsed.document, n) for n, _ in frame]
            commands: list[tuple[Argument, ...]] = []
            for name in names:
                commands.append(("HMGET", keys.passage(*name), "start", "end", "text"))
                commands.append(("AI.TENSORGET", keys.tokens(*name), "BLOB"))
            replies = await self._shard.runtime.calls(commands)
            for passing in replies:
                if isinstance(passing, Exception) and is_transient(passing):
                    raise passing  # its slot is leaving: what has gone ahead is no difference
            for (_, p), place, blob in zip(frame, replies[::2], replies[1::2], strict=True):
                wanted = [str(p.start).encode(), str(p.end).encode(), p.text.encode()]
                if place != wanted or blob != p.ids.tobytes():
                    return False
        return True

    async def settle(self, event: dict[str, Any]) -> None:
        """Makes the passages agree with a `doc:` key that someone wrote or removed."""
        key = event["key"]
        if isinstance(key, bytes):
            self._shard.runtime.log(f"{key[:120]!r} is left alone: its name is not UTF-8", "warning")
            return
        try:
            parsed = keys.parse_doc(key)
            if self._shard.dropped.covers(parsed.corpus, parsed.tag):
                await self._goes_too(event)
                return
            async with self._shard.document(key):
                await self._settle(key, parsed)
        except BadKey as error:
            self._shard.runtime.log(f"left alone: {error}", "warning")
        except ResponseError as error:
            if not is_transient(error):
                raise
            # Its slot is between shards: what belongs to it moves along, and is settled where it arrives.
            self._shard.runtime.log(f"{key!r} is left alone: {error}", "verbose")

    async def _goes_too(self, event: dict[str, Any]) -> None:
        """What others write into a corpus that is being dropped."""
        if event.get("event") not in REMOVALS:
            await self._shard.runtime.call("UNLINK", event["key"])

    async def settle_all(self) -> None:
        """Settles every document, one after another: events are lost while the worker is dead, and at a failover."""
        seen, cursor = set[str](), b"0"
        while True:
            cursor, found = await self._shard.runtime.call("SCAN", cursor, "MATCH", "doc:*", "COUNT", SCAN_COUNT)
            names = {name.decode("utf-8", "replace") for name in found}
            for name in names:
                await self._settle_again(name)
            seen |= names
            if cursor == b"0":
                break
        for corpus, index in list(self._shard.corpora.items()):
            for document in index.document_ids():
                if keys.doc(corpus, document) not in seen:
                    await self._settle_again(keys.doc(corpus, document))

    async def _settle_again(self, key: str) -> None:
        try:
            keys.parse_doc(key)
            await self.settle({"key": key})
        except BadKey:
            return  # said when it was written
        except (ResponseError, ShardFailed, BadDocumentId) as error:
            self._shard.runtime.log(f"{key!r} can't be settled: {error}", "verbose")
        await asyncio.sleep(SETTLE_PAUSE)

    async def _settle(self, key: str, parsed: keys.DocKey) -> None:
        """Never writes the fields themselves: the hash may be gone or another by now, and the next event tells."""
        stored = await self._stored(key)
        if stored is None or stored.text is None:
            await self._delete.passages_of(key, parsed)
            return
        try:
            await self._ingest(key, parsed, documents.from_hash(key, stored.fields), stored)
        except (BadDocument, DocumentTooLarge) as error:
            self._shard.runtime.log(f"not searchable: {error}", "warning")
            await self._delete.passages_of(key, parsed)

    async def _stored(self, key: str) -> Stored | None:
        """What is at `key` now; None for another type than a hash."""
        try:
            *fields, digest, count = await self._shard.runtime.call("HMGET", key, *FIELDS, "digest", "passages")
        except ResponseError as error:
            if str(error).startswith("WRONGTYPE"):
                return None
            raise
        return Stored(fields, (digest or b"").decode("ascii", "replace"), documents.count_of_passages(count))

    # ---- one document, held

    async def _ingest(
        self, key: str, parsed: keys.DocKey, fields: Fields, stored: Stored, *first: tuple[Argument, ...]
    ) -> str:
        """`first` are commands that go ahead of the passages."""
        digest = await asyncio.to_thread(fields.digest)
        if stored.digest == digest and stored.passages is not None:
            if first and documents.encoded(fields) != stored.fields:
                await self._shard.write(first)  # the source may change alone: no passage depends on it
            return self._reply(parsed, fields, stored.passages, False, await self._shard.epoch(parsed.corpus))
        passages = await self._split(fields)
        if not passages:
            raise BadDocument(f"document {key!r} has no words, only blanks and control characters; give it a text")
        old = self._old_count(parsed, stored)
        if not first:
            await self._demand_here(parsed, old)
        of_document = OfDocument(len(fields.text.encode()), fields.metadata)
        new = New(fields.title, digest, passages, places.check(fields.places), of_document)
        epoch = await self._write(key, parsed, new, old, list(first))
        return self._reply(parsed, fields, len(passages), True, epoch)

    async def _demand_here(self, parsed: keys.DocKey, count: int) -> None:
        """Raises what Redis says where a part has gone ahead to another shard. An event would else write what is left
        here, in vain, and each write is an event again."""
        for first in range(0, count, FRAME):
            names = [(parsed.corpus, parsed.document, n) for n in range(first, min(first + FRAME, count))]
            commands = [("EXISTS", name(*of)) for of in names for name in (keys.passage, keys.tokens)]
            raise_first(commands, await self._shard.runtime.calls(commands))

    async def _split(self, fields: Fields) -> list[Passage]:
        """In slices: threads are few, and whole big documents would keep small ones out until their deadline."""
        marked = places.asides(places.check(fields.places), len(fields.text))
        slices, passages = split_in_slices(fields.text, self._shard.tokenizer, marked), list[Passage]()
        while (part := await asyncio.to_thread(next, slices, None)) is not None:
            passages += part
            self._shard.runtime.progress()
        return passages

    def _reply(self, parsed: keys.DocKey, fields: Fields, passages: int, changed: bool, epoch: int) -> str:
        return orjson.dumps(
            {
                "tag": self._shard.runtime.hashtag(),
                "document": parsed.document,
                "passages": passages,
                "characters": len(fields.text),
                "changed": changed,
                "epoch": epoch,
            }
        ).decode()

    async def _write(self, key: str, parsed: keys.DocKey, new: New, old: int, head: list[tuple[Argument, ...]]) -> int:
        """Writes passages in place of `old` ones and returns the epoch from which they are found."""
        shard, count = self._shard, len(new.passages)
        await shard.epoch(parsed.corpus)
        old = await self._shorten(key, parsed, count, old)
        # Until the last frame `passages` covers all that may be there, so that a later run can remove it.
        head += [("HSET", key, "passages", max(old, count)), ("HDEL", key, "digest")]
        last = (count - 1) // FRAME * FRAME
        for first in range(0, last, FRAME):
            # Each frame is a change of its own: the next may fail, and what was cached before is false already.
            tag, epoch, announce = shard.epochs.next(parsed.corpus)
            await shard.write([*announce, *head, *_frame(parsed, new, first)])
            self._index(parsed, new, first)
            shard.epochs.written(parsed.corpus, tag, epoch)
            shard.runtime.progress()
            await asyncio.sleep(0)
            head = []
        surplus = [self._delete.unlink(parsed, range(count, old))] if old > count else []
        done = ("HSET", key, "passages", count, "digest", new.digest)
        tag, epoch, announce = shard.epochs.next(parsed.corpus)
        try:
            await shard.write([*announce, *head, *_frame(parsed, new, last), *surplus, done])
        except (RedisError, ShardFailed):
            await self._is_not_done(key)
            raise
        self._index(parsed, new, last)
        for n in range(count, old):
            shard.index_to_change(parsed.corpus).remove(keys.passage(parsed.corpus, parsed.document, n))
        shard.epochs.written(parsed.corpus, tag, epoch)
        return epoch

    async def _is_not_done(self, key: str) -> None:
        """A tick goes on past what Redis refuses in it: the digest may be there, and a part of the passages not."""
        (reply,) = await self._shard.runtime.calls([("HDEL", key, "digest")])
        if isinstance(reply, Exception) and not is_write_refusal(reply):
            why = f"{key!r} may be written in part ({reply}); 'shardqa retokenise' mends it"
            self._shard.runtime.log(why, "warning")

    async def _shorten(self, key: str, parsed: keys.DocKey, count: int, old: int) -> int:
        """Removes the end of a text much longer than the new one, which a single tick would take too long for.

        Returns how many passages may be left; what is left is as good as before, and no longer known to be whole.
        """
        shard = self._shard
        while old - count > AT_ONCE:
            gone = range(old - AT_ONCE, old)
            tag, epoch, announce = shard.epochs.next(parsed.corpus)
            await shard.write([*announce, ("HDEL", key, "digest"), self._delete.unlink(parsed, gone)])
            for n in gone:
                shard.index_to_change(parsed.corpus).remove(keys.passage(parsed.corpus, parsed.document, n))
            shard.epochs.written(parsed.corpus, tag, epoch)
            shard.runtime.progress()
            old -= AT_ONCE
        return old

    def _old_count(self, parsed: keys.DocKey, stored: Stored) -> int:
        """One more than the highest number of a passage that the document may have."""
        known = self._shard.index(parsed.corpus).passages_of(parsed.document)
        return max([stored.passages or 0, *(keys.parse_passage(key).n + 1 for key in known)])

    def _index(self, parsed: keys.DocKey, new: New, first: int) -> None:
        self._check_dropped(parsed)
        index = self._shard.index_to_change(parsed.corpus)
        for n, p in enumerate(new.passages[first : first + FRAME], first):
            of_document = None if n else new.of_document
            index.put(keys.passage(parsed.corpus, parsed.document, n), new.title, p.text, p.end, of_document)
        self._shard.indexed(parsed)

    def _check_dropped(self, parsed: keys.DocKey) -> None:
        if self._shard.dropped.covers(parsed.corpus, parsed.tag):
            raise CorpusDropping(
                f"corpus {parsed.corpus!r} is being dropped, and its earlier documents are still being removed; "
                "add to it again once that is done"
            )


def _check_origin(parsed: keys.DocKey, fields: Fields, stored: Stored) -> None:
    """Raises IdTaken unless the id is free, or its document is of the same origin or says the same."""
    if stored.text is None or stored.origin == fields.origin or stored.text == fields.text.encode():
        return
    owner = f"comes from {stored.origin}" if stored.origin else "was put by a client, not from a file"
    raise IdTaken(
        f"the id {parsed.document!r} is taken: its document {owner} and says something else; "
        "give these files ids of their own (--prefix NAME/), or --replace it"
    )


def _frame(parsed: keys.DocKey, new: New, first: int) -> list[tuple[Argument, ...]]:
    """The commands that write FRAME passages and their tokens."""
    commands: list[tuple[Argument, ...]] = []
    for n, p in enumerate(new.passages[first : first + FRAME], first):
        name = (parsed.corpus, parsed.document, n)
        marks = places.within(new.places, p.start, p.end)
        place: tuple[Argument, ...] = ("text", p.text, "start", p.start, "end", p.end, "title", new.title)
        place = (*place, "places", orjson.dumps(marks).decode() if marks else "")
        if not n:
            place = (*place, "bytes", new.of_document.size, "metadata", new.of_document.metadata)
        commands.append(("HSET", keys.passage(*name), *place))
        commands.append(("AI.TENSORSET", keys.tokens(*name), "INT32", len(p.ids), "BLOB", p.ids.tobytes()))
    return commands
