"""Passages for a question without reading them, and why an answer is what it is."""

import asyncio
import json
from collections import defaultdict
from dataclasses import replace
from time import perf_counter
from typing import Any

from shardqa import checks, filters, keys, metadata
from shardqa.config import MAX_K
from shardqa.description import record_of
from shardqa.engine.ask import Asking, between
from shardqa.engine.connected import since
from shardqa.engine.explanation import graph_of, spans_of, terms_of
from shardqa.errors import AnswerTimeout, ClusterUnavailable
from shardqa.filters import DocumentFilter
from shardqa.models.scoring import shipped_scoring
from shardqa.schema import (
    Explanation,
    FoundPassage,
    Highlight,
    RankedList,
    RankedPassage,
    RankScore,
    SearchResult,
    SearchTiming,
)
from shardqa.statistics import CorpusStatistics

MAX_FOUND = 100  # passages of one search


class Searching(Asking):
    async def search(
        self, question: str, corpus: str | None = None, limit: int = 10, filter: DocumentFilter | None = None
    ) -> SearchResult:
        """The passages that rank best for `question`, with its words marked. Raises as `ask`."""
        start = perf_counter()
        corpus = keys.check_corpus(self.settings.corpus if corpus is None else corpus)
        limit = between("limit", limit, 1, MAX_FOUND)
        asked = checks.question(question)
        try:
            async with asyncio.timeout(self.settings.timeout):
                ranked = await self.rank(asked, corpus, limit, filter=filter)
                loading = perf_counter()
                found = await self._load(ranked, None)
        except TimeoutError:
            raise self._too_long("search") from None
        timing = SearchTiming(terms=ranked.terms_ms, rank=ranked.rank_ms, load=since(loading), total=since(start))
        return SearchResult(
            question=question,
            corpus=corpus,
            passages=found,
            partial=bool(ranked.failed),
            failed=ranked.failed,
            timing=timing,
        )

    async def explain(
        self, question: str, corpus: str | None = None, k: int | None = None, filter: DocumentFilter | None = None
    ) -> Explanation:
        """The answer, and everything it was made of: terms, ranks, graph, spans with logits, score. Raises as `ask`."""
        corpus = keys.check_corpus(self.settings.corpus if corpus is None else corpus)
        k = between("k", self.settings.k if k is None else k, 1, MAX_K)
        asked = checks.question(question)
        answer = await self.ask(question, corpus, k, filter=filter)
        try:
            async with asyncio.timeout(self.settings.timeout):
                told = await self._terms(asked, corpus, view=filters.view_of(filters.canonical(filter)))
                ranked = await self.rank(asked, corpus, k, told, filter)
                passages = await self._load(ranked, replace(told.statistics, bridges=ranked.bridges))
                own = await self.scores.of(corpus)
                reading = await self.readers.staged(ranked, asked, k, fresh=False, own=own)
        except TimeoutError:
            raise self._too_long("explanation") from None
        stage = reading.last_stage(self.settings.sure)
        scored = reading.scored(stage)
        spans = spans_of(scored)
        scoring = scored[0].scoring if scored else shipped_scoring()
        return Explanation(
            question=question,
            asked=asked,
            corpus=corpus,
            size=told.statistics.passages,
            terms=terms_of(told.statistics, passages),
            passages=passages,
            read=min(stage, len(passages)),
            sure=self.settings.sure,
            spans=spans,
            weights=scoring.record(),
            answer=answer,
            graph=graph_of(question, passages, spans),
        )

    async def _load(self, ranked: RankedList, statistics: CorpusStatistics | None) -> list[FoundPassage]:
        """Those of the list that are still there, in its order; with `statistics`, why they rank so."""
        by_node: dict[str, list[str]] = defaultdict(list)
        for passage in ranked.passages:
            by_node[passage.node].append(passage.key)
        parts = await asyncio.gather(
            *(self._load_from(name, ranked, wanted, statistics) for name, wanted in sorted(by_node.items()))
        )
        found = {one["key"]: one for part in parts for one in part}
        return [_found(passage, found[passage.key]) for passage in ranked.passages if passage.key in found]

    async def _load_from(
        self, name: str, ranked: RankedList, wanted: list[str], statistics: CorpusStatistics | None
    ) -> list[dict[str, Any]]:
        node = self.masters.node(name)
        if node is None:
            raise ClusterUnavailable(f"node {name} left the cluster while it was asked; ask again")
        given = [] if statistics is None else [json.dumps(statistics.record())]
        command = ("RG.TRIGGER", "Passages", ranked.corpus, ranked.question, json.dumps(wanted), *given)
        found: list[dict[str, Any]] = record_of(await self.masters.on(node, *command))["passages"]
        return found

    def _too_long(self, what: str) -> AnswerTimeout:
        return AnswerTimeout(
            f"the {what} took more than {self.settings.timeout:g} s; ask again, or allow more by SHARDQA_TIMEOUT"
        )


def _found(ranked: RankedPassage, loaded: dict[str, Any]) -> FoundPassage:
    return FoundPassage(
        key=ranked.key,
        document=ranked.document,
        title=loaded["title"],
        text=loaded["text"],
        start=loaded["start"],
        end=loaded["start"] + len(loaded["text"]),
        score=ranked.score,
        highlights=[Highlight(start=start, end=end, term=term) for start, end, term in loaded["highlights"]],
        place=loaded["place"],
        metadata=metadata.unpack(loaded["metadata"]),
        shard=ranked.tag,
        node=ranked.node,
        why=RankScore.model_validate(loaded["why"]) if loaded["why"] else None,
    )
