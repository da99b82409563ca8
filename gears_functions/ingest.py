"""A document becomes passages, on the shard that holds it.

    RG.TRIGGERONKEY Ingest <doc key> title <t> text <t> source <s> metadata <json>

Replies when the document is searchable. Any other writer's `doc:` hash comes here too, through the keyspace events of
`doc:*`. All that a document becomes is written in one tick, which replicas and the AOF see as one MULTI; a big document
takes several, and then its `digest` comes last: without it the document counts as not done and is done again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from redis import ResponseError

from shardqa import keys
from shardqa.errors import BadDocument, BadKey, DocumentTooLarge
from shardqa.gears_functions import arguments, documents
from shardqa.gears_functions.delete import Delete
from shardqa.gears_functions.documents import FIELDS, Fields
from shardqa.gears_functions.splitting import Passage, split

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.runtime import Argument
    from shardqa.gears_functions.shard import Shard

FRAME = 256  # passages written in one tick: about 5 ms of Redis' time
USAGE = "Ingest <doc key> title <title> text <text> source <source> metadata <JSON object>"


@dataclass(frozen=True, slots=True)
class Before:
    """What the `doc:` hash said of itself."""

    digest: str
    passages: int | None  # None: never ingested
    source: bytes
    metadata: bytes


class Ingest:
    """The worker's loop only; cutting into passages runs beside it."""

    def __init__(self, shard: Shard, delete: Delete) -> None:
        self._shard = shard
        self._delete = delete

    async def ingest(self, record: Record) -> str:
        if len(record) < 2:
            raise BadDocument(f"no document was given; the form is RG.TRIGGERONKEY {USAGE}")
        key = arguments.text(record[1], USAGE)
        keys.parse_doc(key)
        fields = documents.from_words(key, record[2:])
        async with self._shard.document(key) as parsed:
            return await self._ingest(key, parsed, fields)

    async def settle(self, event: dict[str, Any]) -> None:
        """Makes the passages agree with a `doc:` key that someone wrote or removed."""
        key = event["key"]
        if isinstance(key, bytes):
            self._shard.runtime.log(f"{key[:120]!r} is left alone: its name is not UTF-8", "warning")
            return
        try:
            async with self._shard.document(key) as parsed:
                await self._settle(key, parsed)
        except BadKey as error:
            self._shard.runtime.log(f"left alone: {error}", "warning")

    async def _settle(self, key: str, parsed: keys.DocKey) -> None:
        stored = await self._stored(key)
        if stored is None:
            await self._delete.passages_of(key, parsed)
            return
        try:
            fields = documents.from_hash(key, stored)
        except (BadDocument, DocumentTooLarge) as error:
            self._shard.runtime.log(f"not searchable: {error}", "warning")
            await self._delete.passages_of(key, parsed)
            return
        await self._ingest(key, parsed, fields)

    async def _stored(self, key: str) -> list[bytes | None] | None:
        """The fields of a `doc:` hash; None when there is no such hash, or none with a text."""
        try:
            values: list[bytes | None] = await self._shard.runtime.call("HMGET", key, *FIELDS)
        except ResponseError as error:
            if str(error).startswith("WRONGTYPE"):
                return None
            raise
        return None if values[FIELDS.index("text")] is None else values

    # ---- one document, held

    async def _ingest(self, key: str, parsed: keys.DocKey, fields: Fields) -> str:
        digest = await asyncio.to_thread(fields.digest)
        before = await self._before(key)
        if before.digest == digest and before.passages is not None:
            await self._update_rest(key, fields, before)
            epoch = await self._shard.epoch(parsed.corpus)
            return self._reply(parsed, fields, before.passages, False, epoch)
        passages = await asyncio.to_thread(split, fields.text, self._shard.tokenizer)
        if not passages:
            raise BadDocument(f"document {key!r} has no words, only blanks and control characters; give it a text")
        epoch = await self._write(key, parsed, fields, digest, passages, before)
        return self._reply(parsed, fields, len(passages), True, epoch)

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

    async def _before(self, key: str) -> Before:
        try:
            values = await self._shard.runtime.call("HMGET", key, "digest", "passages", "source", "metadata")
        except ResponseError as error:
            if str(error).startswith("WRONGTYPE"):
                raise BadDocument(f"{key!r} holds another type than a hash; delete it first") from None
            raise
        digest, count, source, metadata = values
        passages = int(count) if count is not None and count.isdigit() else None
        return Before((digest or b"").decode("ascii", "replace"), passages, source or b"", metadata or b"")

    async def _update_rest(self, key: str, fields: Fields, before: Before) -> None:
        """Source and metadata may change alone: no passage and no answer depends on them."""
        if (fields.source.encode(), fields.metadata.encode()) != (before.source, before.metadata):
            await self._shard.write([("HSET", key, "source", fields.source, "metadata", fields.metadata)])

    async def _write(
        self, key: str, parsed: keys.DocKey, fields: Fields, digest: str, passages: list[Passage], before: Before
    ) -> int:
        """Writes it all and returns the epoch from which it is found."""
        shard = self._shard
        await shard.epoch(parsed.corpus)
        old = self._old_count(parsed, before)
        count = len(passages)
        # Until the last frame `passages` covers all that may be there, so that a later run can remove it.
        head: list[tuple[Argument, ...]] = [
            ("HSET", key, *fields.pairs(), "passages", max(old, count)),
            ("HDEL", key, "digest"),
        ]
        for first in range(0, max(count - FRAME, 0), FRAME):
            await shard.write(head + self._frame(parsed, fields, passages, first, first + FRAME))
            self._index(parsed, fields, passages, first, first + FRAME)
            await asyncio.sleep(0)
            head = []
        first = max(count - 1, 0) // FRAME * FRAME
        surplus = self._delete.unlinks(parsed, range(count, old))
        done = ("HSET", key, "passages", count, "digest", digest)
        tag, epoch, announce = shard.next_epoch(parsed.corpus)
        await shard.write([*head, *self._frame(parsed, fields, passages, first, count), *surplus, done, *announce])
        self._index(parsed, fields, passages, first, count)
        for n in range(count, old):
            shard.index_to_change(parsed.corpus).remove(keys.passage(parsed.corpus, parsed.document, n))
        shard.epoch_written(parsed.corpus, tag, epoch)
        return epoch

    def _old_count(self, parsed: keys.DocKey, before: Before) -> int:
        """One more than the highest number of a passage that the document may have."""
        known = self._shard.index(parsed.corpus).passages_of(parsed.document)
        return max([before.passages or 0, *(keys.parse_passage(key).n + 1 for key in known)])

    def _frame(
        self, parsed: keys.DocKey, fields: Fields, passages: list[Passage], first: int, last: int
    ) -> list[tuple[Argument, ...]]:
        commands: list[tuple[Argument, ...]] = []
        for n, p in enumerate(passages[first:last], first):
            name = (parsed.corpus, parsed.document, n)
            place = ("text", p.text, "start", p.start, "end", p.end, "title", fields.title)
            commands.append(("HSET", keys.passage(*name), *place))
            commands.append(("AI.TENSORSET", keys.tokens(*name), "INT32", len(p.ids), "BLOB", p.ids.tobytes()))
        return commands

    def _index(self, parsed: keys.DocKey, fields: Fields, passages: list[Passage], first: int, last: int) -> None:
        index = self._shard.index_to_change(parsed.corpus)
        for n, p in enumerate(passages[first:last], first):
            index.put(keys.passage(parsed.corpus, parsed.document, n), fields.title, p.text, p.end)
