"""What a corpus can have off.

    RG.TRIGGER Dense <corpus> <on or off>       whether the corpus is encoded, and its vectors are used
    RG.TRIGGER Bridging <corpus> <on or off>    whether titles that its first passages name are followed

The worker's loop only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from shardqa import keys
from shardqa.errors import BadData
from shardqa.gears_functions import arguments, permissions

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.shard.marks import Marks
    from shardqa.gears_functions.shard.state import ShardState


class Switches:
    def __init__(self, shard: ShardState) -> None:
        self._shard = shard

    async def dense(self, record: Record) -> str:
        return await self._choose(record, "Dense", self._shard.lexical)

    async def bridging(self, record: Record) -> str:
        return await self._choose(record, "Bridging", self._shard.unbridged)

    async def _choose(self, record: Record, trigger: str, marks: Marks) -> str:
        usage = f"{trigger} <corpus> <on or off>"
        corpus, wanted = arguments.words(record, usage, 2, 2)
        keys.check_corpus(corpus)
        if wanted not in ("on", "off"):
            raise BadData(f"{wanted[:40]!r} is neither on nor off; the form is RG.TRIGGER {usage}")
        await permissions.to_drop(self._shard.runtime, corpus)
        await marks.choose(corpus, wanted == "off")
        await self._shard.changed(corpus)
        return orjson.dumps({"tag": self._shard.runtime.hashtag(), trigger.lower(): wanted}).decode()
