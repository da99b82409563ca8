"""Ranks passages across shards: sums the corpus-wide statistics first, then merges the shards' lists."""

import json
from dataclasses import dataclass
from time import perf_counter

from shardqa import checks, filters, keys, request
from shardqa.description import record_of
from shardqa.engine.connected import Connected, came_and_failed, since
from shardqa.engine.connections import Argument
from shardqa.errors import ClusterUnavailable, UnknownCorpus
from shardqa.filters import DocumentFilter
from shardqa.schema import RankedList, RankedPassage
from shardqa.statistics import CorpusStatistics, total


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """The first round: what each shard says of a question's terms."""

    statistics: CorpusStatistics  # the sum of all
    epochs: dict[str, int]  # by tag, of the shards that answered
    failed: list[str]  # nodes that did not
    ms: float


class Ranking(Connected):
    async def _terms(self, question: str, corpus: str) -> ShardTerms:
        """Raises UnknownCorpus, ClusterUnavailable."""
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
