"""`Dense`, `Bridging`: what a corpus can have off.

    RG.TRIGGER Dense <corpus> <on or off>       whether the corpus is encoded, and its vectors are used
    RG.TRIGGER Bridging <corpus> <on or off>    whether titles that its first passages name are followed

The worker's loop only.
"""

import orjson

from shardqa import keys
from shardqa.errors import BadData
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.marks import Marks
from shardqa.worker.runtime import Runtime


class Switches:
    def __init__(self, runtime: Runtime, sync: KeyspaceSync, lexical: Marks, without_bridges: Marks) -> None:
        self._runtime = runtime
        self._sync = sync
        self._lexical = lexical
        self._unbridged = without_bridges

    async def dense(self, record: Record) -> str:
        return await self._choose(record, "Dense", self._lexical)

    async def bridging(self, record: Record) -> str:
        return await self._choose(record, "Bridging", self._unbridged)

    async def _choose(self, record: Record, trigger: str, marks: Marks) -> str:
        usage = f"{trigger} <corpus> <on or off>"
        corpus, position = arguments.words(record, usage, 2, 2)
        keys.check_corpus(corpus)
        if position not in ("on", "off"):
            raise BadData(f"{position[:40]!r} is neither on nor off; the form is RG.TRIGGER {usage}")
        await permissions.to_drop(self._runtime, corpus)
        await marks.choose(corpus, position == "off")
        await self._sync.changed(corpus)
        return orjson.dumps({"tag": self._runtime.hashtag(), trigger.lower(): position}).decode()
