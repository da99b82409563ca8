"""Documents of any writer: makes the passages agree with a `doc:` key that someone wrote or removed.

The keyspace events of `doc:*` come to `settle`; a key that was deleted or expired takes its passages with it. Fields
are never written: the hash may be gone or another by now, and the next event tells. The worker's loop only.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from redis import ResponseError

from shardqa import keys
from shardqa.errors import BadDocument, BadDocumentId, BadKey, DocumentTooLarge, ShardFailed
from shardqa.gears_functions import document_hash
from shardqa.gears_functions.document_hash import Incoming
from shardqa.gears_functions.shard import slots
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.document_writer import DocumentWriter
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.pairs import Pairs
from shardqa.gears_functions.shard.questions import ActiveQuestions
from shardqa.gears_functions.shard.removal import Removal
from shardqa.gears_functions.shard.retries import MOVING_SECONDS
from shardqa.gears_functions.writes import refusal
from shardqa.transient import is_between_shards, is_transient, is_write_refusal
from shardqa.worker.runtime import Runtime

SCAN_COUNT = 100  # keys looked at per SCAN
QUIET = 0.02  # seconds without a question after which another document is cut anew
YIELD_SECONDS = 0.2  # after which it is all the same
REFUSED_SECONDS = 1.0  # between looks whether Redis stores anything again
SETTLE_PAUSE = 0.001  # seconds between documents, so that questions go ahead of looking at what rarely differs
REMOVALS = ("del", "expired", "evicted", "rename_from")


@dataclass(eq=False)
class Settling:
    _runtime: Runtime
    _sync: KeyspaceSync
    _lock: DocumentLock
    _writer: DocumentWriter
    _removal: Removal
    _questions: ActiveQuestions
    _pairs: Pairs
    _refused: dict[str, None] = field(default_factory=dict)  # documents' keys that were written in part at most
    _settling: asyncio.Task[None] | None = None  # these, one after another
    _cutting: set[asyncio.Task[None]] = field(default_factory=set)  # held until they are done

    async def settle(self, event: dict[str, Any]) -> bool:
        """Returns whether passages were written."""
        key = event["key"]
        if isinstance(key, bytes):
            self._runtime.log(f"{key[:120]!r} is left alone: its name is not UTF-8", "warning")
            return False
        try:
            doc = keys.parse_doc(key)
            if self._sync.dropped.covers(doc.corpus, doc.tag):
                if event.get("event") not in REMOVALS:
                    await self._runtime.call("UNLINK", key)  # others write into a corpus that is being dropped
                return False
            return await self._agree_once_possible(key, doc)
        except BadKey as error:
            self._runtime.log(f"left alone: {error}", "warning")
        except ResponseError as error:
            if not is_transient(error):
                raise
            # Its slot is between shards: what belongs to it moves along, and is settled where it arrives.
            if is_write_refusal(error):
                self._settle_once_stored(key)
            self._runtime.log(f"{key!r} is left alone: {error}", "verbose")
        return False

    def _settle_once_stored(self, key: str) -> None:
        """Has a document settled again when Redis stores anything: what was refused leaves it half written."""
        self._refused[key] = None
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self._settle_refused())

    async def _settle_refused(self) -> None:
        while self._refused:
            await asyncio.sleep(REFUSED_SECONDS)
            for key in list(self._refused):
                if self._runtime.role() == "master" and await refusal(self._runtime) is not None:
                    break
                del self._refused[key]
                await self._settle_again(key)

    async def _agree_once_possible(self, key: str, doc: keys.DocKey) -> bool:
        """Settles a document; tries again while the shard's tag is moving and the document stays.

        Raises redis.ResponseError.
        """
        while True:
            try:
                async with self._lock.hold(key):
                    return await self._agree(key, doc)
            except ResponseError as error:
                if not is_between_shards(error) or not (await slots.look(self._runtime)).holds(key):
                    raise
            await asyncio.sleep(MOVING_SECONDS)

    def cut_anew(self, corpus: str) -> None:
        """Begins to settle the corpus' documents, which another tokenizer shall cut from now on."""
        if self._runtime.role() == "master":
            task = asyncio.create_task(self.settle_all(corpus))
            self._cutting.add(task)
            task.add_done_callback(self._cutting.discard)

    async def settle_all(self, corpus: str = "*") -> None:
        """Settles every document, one after another: events are lost while the worker is dead, and at a failover; after
        an upgrade that splits otherwise (`splitting.VERSION`), all are cut anew."""
        documents, cursor = set[str](), b"0"
        while True:
            cursor, page = await self._runtime.call("SCAN", cursor, "MATCH", keys.docs(corpus), "COUNT", SCAN_COUNT)
            names = {name.decode("utf-8", "replace") for name in page}
            for name in names:
                await self._settle_again(name)
            documents |= names
            if cursor == b"0":
                break
        for name, index in list(self._sync.corpora.items()):
            for document in index.table.documents() if corpus in (name, "*") else ():
                if keys.doc(name, document) not in documents:
                    await self._settle_again(keys.doc(name, document))

    async def _settle_again(self, key: str) -> None:
        try:
            keys.parse_doc(key)
            if await self.settle({"key": key}):
                await self._questions.quiet(QUIET, YIELD_SECONDS)
        except BadKey:
            return  # said when it was written
        except (ResponseError, ShardFailed, BadDocumentId) as error:
            self._runtime.log(f"{key!r} can't be settled: {error}", "verbose")
        await asyncio.sleep(SETTLE_PAUSE)

    async def _agree(self, key: str, doc: keys.DocKey) -> bool:
        before = await document_hash.stored(self._runtime, key)
        if before is not None and before.is_huge:
            most = f"more than {document_hash.MAX_BYTES:,} bytes; shorten its text or its title"
            self._runtime.log(f"not searchable: document {key!r} has {most}", "warning")
        if before is None or before.text is None:
            self._writer.quarantine.forget(key)
            await self._removal.unfit(key, doc)
            return False
        try:
            fields = await asyncio.to_thread(document_hash.from_hash, key, before.fields)
            digest = await asyncio.to_thread(fields.digest, await self._pairs.cut_by(doc.corpus))
            return (await self._writer.put(Incoming(key, doc, fields, digest), before)).is_changed
        except (BadDocument, DocumentTooLarge) as error:
            self._runtime.log(f"not searchable: {error}", "warning")
            await self._removal.unfit(key, doc)
            return False
