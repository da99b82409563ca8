"""`Terms`, `Rank`, `Bridge`: which passages of this shard are likely to answer.

RG.TRIGGER Terms <corpus> <question> [<view>]
RG.TRIGGER Rank <corpus> <question> <limit> [<statistics: the sum of all shards' Terms, JSON> [<filter>]]
RG.TRIGGER Bridge <corpus> <words of the first passages: JSON> [<view>]

A view is the part of a filter that hides (shardqa/filters.py): what is counted is of the documents that it shows.
"""

from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, perf_counter

import orjson

from shardqa import analysis, bridges, checks, filters, keys
from shardqa.errors import BadData
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.pairs import Pairs
from shardqa.gears_functions.shard.rankings import MAX_LIMIT, Rankings
from shardqa.gears_functions.shard.shard_terms import ShardTerms
from shardqa.gears_functions.shard.timings import Timings
from shardqa.models.tokenizer import MAX_QUESTION_TOKENS
from shardqa.rounds import BridgeReply, RankReply, StatisticsArgument, TermsReply
from shardqa.worker.runtime import Runtime


@dataclass(eq=False)
class Rank:
    """The worker's loop only."""

    _runtime: Runtime
    _pairs: Pairs
    _sync: KeyspaceSync
    _terms: ShardTerms
    _rankings: Rankings
    _timings: Timings

    async def terms(self, record: Record) -> str:
        corpus, text, *view = arguments.words(record, "Terms <corpus> <question> [<view>]", 2, 3)
        keys.check_corpus(corpus)
        await permissions.to_ask(self._runtime, corpus)
        question, pair = checks.question(text), await self._pairs.of(corpus)
        if len(question) >= MAX_QUESTION_TOKENS or not question.isascii():  # else it has no more pieces than characters
            pair.tokenizer.question(question)  # too long for the reader: said now, whether or not a passage matches
        await self._sync.synced()
        epoch = await self._sync.epoch(corpus)
        # Nothing is awaited from here on: whoever remembers the numbers holds them for those of this epoch.
        query = analysis.query(question)
        statistics = self._terms.statistics(corpus, query, "".join(view))
        index = self._sync.index(corpus)
        index.last_question = monotonic()
        bearers = index.titled(query, "".join(view))
        return TermsReply(self._runtime.hashtag(), epoch, statistics, bearers).json()

    async def rank(self, record: Record) -> str:
        usage = "Rank <corpus> <question> <limit> [<statistics> [<filter>]]"
        corpus, text, number, *rest = arguments.words(record, usage, 3, 5)
        keys.check_corpus(corpus)
        question = checks.question(text)
        limit = arguments.number("limit", number, 1, MAX_LIMIT)
        demand = permissions.to_ask_with_statistics if rest else permissions.to_ask
        await demand(self._runtime, corpus)
        if not rest:  # else Terms has said it
            (await self._pairs.of(corpus)).tokenizer.question(question)
        argument = StatisticsArgument.parse(rest[0]) if rest else None
        filter_ = rest[1] if len(rest) > 1 else ""
        filters.parse(filter_)
        start = perf_counter()
        ranking = await self._rankings.rank(corpus, question, limit, filter_, argument)
        us = round((perf_counter() - start) * 1e6)
        self._timings.add({"rank": us})
        words = ranking.words if argument is not None else []
        return RankReply(self._runtime.hashtag(), ranking.epoch, ranking.passages, words, us).json()

    async def bridge(self, record: Record) -> str:
        corpus, raw, *view = arguments.words(record, "Bridge <corpus> <words> [<view>]", 2, 3)
        keys.check_corpus(corpus)
        words = _parse_words(raw)
        await permissions.to_ask(self._runtime, corpus)
        await self._sync.synced()
        epoch = await self._sync.epoch(corpus)
        return BridgeReply(self._runtime.hashtag(), epoch, self._terms.titles(corpus, words, "".join(view))).json()

    def request_of(self, record: Record) -> str:
        """Describes a Rank for the log."""
        request = ""
        with suppress(BadData):
            request = StatisticsArgument.parse(record[4]).request if len(record) > 4 else ""
        return f"request {request or 'without an id'}, corpus {str(record[1])[:80] if len(record) > 1 else ''}"


def _parse_words(raw: str) -> list[list[str]]:
    """Returns the words of each of the first passages. Raises BadData."""
    try:
        return bridges.parse_words(orjson.loads(raw))
    except orjson.JSONDecodeError as error:
        raise BadData(f"the words are not JSON: {error}; send those that Rank told") from None
