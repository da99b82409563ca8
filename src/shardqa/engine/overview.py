"""What the shards hold, and whether they can answer."""

import asyncio
from collections import Counter

from redis.asyncio.cluster import ClusterNode

from shardqa import filters, keys
from shardqa.description import CorporaOfShard, ShardDescription
from shardqa.engine.connected import Connected, values_and_failures
from shardqa.engine.connections import Reply
from shardqa.errors import ShardqaError
from shardqa.filters import DocumentFilter
from shardqa.schema import Corpora, CorpusInfo, ShardInfo

SIZES = ("documents", "passages", "characters", "bytes")
LOOK_SECONDS = 1.8  # for a look at one shard: whoever watches the process waits for two


class Overview(Connected):
    async def corpora(self, filter: DocumentFilter | None = None) -> Corpora:
        """Those that have a document which `filter` lets through, with the sizes of these. Raises BadFilter."""
        listed = list_corpora(*await self._corpora_of_shards(filter))
        return (
            listed
            if filter is None
            else listed.model_copy(update={"corpora": [without_epoch(one) for one in listed.corpora]})
        )

    async def _corpora_of_shards(self, filter: DocumentFilter | None) -> tuple[list[CorporaOfShard], list[str]]:
        """(what each shard tells, the nodes that do not, or not yet all)."""
        filter_ = filters.canonical(filter)
        words = ("RG.TRIGGER", "Corpora", *([filter_] if filter_ else []))
        came, failed = values_and_failures(await self.masters.everywhere(*words), CorporaOfShard.parse)
        indexing = (node for node, told in came if told.shard.indexing)
        return [told for _, told in came], sorted({*failed, *indexing})

    async def shards(self) -> list[ShardInfo]:
        """Every master, with its tag when its functions answer."""
        return [_shard_info(reply) for reply in await self.masters.everywhere("RG.TRIGGER", "Shard")]

    async def ready(self) -> list[str]:
        """What stands in the way of answering or of documents, one sentence a shard; empty when nothing does."""
        return (await self.readiness())[1]

    async def readiness(self) -> tuple[bool, list[str]]:
        """(some shard can answer, what `ready` says), within LOOK_SECONDS."""
        nodes = self.masters.nodes()
        if not nodes:
            return False, ["the cluster has no masters"]
        looks = await asyncio.gather(*(self._look(node) for node in nodes))
        problems = [f"{node.name}: {problem}" for node, (_, problem) in zip(nodes, looks, strict=True) if problem]
        return any(answers for answers, _ in looks), problems

    async def _look(self, node: ClusterNode) -> tuple[bool, str | None]:
        """(whether this shard can answer, what it does not do)."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                shard = _shard_info(await self.masters.reply(node, "RG.TRIGGER", "Shard"))
                block = await self._problem(shard)
        except TimeoutError:
            return False, f"it did not answer within {LOOK_SECONDS:g} s"
        return block is None, block or _refusal(shard)

    async def _problem(self, shard: ShardInfo) -> str | None:
        """What keeps one shard from answering."""
        if shard.tag is None:
            return shard.error
        if shard.indexing:
            return f"it reads its passages into its index, {shard.passages:,} so far"
        key = keys.model(self.settings.model, shard.tag)
        try:
            has_reader = bool(await self.masters.by_key(key, "EXISTS"))
        except ShardqaError as fault:
            return str(fault)
        return None if has_reader else f"the reader {key!r} is not stored; run 'shardqa prepare'"


def list_corpora(shards: list[CorporaOfShard], failed: list[str]) -> Corpora:
    """The sums of all shards."""
    totals: dict[str, Counter[str]] = {}
    epochs: dict[str, dict[str, int]] = {}
    encoded = dict[str, int]()
    for told in shards:
        for name, part in told.corpora.items():
            epochs.setdefault(name, {})[told.shard.tag] = part.epoch
            totals.setdefault(name, Counter()).update({field: getattr(part, field) for field in SIZES})
            if part.encoded is not None:
                encoded[name] = encoded.get(name, 0) + part.encoded
    found = [
        CorpusInfo(
            name=name,
            documents=total["documents"],
            passages=total["passages"],
            characters=total["characters"],
            bytes=total["bytes"],
            epoch=keys.corpus_epoch(epochs[name]),
            encoded=encoded.get(name),
        )
        for name, total in sorted(totals.items())
        if total["documents"]
    ]
    return Corpora(corpora=found, partial=bool(failed), failed=failed)


def without_epoch(corpus: CorpusInfo) -> CorpusInfo:
    """Without the epoch, which changes with documents that a filter leaves out."""
    return corpus.model_copy(update={"epoch": ""})


def _refusal(shard: ShardInfo) -> str | None:
    """What a shard that answers does not do."""
    if shard.refuses is None:
        return None
    return f"it stores nothing ({shard.refuses}): questions are answered, answers not kept, documents refused"


def _shard_info(reply: Reply) -> ShardInfo:
    """Of a node's reply to Shard."""
    if reply.fault is not None:
        return ShardInfo(node=reply.node, tag=None, error=str(reply.fault))
    told = ShardDescription.parse(reply.value)
    return ShardInfo(
        node=reply.node, tag=told.tag, indexing=told.indexing, passages=told.passages, refuses=told.refuses
    )
