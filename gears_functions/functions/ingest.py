"""`Ingest`: cuts a document into passages, on the shard that holds it.

    RG.TRIGGERONKEY Ingest <doc key> title <t> text <t> source <s> metadata <json>
        places <json, see shardqa.places> origin <file or address> replace no

Replies when the document is searchable. Any other writer's `doc:` hash is seen to by settling.py.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import orjson
from redis import RedisError, ResponseError

from shardqa import keys
from shardqa.errors import BadDocument, IdTaken, ShardFailed
from shardqa.gears_functions import arguments, document_hash, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.document_hash import Fields, Stored
from shardqa.gears_functions.shard.document_lock import DocumentLock
from shardqa.gears_functions.shard.document_writer import DocumentWriter, Written
from shardqa.gears_functions.shard.removal import Removal
from shardqa.transient import is_write_refusal
from shardqa.worker.runtime import Runtime

USAGE = "Ingest <doc key> title <title> text <text> source <source> metadata <JSON object> …"


@dataclass(eq=False)
class Ingest:
    """The worker's loop only."""

    _runtime: Runtime
    _lock: DocumentLock
    _writer: DocumentWriter
    _removal: Removal
    _settle: Callable[[dict[str, Any]], Coroutine[Any, Any, bool]]
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)  # documents on their way in, whoever leaves

    async def ingest(self, record: Record) -> str:
        if len(record) < 2:
            raise BadDocument(f"no document was given; the form is RG.TRIGGERONKEY {USAGE}")
        keys.parse_doc(key := arguments.text(record[1], USAGE))
        await permissions.to_write(self._runtime, key)
        fields = await asyncio.to_thread(document_hash.from_words, key, record[2:])
        start = asyncio.Event()
        may_replace = document_hash.may_replace(record[2:])
        task = asyncio.create_task(self._reply(key, fields, may_replace, start))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Its client left or ran out of time. What has begun is finished, and a second try finds it done: tens of
            # megabytes take longer than a client waits, and from the beginning they would take as long again.
            if not start.is_set():
                task.cancel()
            raise

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._runtime.log(f"ingest failed: {error}", "verbose")  # its client, if still there, is told too

    async def _reply(self, key: str, fields: Fields, may_replace: bool, start: asyncio.Event) -> str:
        outcome = await self.put(key, fields, may_replace, start)
        reply = {
            "tag": self._runtime.hashtag(),
            "document": keys.parse_doc(key).document,
            "passages": outcome.passages,
            "characters": len(fields.text),
            "changed": outcome.is_changed,
            "epoch": outcome.epoch,
        }
        return orjson.dumps(reply).decode()

    async def put(self, key: str, fields: Fields, may_replace: bool, start: asyncio.Event) -> Written:
        """Writes a document; sets `start` once it is held. Raises what is wrong with it, and what Redis refuses."""
        try:
            return await self._put(key, fields, may_replace, start)
        except (RedisError, ShardFailed):
            # Its text may be there and its passages not; no event tells of it, since the writer writes quietly.
            task = asyncio.create_task(self._settle({"key": key}))
            self._tasks.add(task)
            task.add_done_callback(self._finished)
            raise

    async def _put(self, key: str, fields: Fields, may_replace: bool, start: asyncio.Event) -> Written:
        async with self._lock.hold(key) as doc:
            start.set()
            self._writer.check_dropping(doc)
            before = await document_hash.stored(self._runtime, key)
            if before is None:
                raise BadDocument(f"{key!r} holds another type than a hash; delete it first")
            if not may_replace:
                _check_origin(doc, fields, before)
            try:
                return await self._writer.put(key, doc, fields, before, ("HSET", key, *fields.pairs()))
            except ResponseError as error:
                if before.text is None and is_write_refusal(error):
                    await self._removal.remove(key, doc, [("UNLINK", key)])  # a new one is whole, or not there
                raise


def _check_origin(doc: keys.DocKey, fields: Fields, before: Stored) -> None:
    """Raises IdTaken unless the id is free, or its document is of the same origin or says the same."""
    if before.text is None or before.origin == fields.origin or before.text == fields.text.encode():
        return
    owner = f"comes from {before.origin}" if before.origin else "was put by a client, not from a file"
    raise IdTaken(
        f"the id {doc.document!r} is taken: its document {owner} and says something else; "
        "give these files ids of their own (--prefix NAME/), or --replace it"
    )
