"""Ranks passages across shards: sums the corpus-wide statistics first, then merges the shards' lists."""

import asyncio
import json
from dataclasses import dataclass, replace
from time import perf_counter
from zlib import crc32

from shardqa import checks, filters, keys, request
from shardqa.config import Settings
from shardqa.description import record_of
from shardqa.engine.connected import Connected, came_and_failed, since
from shardqa.engine.connections import Argument, Shards
from shardqa.errors import ClusterUnavailable, ShardqaError, UnknownCorpus
from shardqa.filters import DocumentFilter
from shardqa.schema import RankedList, RankedPassage
from shardqa.statistics import CorpusStatistics, QuestionVector, total


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """The first round: what each shard says of a question's terms."""

    statistics: CorpusStatistics  # the sum of all
    epochs: dict[str, int]  # by tag, of the shards that answered
    failed: list[str]  # nodes that did not
    ms: float


class Ranking(Connected):
    def __init__(self, settings: Settings, masters: Shards) -> None:
        super().__init__(settings, masters)
        self._encoded = set[str]()  # corpora of which enough passages had vectors when they were asked last

    async def _terms(self, question: str, corpus: str) -> ShardTerms:
        """Where passages have vectors, the question's is asked for beside the terms: so it takes next to no time.

        Raises UnknownCorpus, ClusterUnavailable.
        """
        start = perf_counter()
        vector = asyncio.create_task(self._vector(question, corpus)) if corpus in self._encoded else None
        try:
            told = await self._statistics(question, corpus)
            if told.statistics.encoders:
                self._encoded.add(corpus)
                found = await (vector or self._vector(question, corpus))
                told = replace(told, statistics=told.statistics.compared(found))
            else:
                self._encoded.discard(corpus)
        finally:
            if vector is not None:
                vector.cancel()
        return replace(told, ms=since(start))

    async def _vector(self, question: str, corpus: str) -> QuestionVector | None:
        """Of one shard, another for each question; where that has no encoder, of the next. None: no shard has one, and
        the words alone count."""
        nodes = sorted(self.masters.nodes(), key=lambda node: str(node.name))
        first = crc32(question.encode("utf-8", "surrogatepass")) % max(1, len(nodes))
        for node in nodes[first:] + nodes[:first]:
            try:
                return QuestionVector.parse(
                    record_of(await self.masters.on(node, "RG.TRIGGER", "Embed", corpus, question))
                )
            except ShardqaError:  # what is wrong with the question, the terms tell as well
                continue
        return None

    async def _statistics(self, question: str, corpus: str) -> ShardTerms:
        start = perf_counter()
        with self.epochs.reading(corpus) as reading:
            came, failed = came_and_failed(
                await self.masters.everywhere("RG.TRIGGER", "Terms", corpus, question), record_of
            )
            statistics = total(CorpusStatistics.parse(reply) for _, reply in came)
            if statistics.documents == 0:
                raise self._no_documents(corpus, failed)
            epochs = {str(reply["tag"]): int(reply["epoch"]) for _, reply in came}
            if not failed:
                self.epochs.learn(reading, epochs)
        return ShardTerms(statistics, epochs, failed, since(start))

    async def rank(
        self,
        question: str,
        corpus: str,
        limit: int,
        told: ShardTerms | None = None,
        filter: DocumentFilter | None = None,
    ) -> RankedList:
        """The best `limit` passages of all shards. Two rounds: corpus-wide statistics first, so that the order is
        the same however many shards there are; `told` is the first one's where it was made already. A filter leaves
        documents out on the shards, and no score depends on it.

        Raises BadFilter, UnknownCorpus, ClusterUnavailable and what `ask` raises.
        """
        question, filter_ = checks.question(question), filters.canonical(filter)
        told = told or await self._terms(question, corpus)
        failed = told.failed
        start = perf_counter()
        statistics = {**told.statistics.record(), request.FIELD: request.current.get()}
        command: list[Argument] = ["RG.TRIGGER", "Rank", corpus, question, limit, json.dumps(statistics)]
        command += [filter_] if filter_ else []
        with self.epochs.reading(corpus) as reading:
            ranks, failed_ranks = came_and_failed(await self.masters.everywhere(*command), record_of)
            failed = sorted({*failed, *failed_ranks})
            epochs = {str(reply["tag"]): int(reply["epoch"]) for _, reply in ranks}
            if not failed:
                self.epochs.learn(reading, epochs)
        passages = [
            RankedPassage(key=key, document=keys.parse_passage(key).document, score=score, node=node, tag=reply["tag"])
            for node, reply in ranks
            for key, score in reply["passages"]
        ]
        passages.sort(key=lambda p: (-p.score, p.key))
        return RankedList(
            corpus=corpus,
            question=question,
            filter=filter_,
            passages=passages[:limit],
            epochs=epochs,
            is_settled=told.epochs == epochs,
            failed=failed,
            terms_ms=told.ms,
            rank_ms=since(start),
        )

    def _no_documents(self, corpus: str, failed: list[str]) -> ClusterUnavailable | UnknownCorpus:
        if failed:
            return ClusterUnavailable(
                f"corpus {corpus!r} has no document on the shards that answer, and {', '.join(failed)} did not; "
                "see 'shardqa status'"
            )
        return UnknownCorpus(f"there is no corpus {corpus!r}")
