"""`Corpora`, `Facets`, `Shard`: what this shard holds. `Dense`, `Bridging`, `Languages`: what a corpus has off or on.

    RG.TRIGGER Corpora [<view>]
    RG.TRIGGER Facets <corpus> [<view>]
    RG.TRIGGER Shard
    RG.TRIGGER Dense <corpus> <on or off>       whether the corpus is encoded, and its vectors are used
    RG.TRIGGER Bridging <corpus> <on or off>    whether titles that its first passages name are followed
    RG.TRIGGER Languages <corpus> <on or off>   whether the pair of many languages reads it

The worker's loop only.
"""

import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from shardqa import filters, keys
from shardqa.errors import BadData, ClusterUnavailable, Indexing
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.shard.encoder import ShardEncoder
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.marks import Marks
from shardqa.gears_functions.shard.model_sync import ModelSync
from shardqa.gears_functions.shard.pairs import Pairs
from shardqa.gears_functions.writes import refusal
from shardqa.worker.runtime import Runtime

MOST = 1_000  # folders or tags of one reply
FOLDER = re.compile(r"(?<=[^/:])/")  # ends a folder of a source; not the slashes behind a scheme


@dataclass(eq=False)
class Corpora:
    """The worker's loop only."""

    _runtime: Runtime
    _sync: KeyspaceSync
    _lexical: Marks
    _encoder: ShardEncoder
    _pairs: Pairs

    async def corpora(self, record: Record) -> str:
        """Lists the corpora that the client may ask, beside what `shard` replies."""
        view = "".join(arguments.words(record, "Corpora [<view>]", 0, 1))
        state, parts = await self._state()
        encoders = await self._encoder.ids()
        corpora = {
            corpus: {
                **asdict(index.sizes(view)),
                "epoch": await self._sync.epoch(corpus),
                "encoded": self._encoded(corpus, index, encoders[self._pairs.encoder_of(corpus)], view),
                "languages": self._pairs.encoder_of(corpus) == keys.MANY_ENCODER,
            }
            for corpus, index in parts.items()
        }
        return arguments.reply(self._runtime, **state, dropping=await self._dropping(), corpora=corpora)

    async def facets(self, record: Record) -> str:
        """Counts a corpus' documents by folder and by tag; of more than MOST, those with most documents."""
        corpus, *view = arguments.words(record, "Facets <corpus> [<view>]", 1, 2)
        await permissions.to_ask(self._runtime, keys.check_corpus(corpus))
        await self._sync.synced()
        index, folders = self._sync.index(corpus), Counter[str]()
        for source, count in index.catalogue.counts(filters.SOURCE, "".join(view)).items():
            folders.update({source[: slash.end()]: count for slash in FOLDER.finditer(source)})
        tags = Counter(index.catalogue.counts(filters.METADATA + "tags", "".join(view)))
        documents = index.sizes("".join(view)).documents
        return arguments.reply(self._runtime, documents=documents, folders=_largest(folders), tags=_largest(tags))

    async def shard(self, record: Record) -> str:
        """Replies `indexing` while the shard reads its passages into its index, `passages` in it of the corpora that
        the client may ask; `refuses` tells why Redis stores nothing now, null where it does."""
        arguments.words(record, "Shard", 0, 0)
        state, _ = await self._state()
        return arguments.reply(self._runtime, **state)

    async def _state(self) -> tuple[dict[str, Any], dict[str, Index]]:
        """Returns the reply of `shard`, and the corpora that the client may ask."""
        is_indexing = False
        try:
            await self._sync.synced()
        except Indexing:
            is_indexing = True
        names = await permissions.corpora_to_ask(self._runtime, sorted(self._sync.corpora))
        fault = await refusal(self._runtime)
        parts = {corpus: index for corpus in names if (index := self._sync.corpora.get(corpus)) is not None}
        refuses = None if fault is None else str(fault)
        return {"indexing": is_indexing, "passages": sum(map(len, parts.values())), "refuses": refuses}, parts

    async def _dropping(self) -> dict[str, dict[str, int]]:
        """Returns the progress of each drop that the client may see, by corpus."""
        drops = self._sync.dropped
        names = await permissions.corpora_to_ask(self._runtime, drops.corpora())
        progress = {corpus: part for corpus in names if (part := drops.progress(corpus)) is not None}
        return {corpus: asdict(part) for corpus, part in progress.items()}

    def _encoded(self, corpus: str, index: Index, encoder: str | None, view: str) -> int | None:
        if encoder is None or self._lexical.covers(corpus):
            return None
        return index.vectors(view).get(encoder, 0)


def _largest(counts: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in counts.most_common(MOST) if count}


@dataclass(eq=False)
class Switches:
    """The worker's loop only."""

    _runtime: Runtime
    _sync: KeyspaceSync
    _lexical: Marks
    _unbridged: Marks
    _many: Marks
    _copies: ModelSync

    async def dense(self, record: Record) -> str:
        return await self._choose(record, "Dense", self._lexical)

    async def bridging(self, record: Record) -> str:
        return await self._choose(record, "Bridging", self._unbridged)

    async def languages(self, record: Record) -> str:
        return await self._choose(record, "Languages", self._many)

    async def _choose(self, record: Record, trigger: str, marks: Marks) -> str:
        usage = f"{trigger} <corpus> <on or off>"
        corpus, position = arguments.words(record, usage, 2, 2)
        keys.check_corpus(corpus)
        if position not in ("on", "off"):
            raise BadData(f"{position[:40]!r} is neither on nor off; the form is RG.TRIGGER {usage}")
        await permissions.to_drop(self._runtime, corpus)
        if marks is self._many and position == marks.value:
            await self._demand_pair()
        await marks.choose(corpus, position == marks.value)
        await self._sync.changed(corpus)
        return arguments.reply(self._runtime, **{trigger.lower(): position})

    async def _demand_pair(self) -> None:
        """Raises BadData where no shard has the pair of many languages."""
        try:
            await self._copies.obtain(keys.MANY_READER)
        except ClusterUnavailable as error:
            way = "'shardqa models push READER --encoder ENCODER' stores a pair of many languages"
            raise BadData(f"{error}; {way}") from None
