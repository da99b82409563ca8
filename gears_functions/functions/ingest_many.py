"""`IngestMany`: documents of one corpus that are small, as rows of a table are: what one costs is paid for many.

    RG.TRIGGERONKEY IngestMany <doc key> <JSON>
        [[doc key, [field, value, …]], …], fields as Ingest takes them; the key that routes it is one of these

Replies when they are searchable: of each [passages, characters, changed], or null where it is to be sent alone, since
its slot is not here, it is refused, or a tick of which it was a part failed. Ingest then says why, or does it. The
worker's loop only.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from redis import RedisError

from shardqa import keys
from shardqa.errors import BadData, ShardqaError
from shardqa.gears_functions import arguments, document_hash, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.document_hash import Fields, Stored
from shardqa.gears_functions.functions.ingest import Ingest
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.document_writer import DocumentWriter, Written
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.new_documents import New, NewDocuments
from shardqa.worker.runtime import Runtime

USAGE = "IngestMany <doc key> <JSON: [[doc key, [field, value, …]], …]>"
MAX_DOCUMENTS = 1_000  # documents of one call
DOCUMENTS_AT_ONCE = 64  # held, cut and written together: the loop and others' documents wait some 10 ms
CHARACTERS = 65_536  # of their texts


@dataclass(frozen=True, slots=True)
class Sent:
    key: str
    words: list[str]
    fields: Fields
    digest: str


@dataclass(eq=False)
class IngestMany:
    """The worker's loop only."""

    _runtime: Runtime
    _sync: KeyspaceSync
    _lock: DocumentLock
    _writer: DocumentWriter
    _new: NewDocuments
    _ingest: Ingest
    _tasks: set[asyncio.Task[dict[str, Written]]] = field(default_factory=set)  # they end, whoever leaves

    async def ingest(self, record: Record) -> str:
        key, packed = arguments.words(record, USAGE, 2, 2)
        corpus = keys.parse_doc(key).corpus
        rows = await asyncio.to_thread(_read, corpus, packed)
        await self._sync.synced()  # what the index does not have is not there
        documents = {one.key: one for one in rows if one is not None}
        await permissions.to_write(self._runtime, *documents)
        outcomes_by_key: dict[str, Written] = {}
        for part in _parts(list(documents.values())):
            task = asyncio.create_task(self._put(corpus, part))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            outcomes_by_key |= await asyncio.shield(task)
            self._runtime.progress()
        outcomes = [None if one is None else _outcome(one, outcomes_by_key.get(one.key)) for one in rows]
        epoch = max((outcome.epoch for outcome in outcomes_by_key.values()), default=0)
        return orjson.dumps({"tag": self._runtime.hashtag(), "epoch": epoch, "documents": outcomes}).decode()

    async def _put(self, corpus: str, rows: Sequence[Sent]) -> dict[str, Written]:
        """Writes these documents; returns those that are there now. The caller sends the others alone."""
        others = list[Sent]()
        outcomes: dict[str, Written] = {}
        try:
            async with self._lock.hold_all([one.key for one in rows]) as documents:
                for doc in documents.values():
                    self._writer.check_dropping(doc)
                hashes = await document_hash.stored_of(self._runtime, [one.key for one in rows])
                new = list[New]()
                for row, before in zip(rows, hashes, strict=True):
                    if self._is_new(documents[row.key], before):
                        new.append(New(row.key, documents[row.key], row.fields, row.digest))
                    elif before is not None and _is_same(row, before):
                        outcomes[row.key] = Written(before.passages or 0, False, await self._sync.epoch(corpus))
                    else:
                        others.append(row)
                outcomes |= await self._new.put(corpus, new)
        except (RedisError, ShardqaError) as error:
            self._runtime.log(f"{len(rows)} documents of {corpus!r} go one by one: {error}", "verbose")
        for one in others:
            with suppress(RedisError, ShardqaError):  # sent alone it is told
                may_replace = document_hash.may_replace(one.words)
                outcomes[one.key] = await self._ingest.put(one.key, one.fields, may_replace, asyncio.Event())
        return outcomes

    def _is_new(self, doc: keys.DocKey, before: Stored | None) -> bool:
        is_known = self._sync.index(doc.corpus).table.count_of(doc.document) > 0
        return before is not None and before.text is None and before.passages is None and not is_known


def _is_same(row: Sent, before: Stored) -> bool:
    is_cut = before.digest == row.digest and before.passages is not None
    return is_cut and document_hash.encoded(row.fields) == before.fields


def _read(corpus: str, rows_json: str) -> list[Sent | None]:
    """Parses the documents; None stands for one that is refused, or names a key a second time. Any thread."""
    try:
        pairs = [(str(key), list(map(str, words))) for key, words in orjson.loads(rows_json)]
    except (orjson.JSONDecodeError, TypeError, ValueError) as error:
        raise BadData(f"the documents can't be read ({str(error)[:80]}); the form is RG.TRIGGERONKEY {USAGE}") from None
    if len(pairs) > MAX_DOCUMENTS:
        raise BadData(f"{len(pairs):,} documents were sent, more than {MAX_DOCUMENTS:,}; send them in parts")
    rows, names = list[Sent | None](), set[str]()
    for key, words in pairs:
        one = None
        with suppress(ShardqaError):
            if keys.parse_doc(key).corpus == corpus and key not in names:
                fields = document_hash.from_words(key, words)
                one = Sent(key, words, fields, fields.digest())
        names.add(key)
        rows.append(one)
    return rows


def _parts(rows: Sequence[Sent]) -> Iterator[Sequence[Sent]]:
    first = size = 0
    for n, one in enumerate(rows):
        if n - first == DOCUMENTS_AT_ONCE or (n > first and size + len(one.fields.text) > CHARACTERS):
            yield rows[first:n]
            first, size = n, 0
        size += len(one.fields.text)
    if first < len(rows):
        yield rows[first:]


def _outcome(row: Sent, outcome: Written | None) -> list[Any] | None:
    return None if outcome is None else [outcome.passages, len(row.fields.text), outcome.is_changed]
