"""`Delete`: removes a document with its passages, tokens and answers.

    RG.TRIGGERONKEY Delete <doc key>

A `doc:` key that someone else removed (DEL, expiry) takes its passages with it. One that left as its slot is moving
to another shard does not: MIGRATE shows as a `del` too, so the slot is looked at first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import orjson
from redis import ResponseError

from shardqa import keys
from shardqa.gears_functions import arguments, documents, permissions
from shardqa.gears_functions.shard import slots

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.runtime import Argument
    from shardqa.gears_functions.shard.state import ShardState

USAGE = "Delete <doc key>"
AT_ONCE = 400  # passages unlinked in one tick: about a millisecond of Redis' time


class Delete:
    """The worker's loop only."""

    def __init__(self, shard: ShardState) -> None:
        self._shard = shard

    async def delete(self, record: Record) -> str:
        (key,) = arguments.words(record, USAGE, 1, 1)
        keys.parse_doc(key)
        await permissions.to_delete(self._shard.runtime, key)
        async with self._shard.document(key) as parsed:
            existed = bool(await self._shard.runtime.call("EXISTS", key))
            passages, epoch = await self._remove(key, parsed, [("UNLINK", key)] if existed else [])
        tag = self._shard.runtime.hashtag()
        reply = {"tag": tag, "document": parsed.document, "deleted": existed, "passages": passages, "epoch": epoch}
        return orjson.dumps(reply).decode()

    async def passages_of(self, key: str, parsed: keys.DocKey) -> None:
        """Removes the passages of a document, held by the caller, that is gone or no longer fit to be read."""
        if (await slots.look(self._shard.runtime)).holds(key):
            forget = [("HDEL", key, "digest", "passages")] if await self._is_hash(key) else []
            await self._remove(key, parsed, forget)

    async def _is_hash(self, key: str) -> bool:
        return bool(await self._shard.runtime.call("TYPE", key) == b"hash")

    async def _remove(self, key: str, parsed: keys.DocKey, last: Sequence[tuple[Argument, ...]]) -> tuple[int, int]:
        """(passages removed, epoch); `last` are commands that end it."""
        shard, index = self._shard, self._shard.index(parsed.corpus)
        numbers = await self._numbers(key, parsed)
        epoch = await shard.epoch(parsed.corpus)
        if not numbers and not last:
            return 0, epoch
        while len(numbers) > AT_ONCE:
            # The rest may fail: see ingest.
            tag, epoch = await shard.epochs.remove(parsed.corpus, [self.unlink(parsed, numbers[:AT_ONCE])])
            shard.epochs.written(parsed.corpus, tag, epoch)
            shard.runtime.progress()
            numbers = numbers[AT_ONCE:]
        rest = [self.unlink(parsed, numbers)] if numbers else []
        tag, epoch = await shard.epochs.remove(parsed.corpus, [*rest, *last])
        removed = [name for name in index.passages_of(parsed.document) if index.remove(name)]
        shard.epochs.written(parsed.corpus, tag, epoch)
        return len(removed), epoch

    async def _numbers(self, key: str, parsed: keys.DocKey) -> list[int]:
        """Of all passages that the document may have."""
        known = {keys.parse_passage(name).n for name in self._shard.index(parsed.corpus).passages_of(parsed.document)}
        try:
            count = documents.count_of_passages(await self._shard.runtime.call("HGET", key, "passages"))
            known.update(range(count or 0))
        except ResponseError as error:
            if not str(error).startswith("WRONGTYPE"):
                raise
        return sorted(known)

    def unlink(self, parsed: keys.DocKey, numbers: Iterable[int]) -> tuple[Argument, ...]:
        """The command that removes passages and their tokens."""
        passages = [keys.passage(parsed.corpus, parsed.document, n) for n in numbers]
        names = [name for passage in passages for name in (passage, keys.tokens_of_passage(passage))]
        return ("UNLINK", *names)
