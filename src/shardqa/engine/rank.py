"""Ranks passages across shards: sums the corpus-wide statistics first, then merges the shards' lists."""

import asyncio
import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any
from zlib import crc32

from shardqa import analysis, checks, filters, keys, request
from shardqa.bridges import FIRST
from shardqa.config import Settings
from shardqa.description import record_of
from shardqa.engine.bridging import Bridge
from shardqa.engine.connected import Connected, came_and_failed, since
from shardqa.engine.connections import Argument, Shards
from shardqa.engine.term_memory import TermMemory, TermsReply
from shardqa.errors import ClusterUnavailable, ShardqaError, UnknownCorpus
from shardqa.filters import DocumentFilter
from shardqa.schema import RankedList, RankedPassage
from shardqa.statistics import CorpusStatistics, QuestionVector, total

TERM_MEGABYTES = 16  # for what shards tell of words: some 10,000 words of three shards


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """The first round: what each shard says of a question's terms."""

    statistics: CorpusStatistics  # the sum of all
    epochs: dict[str, int]  # by tag, of the shards that answered
    failed: list[str]  # nodes that did not
    ms: float
    without: frozenset[str] = frozenset()  # nodes that hold no word of the question, and need not be asked more
    is_remembered: bool = False  # some of it was told before
    titled: frozenset[str] = frozenset()  # nodes whose documents have titles


@dataclass(frozen=True, slots=True)
class RankRequest:
    """What shards rank."""

    question: str
    corpus: str
    limit: int
    filter: str  # canonical


class Ranking(Connected):
    def __init__(self, settings: Settings, masters: Shards) -> None:
        super().__init__(settings, masters)
        self.terms = TermMemory(TERM_MEGABYTES)
        self._encoded = set[str]()  # corpora of which enough passages had vectors when they were asked last

    async def _terms(self, question: str, corpus: str, anew: bool = False, view: str = "") -> ShardTerms:
        """Of the documents that `view` (canonical) shows. Where passages have vectors, the question's is asked for
        beside the terms: so it takes next to no time.

        Raises UnknownCorpus, BadFilter, ClusterUnavailable.
        """
        start = perf_counter()
        vector = asyncio.create_task(self._vector(question, corpus)) if corpus in self._encoded else None
        try:
            told = await self._statistics(question, corpus, anew, view)
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
                reply = record_of(await self.masters.on(node, "RG.TRIGGER", "Embed", corpus, question))
                found = QuestionVector.of_reply(reply)
            except ShardqaError:  # what is wrong with the question, the terms tell as well
                continue
            if found is not None:
                return found
        return None

    async def _statistics(self, question: str, corpus: str, anew: bool, view: str) -> ShardTerms:
        """Of the shards that have not told them before, at the epochs known; of all with `anew`, or for a view.

        A shard that has just said that it holds no word of the question is passed over from here on; one that said so
        before is not: the next round shows whether its epoch still stands.
        """
        start = perf_counter()
        known = [] if anew or view else self._remembered(question, corpus)
        with self.epochs.reading(corpus) as reading:
            words = ("RG.TRIGGER", "Terms", corpus, question, *([view] if view else []))
            replies = await self.masters.everywhere(*words, but={one.node for one in known})
            came, failed = came_and_failed(replies, record_of, bool(known))
            asked = [TermsReply.parse(node, reply) for node, reply in came]
            if known and {one.tag for one in asked}.intersection(one.tag for one in known):
                return await self._statistics(question, corpus, True, view)  # a tag has moved
            told = [*known, *asked]
            statistics = total(one.statistics for one in told)
            if statistics.documents == 0:
                raise self._no_documents(corpus, failed)
            epochs = {one.tag: one.epoch for one in told}
            if not failed and not known:
                self.epochs.learn(reading, epochs)
        for one in () if view else asked:
            self.terms.remember(corpus, one)
        without = frozenset(one.node for one in asked if one.has_none and not statistics.vectors)
        titled = frozenset(one.node for one in told if one.statistics.titles)
        return ShardTerms(statistics, epochs, failed, since(start), without, bool(known), titled)

    def _remembered(self, question: str, corpus: str) -> list[TermsReply]:
        epochs = self.epochs.known(corpus)
        if epochs is None:
            return []
        known = self.terms.recall(corpus, epochs, analysis.query(question))
        nodes = {str(node.name) for node in self.masters.nodes()} if known else set[str]()
        times = Counter(one.node for one in known)
        return [one for one in known if one.node in nodes and times[one.node] == 1]

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
        documents out on the shards, and no score depends on it, unless it is a View. Shards without any word of the
        question are not asked.

        Raises BadFilter, UnknownCorpus, ClusterUnavailable and what `ask` raises.
        """
        question, filter_ = checks.question(question), filters.canonical(filter)
        view = filters.view_of(filter_)
        told = told or await self._terms(question, corpus, view=view)
        ranked, is_as_told = await self._ranked(question, corpus, limit, told, filter_)
        if is_as_told or not (told.is_remembered or told.without):
            return ranked
        # Something changed since it was told: what was remembered, or passed over, may be another by now.
        again = await self._terms(question, corpus, anew=True, view=view)
        everyone = replace(again, ms=told.ms + again.ms, without=frozenset(), is_remembered=False)
        ranked, _ = await self._ranked(question, corpus, limit, everyone, filter_)
        return ranked

    async def _ranked(
        self, question: str, corpus: str, limit: int, told: ShardTerms, filter_: str
    ) -> tuple[RankedList, bool]:
        """The list, and whether all that answered are at the epochs told."""
        start = perf_counter()
        asked = RankRequest(question, corpus, max(limit, FIRST) if told.statistics.is_bridged else limit, filter_)
        with self.epochs.reading(corpus) as reading:
            ranks, failed_ranks = await self._lists(asked, told.statistics, told.without)
            failed = sorted({*told.failed, *failed_ranks})
            epochs = {str(reply["tag"]): int(reply["epoch"]) for _, reply in ranks}
            if not failed and not told.without:
                self.epochs.learn(reading, epochs)
        bridge = Bridge(self.masters, corpus, told.titled, filters.view_of(filter_))
        if told.statistics.is_bridged:
            ranks, failed_later = await self._led_on(asked, told.statistics, bridge, ranks)
            failed = sorted({*failed, *failed_later})
            epochs |= bridge.epochs | {str(reply["tag"]): int(reply["epoch"]) for _, reply in ranks}
        is_as_told = all(told.epochs.get(tag) == epoch for tag, epoch in epochs.items())
        if told.without:
            epochs = told.epochs | epochs
        passages = [
            RankedPassage(key=key, document=keys.parse_passage(key).document, score=score, node=node, tag=reply["tag"])
            for node, reply in ranks
            for key, score in reply["passages"]
        ]
        passages.sort(key=lambda p: (-p.score, p.key))
        ranked = RankedList(
            corpus=corpus,
            question=question,
            filter=filter_,
            passages=passages[:limit],
            epochs=epochs,
            is_settled=told.epochs == epochs,
            failed=failed,
            terms_ms=told.ms,
            rank_ms=since(start),
            bridges=bridge.found,
        )
        return ranked, is_as_told

    async def _lists(
        self, asked: RankRequest, statistics: CorpusStatistics, but: Collection[str]
    ) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
        """(what each shard ranks, by node; nodes that did not answer)."""
        record = json.dumps({**statistics.record(), request.FIELD: request.current.get()})
        command: list[Argument] = ["RG.TRIGGER", "Rank", asked.corpus, asked.question, asked.limit, record]
        command += [asked.filter] if asked.filter else []
        return came_and_failed(await self.masters.everywhere(*command, but=but), record_of, bool(but))

    async def _led_on(
        self, asked: RankRequest, statistics: CorpusStatistics, bridge: Bridge, ranks: list[tuple[str, dict[str, Any]]]
    ) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
        """The same lists, new from those shards that a title of the first passages leads to."""
        await bridge.look(ranks, statistics.passages)
        if bridge.found is None:
            return ranks, bridge.failed
        again, failed = await self._lists(asked, replace(statistics, bridges=bridge.found), bridge.others())
        new = {node for node, _ in again}
        return [*(one for one in ranks if one[0] not in new), *again], [*bridge.failed, *failed]

    def _no_documents(self, corpus: str, failed: list[str]) -> ClusterUnavailable | UnknownCorpus:
        if failed:
            return ClusterUnavailable(
                f"corpus {corpus!r} has no document on the shards that answer, and {', '.join(failed)} did not; "
                "see 'shardqa status'"
            )
        return UnknownCorpus(f"there is no corpus {corpus!r}")
