"""Passages for a question without reading them, and why an answer is what it is."""

import asyncio
import json
from collections import defaultdict
from dataclasses import replace
from time import perf_counter
from typing import Any

from shardqa import checks, metadata
from shardqa.config import Settings
from shardqa.description import record_of
from shardqa.engine.ask import Asking
from shardqa.engine.connections import Shards
from shardqa.engine.explanation import graph_of, span_of, terms_of
from shardqa.engine.rank import RankedList, RankedPassage, Ranking, since
from shardqa.engine.reading import Readers, reach
from shardqa.engine.shard_parts import ShardPart
from shardqa.errors import AnswerTimeout
from shardqa.models.scoring import shipped_scoring
from shardqa.question import Question
from shardqa.schema import Explanation, FoundPassage, Highlight, RankScore, SearchResult, SearchTiming
from shardqa.statistics import CorpusStatistics

MAX_FOUND = 100  # passages of one search


class Searching:
    def __init__(self, settings: Settings, shards: Shards, ranking: Ranking, readers: Readers, asking: Asking) -> None:
        self._settings = settings
        self._shards = shards
        self._ranking = ranking
        self._readers = readers
        self._asking = asking

    async def search(self, question: Question, limit: int) -> SearchResult:
        """The passages that rank best for `question`, with its words marked. Raises as `ask`, and BadLimit."""
        start = perf_counter()
        checks.between("limit", limit, 1, MAX_FOUND)
        try:
            async with asyncio.timeout(self._settings.timeout):
                ranking = await self._ranking.rank(question, limit)
                loading = perf_counter()
                passages = await self._load(ranking, None)
        except TimeoutError:
            raise self._too_long("search") from None
        timing = SearchTiming(terms=ranking.terms_ms, rank=ranking.rank_ms, load=since(loading), total=since(start))
        return SearchResult(
            question=question.wording,
            corpus=question.asked_of,
            passages=passages,
            partial=bool(ranking.failed),
            failed=ranking.failed,
            timing=timing,
        )

    async def explain(self, question: Question) -> Explanation:
        """The answer, and everything it was made of: terms, ranks, graph, spans with logits, score. Raises as `ask`."""
        answer = await self._asking.ask(question)
        question = question.corrected(answer.corrected)
        try:
            async with asyncio.timeout(self._settings.timeout):
                terms = await self._ranking.terms(question)
                ranking = await self._ranking.rank(question, reach(question), terms)
                passages = await self._load(ranking, replace(terms.statistics, bridges=ranking.bridges))
                reading = await self._readers.staged(ranking)
        except TimeoutError:
            raise self._too_long("explanation") from None
        spans_of_stage = reading.scored(reading.last)
        spans = [span_of(one) for one in spans_of_stage]
        scoring = spans_of_stage[0].scoring if spans_of_stage else shipped_scoring()
        return Explanation(
            question=question.wording,
            asked=question.text,
            corpus=question.asked_of,
            size=terms.statistics.passages,
            terms=terms_of(terms.statistics, passages),
            passages=passages,
            read=reading.last,
            sure=question.sure,
            spans=spans,
            weights=scoring.record(),
            answer=answer,
            graph=graph_of(question.wording, passages, spans),
        )

    async def _load(self, ranking: RankedList, statistics: CorpusStatistics | None) -> list[FoundPassage]:
        """Loads those of the list that still exist, in its order; with `statistics`, why they rank so."""
        by_part: dict[ShardPart, list[str]] = defaultdict(list)
        for passage in ranking.passages:
            by_part[ShardPart(passage.corpus, passage.node)].append(passage.key)
        parts = await asyncio.gather(
            *(self._load_from(part, ranking.question, keys, statistics) for part, keys in sorted(by_part.items()))
        )
        by_key = {passage["key"]: passage for part in parts for passage in part}
        return [_found(passage, by_key[passage.key]) for passage in ranking.passages if passage.key in by_key]

    async def _load_from(
        self, part: ShardPart, question: Question, keys: list[str], statistics: CorpusStatistics | None
    ) -> list[dict[str, Any]]:
        node = self._shards.node(part.node)
        words = ["RG.TRIGGER", "Passages", part.corpus, question.text, json.dumps(keys)]
        words += [] if statistics is None else [json.dumps(statistics.record())]
        passages: list[dict[str, Any]] = record_of(await self._shards.on(node, *words))["passages"]
        return passages

    def _too_long(self, what: str) -> AnswerTimeout:
        return AnswerTimeout(f"the {what} took over {self._settings.timeout:g} s; ask again, or raise SHARDQA_TIMEOUT")


def _found(passage: RankedPassage, record: dict[str, Any]) -> FoundPassage:
    return FoundPassage(
        key=passage.key,
        corpus=passage.corpus,
        document=passage.document,
        title=record["title"],
        text=record["text"],
        start=record["start"],
        end=record["start"] + len(record["text"]),
        score=passage.score,
        highlights=[Highlight(start=start, end=end, term=term) for start, end, term in record["highlights"]],
        place=record["place"],
        places=record["places"],
        metadata=metadata.unpack(record["metadata"]),
        shard=passage.tag,
        node=passage.node,
        why=RankScore.model_validate(record["why"]) if record["why"] else None,
    )
