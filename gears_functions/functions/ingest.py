"""`Ingest` and `IngestMany`: cut documents into passages, on the shard that holds them.

    RG.TRIGGERONKEY Ingest <doc key> title <t> text <t> source <s> metadata <json>
        places <json, see shardqa.places> origin <file or address> replace no
    RG.TRIGGERONKEY IngestMany <doc key> <JSON>
        [[doc key, [field, value, …]], …] of one corpus and small, as rows of a table are: what one costs is paid for
        many; the key that routes it is one of these

Both reply when the documents are searchable. IngestMany tells of each [passages, characters, changed], or null where it
is to be sent alone, since its slot is not here, it is refused, or a tick of which it was a part failed. Ingest then
says why, or does it. Any other writer's `doc:` hash is seen to by settling.py. The worker's loop only.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import orjson
from redis import RedisError, ResponseError

from shardqa import keys
from shardqa.errors import BadData, BadDocument, IdTaken, ShardFailed, ShardqaError
from shardqa.gears_functions import arguments, document_hash, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.document_hash import Incoming, Stored
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.document_writer import DocumentWriter, Written
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.pairs import Pairs
from shardqa.gears_functions.shard.removal import Removal
from shardqa.transient import is_write_refusal
from shardqa.worker.runtime import Runtime

USAGE = "Ingest <doc key> title <title> text <text> source <source> metadata <JSON object> …"
USAGE_OF_MANY = "IngestMany <doc key> <JSON: [[doc key, [field, value, …]], …]>"
MAX_DOCUMENTS = 1_000  # documents of one call
DOCUMENTS_AT_ONCE = 64  # held, cut and written together: the loop and others' documents wait some 10 ms
CHARACTERS = 65_536  # of their texts

T = TypeVar("T")


@dataclass(eq=False)
class Ingest:
    _runtime: Runtime
    _sync: KeyspaceSync
    _lock: DocumentLock
    _writer: DocumentWriter
    _removal: Removal
    _settle: Callable[[dict[str, Any]], Coroutine[Any, Any, bool]]
    _pairs: Pairs
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)  # documents on their way in, whoever leaves

    async def one(self, record: Record) -> str:
        if len(record) < 2:
            raise BadDocument(f"no document was given; the form is RG.TRIGGERONKEY {USAGE}")
        doc = keys.parse_doc(key := arguments.text(record[1], USAGE))
        await permissions.to_write(self._runtime, key)
        cut_by = await self._pairs.cut_by(doc.corpus)
        sent = await asyncio.to_thread(Incoming.of_words, key, record[2:], cut_by)
        outcome = await self._to_its_end(partial(self._put, sent))
        return arguments.reply(
            self._runtime,
            document=doc.document,
            passages=outcome.passages,
            characters=len(sent.fields.text),
            changed=outcome.is_changed,
            epoch=outcome.epoch,
        )

    async def many(self, record: Record) -> str:
        key, packed = arguments.words(record, USAGE_OF_MANY, 2, 2)
        corpus = keys.parse_doc(key).corpus
        rows = await asyncio.to_thread(_read, corpus, packed, await self._pairs.cut_by(corpus))
        await self._sync.synced()  # what the index does not have is not there
        documents = [one for one in rows if one is not None]
        await permissions.to_write(self._runtime, *(one.key for one in documents))
        written: dict[str, Written] = {}
        for part in _parts(documents):
            written |= await self._to_its_end(partial(self._put_many, part))
            self._runtime.progress()
        outcomes = [None if one is None else _outcome(one, written.get(one.key)) for one in rows]
        epoch = max((outcome.epoch for outcome in written.values()), default=0)
        return arguments.reply(self._runtime, epoch=epoch, documents=outcomes)

    async def _to_its_end(self, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]]) -> T:
        """Awaits work that sets its event once it has begun. What has begun is finished, also where the client leaves.

        A second try finds it done: tens of megabytes take longer than a client waits, and from the beginning they would
        take as long again.
        """
        begun = asyncio.Event()
        task = self._start(work(begun))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not begun.is_set():
                task.cancel()
            raise

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._runtime.log(f"ingest failed: {error}", "verbose")  # its client, if still there, is told too

    async def _put_many(self, rows: Sequence[Incoming], begun: asyncio.Event) -> dict[str, Written]:
        """Writes these documents; returns those that are there now, by key. The client sends the others alone."""
        others = list[Incoming]()
        outcomes: dict[str, Written] = {}
        try:
            async with self._lock.hold_all([one.key for one in rows]):
                begun.set()
                new = list[Incoming]()
                for one in rows:
                    self._writer.check_dropping(one.doc)
                hashes = await document_hash.stored_of(self._runtime, [one.key for one in rows])
                for one, before in zip(rows, hashes, strict=True):
                    if self._is_new(one, before):
                        new.append(one)
                    elif before is not None and _is_same(one, before):
                        outcomes[one.key] = Written(before.passages or 0, False, await self._sync.epoch(one.doc.corpus))
                    else:
                        others.append(one)
                outcomes |= await self._writer.put_new(rows[0].doc.corpus, new)
            await self._settle_changed([one for one in rows if one.key in outcomes])
        except (RedisError, ShardqaError) as error:
            self._runtime.log(f"{len(rows)} documents of {rows[0].doc.corpus!r} go one by one: {error}", "verbose")
        for one in others:
            with suppress(RedisError, ShardqaError):  # sent alone it is told
                outcomes[one.key] = await self._put(one, begun)
        return outcomes

    def _is_new(self, one: Incoming, before: Stored | None) -> bool:
        is_known = self._sync.index(one.doc.corpus).table.count_of(one.doc.document) > 0
        return before is not None and before.text is None and before.passages is None and not is_known

    async def _put(self, one: Incoming, begun: asyncio.Event) -> Written:
        """Writes a document. Raises what is wrong with it, and what Redis refuses."""
        try:
            outcome = await self._put_held(one, begun)
            await self._settle_changed([one])
            return outcome
        except (RedisError, ShardFailed):
            # Its text may be there and its passages not; no event tells of it, since the writer writes quietly.
            self._start(self._settle({"key": one.key}))
            raise

    async def _settle_changed(self, written: Sequence[Incoming]) -> None:
        """Has cut anew whose corpus got another pair meanwhile: its documents were looked through before these came."""
        for one in written:
            if one.cut_by != await self._pairs.cut_by(one.doc.corpus):
                await self._settle({"key": one.key})

    async def _put_held(self, one: Incoming, begun: asyncio.Event) -> Written:
        async with self._lock.hold(one.key):
            begun.set()
            self._writer.check_dropping(one.doc)
            before = await document_hash.stored(self._runtime, one.key)
            if before is None:
                raise BadDocument(f"{one.key!r} holds another type than a hash; delete it first")
            if not one.may_replace:
                _check_origin(one, before)
            try:
                return await self._writer.put(one, before, ("HSET", one.key, *one.fields.pairs()))
            except ResponseError as error:
                if before.text is None and is_write_refusal(error):
                    await self._removal.remove(one.key, one.doc, [("UNLINK", one.key)])  # a new one is whole, or absent
                raise


def _check_origin(one: Incoming, before: Stored) -> None:
    """Raises IdTaken unless the id is free, or its document is of the same origin or says the same."""
    if before.text is None or before.origin == one.fields.origin or before.text == one.fields.text.encode():
        return
    owner = f"comes from {before.origin}" if before.origin else "was put by a client, not from a file"
    raise IdTaken(
        f"the id {one.doc.document!r} is taken: its document {owner} and says something else; "
        "give these files ids of their own (--prefix NAME/), or --replace it"
    )


def _is_same(one: Incoming, before: Stored) -> bool:
    is_cut = before.digest == one.digest and before.passages is not None
    return is_cut and document_hash.encoded(one.fields) == before.fields


def _read(corpus: str, rows_json: str, cut_by: str) -> list[Incoming | None]:
    """Parses the documents; None stands for one that is refused, or names a key a second time. Any thread."""
    try:
        pairs = [(str(key), list(map(str, words))) for key, words in orjson.loads(rows_json)]
    except (orjson.JSONDecodeError, TypeError, ValueError) as error:
        form = f"the form is RG.TRIGGERONKEY {USAGE_OF_MANY}"
        raise BadData(f"the documents can't be read ({str(error)[:80]}); {form}") from None
    if len(pairs) > MAX_DOCUMENTS:
        raise BadData(f"{len(pairs):,} documents were sent, more than {MAX_DOCUMENTS:,}; send them in parts")
    rows, names = list[Incoming | None](), set[str]()
    for key, words in pairs:
        one = None
        with suppress(ShardqaError):
            if keys.parse_doc(key).corpus == corpus and key not in names:
                one = Incoming.of_words(key, words, cut_by)
        names.add(key)
        rows.append(one)
    return rows


def _parts(rows: Sequence[Incoming]) -> Iterator[Sequence[Incoming]]:
    first = size = 0
    for n, one in enumerate(rows):
        if n - first == DOCUMENTS_AT_ONCE or (n > first and size + len(one.fields.text) > CHARACTERS):
            yield rows[first:n]
            first, size = n, 0
        size += len(one.fields.text)
    if first < len(rows):
        yield rows[first:]


def _outcome(one: Incoming, outcome: Written | None) -> list[Any] | None:
    return None if outcome is None else [outcome.passages, len(one.fields.text), outcome.is_changed]
