"""`Terms`, `Rank`, `Bridge`, `Corpora`, `Shard`: which passages of this shard are likely to answer, and what it holds.

RG.TRIGGER Terms <corpus> <question> [<view>]
RG.TRIGGER Rank <corpus> <question> <limit> [<statistics: the sum of all shards' Terms, JSON> [<filter>]]
RG.TRIGGER Bridge <corpus> <words of the first passages: JSON> [<view>]
RG.TRIGGER Corpora [<view>]
RG.TRIGGER Shard

A view is the part of a filter that hides (shardqa/filters.py): what is counted is of the documents that it shows.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import orjson

from shardqa import analysis, bridges, checks, filters, keys
from shardqa.errors import BadData, ClusterUnavailable, Indexing, NoEncoder
from shardqa.gears_functions import arguments, permissions
from shardqa.request import FIELD, checked
from shardqa.statistics import CorpusStatistics, QuestionVector, total

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.index.corpus_index import Index
    from shardqa.gears_functions.runtime import Argument
    from shardqa.gears_functions.shard.encoder import ShardEncoder
    from shardqa.gears_functions.shard.state import ShardState
    from shardqa.gears_functions.shard.timings import Timings

MAX_LIMIT = 1_000  # passages of one list
RANK_SECONDS = 300  # life of a `rank:` key: it shows why, nothing reads it
GIVEN_SECONDS = 10.0  # for which a GET may go by the statistics that came with Rank: as long as a question takes
ASIDE = "aside"  # field of the statistics: the list is for another shard's use, and no GET goes by it
REMEMBERED = 512  # rankings kept for the GET that follows; a few dozen kilobytes each at most


@dataclass(frozen=True, slots=True)
class ShardRanking:
    question: str  # normalised, in full: keys may hold only its hash
    epoch: int  # of the corpus when it was ranked
    limit: int
    passages: list[tuple[str, float]]  # key and score, best first
    words: list[list[str]]  # of the first passages
    filter_: str = ""  # canonical
    request: str = ""  # that asked for it last, for the log
    given: CorpusStatistics | None = None  # whoever asked for it had summed these up
    at: float = 0.0  # monotonic seconds

    def reaches(self, k: int) -> bool:
        """Whether the best k are among these."""
        return len(self.passages) >= k or self.limit >= k


class Ranks:
    """The ranking functions of one shard. The worker's loop only."""

    def __init__(self, shard: ShardState, timings: Timings, encoder: ShardEncoder) -> None:
        self._shard = shard
        self._timings = timings
        self._encoder = encoder
        self._recent: OrderedDict[tuple[str, str], ShardRanking] = (
            OrderedDict()
        )  # (corpus, question in keys), oldest first
        self._writes: set[asyncio.Task[None]] = set()  # rank: keys on their way, held so that they are not collected

    # ---- functions

    async def terms(self, record: Record) -> str:
        corpus, asked, *given = arguments.words(record, "Terms <corpus> <question> [<view>]", 2, 3)
        keys.check_corpus(corpus)
        await permissions.to_ask(self._shard.runtime, corpus)
        question = checks.question(asked)
        self._shard.tokenizer.question(question)  # too long for the reader: said now, whether or not a passage matches
        await self._shard.synced()
        epoch = await self._shard.epoch(corpus)
        # Nothing is awaited from here on: whoever remembers the numbers holds them for those of this epoch.
        asked_for = analysis.query(question)
        view = "".join(given)
        statistics = self._shard.statistics(corpus, asked_for, view)
        titled = self._shard.index(corpus).titled(asked_for, view)
        return self._reply(epoch=epoch, titled=titled, analysis=analysis.fingerprint(), **statistics.record())

    async def rank(self, record: Record) -> str:
        usage = "Rank <corpus> <question> <limit> [<statistics> [<filter>]]"
        corpus, asked, wanted, *given = arguments.words(record, usage, 3, 5)
        keys.check_corpus(corpus)
        question = checks.question(asked)
        limit = arguments.number("limit", wanted, 1, MAX_LIMIT)
        demand = permissions.to_ask_with_statistics if given else permissions.to_ask
        await demand(self._shard.runtime, corpus)
        self._shard.tokenizer.question(question)  # an engine that remembers the statistics has not sent Terms
        statistics, request = parse_statistics(given[0]) if given else (None, "")
        is_aside = bool(given) and is_aside_of(given[0])
        filter_ = given[1] if len(given) > 1 else ""
        filters.parse(filter_)
        start = perf_counter()
        ranking = await self.ranking(corpus, question, limit, statistics, filter_, request, is_aside)
        us = round((perf_counter() - start) * 1e6)
        self._timings.add({"rank": us})
        if not is_aside:
            await self._show(corpus, ranking)
        words = {"words": ranking.words} if statistics is not None and statistics.is_bridged else {}
        return self._reply(epoch=ranking.epoch, passages=ranking.passages, us=us, **words)

    async def bridge(self, record: Record) -> str:
        corpus, raw, *given = arguments.words(record, "Bridge <corpus> <words> [<view>]", 2, 3)
        keys.check_corpus(corpus)
        words = parse_words(raw)
        await permissions.to_ask(self._shard.runtime, corpus)
        await self._shard.synced()
        epoch = await self._shard.epoch(corpus)
        return self._reply(epoch=epoch, **self._shard.named(corpus, words, "".join(given)).record())

    async def corpora(self, record: Record) -> str:
        """Those that the client may ask, and what `shard` tells."""
        view = "".join(arguments.words(record, "Corpora [<view>]", 0, 1))
        state, parts = await self._state()
        encoder = await self._encoder.id()
        corpora = {
            corpus: {
                **asdict(index.sizes(view)),
                "epoch": await self._shard.epoch(corpus),
                "encoded": self._encoded(corpus, index, encoder, view),
            }
            for corpus, index in parts.items()
        }
        return self._reply(**state, dropping=await self._dropping(), corpora=corpora)

    def _encoded(self, corpus: str, index: Index, encoder: str | None, view: str) -> int | None:
        if encoder is None or self._shard.lexical.covers(corpus):
            return None
        return index.vectors(view).get(encoder, 0)

    async def shard(self, record: Record) -> str:
        """`indexing` while the shard reads its passages into its index, `passages` in it of the corpora that the client
        may ask; `refuses` tells why Redis stores nothing now, null where it does."""
        arguments.words(record, "Shard", 0, 0)
        state, _ = await self._state()
        return self._reply(**state)

    async def _state(self) -> tuple[dict[str, Any], dict[str, Index]]:
        """(what `shard` tells, the corpora that the client may ask)."""
        indexing = False
        try:
            await self._shard.synced()
        except Indexing:
            indexing = True
        asked = await permissions.corpora_to_ask(self._shard.runtime, sorted(self._shard.corpora))
        refuses = await self._shard.refuses()
        parts = {corpus: index for corpus in asked if (index := self._shard.corpora.get(corpus)) is not None}
        return {"indexing": indexing, "passages": sum(map(len, parts.values())), "refuses": refuses}, parts

    async def _dropping(self) -> dict[str, dict[str, int]]:
        """Of those that the client may ask."""
        dropped = self._shard.dropped
        asked = await permissions.corpora_to_ask(self._shard.runtime, dropped.corpora())
        found = {corpus: progress for corpus in asked if (progress := dropped.progress(corpus)) is not None}
        return {name: {"documents": one.documents, "removed": one.removed} for name, one in found.items()}

    def _reply(self, **fields: Any) -> str:
        return orjson.dumps({"tag": self._shard.runtime.hashtag(), **fields}).decode()

    def request_of(self, record: Record) -> str:
        """Of a Rank, for the log."""
        found = ""
        with suppress(BadData):
            found = parse_statistics(record[4])[1] if len(record) > 4 else ""
        return f"request {found or 'without an id'}, corpus {str(record[1])[:80] if len(record) > 1 else ''}"

    # ---- ranking

    async def ranking(
        self,
        corpus: str,
        question: str,
        limit: int,
        statistics: CorpusStatistics | None = None,
        filter_: str = "",
        request: str = "",
        is_aside: bool = False,
    ) -> ShardRanking:
        """The best passages of this shard, of the documents that a filter lets through; without `statistics` the other
        shards are asked for theirs.

        Raises ClusterUnavailable when one of them does not answer: with less than all numbers the order is another;
        Indexing while this one is not ready.
        """
        given = statistics
        if statistics is None:
            statistics = await self._everyones_statistics(corpus, question, filters.view_of(filter_))
            if statistics.is_bridged:
                found = await self._bridges(corpus, question, statistics, filter_)
                statistics = replace(statistics, bridges=found)
        await self._shard.synced()
        epoch = await self._shard.epoch(corpus)
        # Nothing is awaited from here to the list: it is of this epoch.
        index = self._shard.index(corpus)
        passages = index.rank(analysis.query(question), statistics, limit, filter_)
        words = index.first_words(passages) if statistics.is_bridged else []
        ranking = ShardRanking(question, epoch, limit, passages, words, filter_, request, given, monotonic())
        if not is_aside:
            self._remember(corpus, ranking)
        return ranking

    async def anew(self, corpus: str, before: ShardRanking, limit: int) -> ShardRanking | None:
        """A ranking that the corpus has changed under, by the statistics that came with it; None where they are old.

        The other shards need not be asked: one that is gone would keep this one from answering. It is not remembered.
        """
        if before.given is None or monotonic() - before.at > GIVEN_SECONDS:
            return None
        await self._shard.synced()
        epoch = await self._shard.epoch(corpus)
        passages = self._shard.index(corpus).rank(analysis.query(before.question), before.given, limit, before.filter_)
        return replace(before, epoch=epoch, limit=limit, passages=passages)

    def remembered(self, corpus: str, question_in_key: str) -> ShardRanking | None:
        """The last ranking of a question, by the form it has in keys; it may be of an older epoch."""
        return self._recent.get((corpus, question_in_key))

    def _remember(self, corpus: str, ranking: ShardRanking) -> None:
        name = (corpus, keys.question_in_key(ranking.question, ranking.filter_))
        self._recent[name] = ranking
        self._recent.move_to_end(name)
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)

    async def _statistics(self, corpus: str, question: str, view: str) -> CorpusStatistics:
        await self._shard.synced()
        return self._shard.statistics(corpus, analysis.query(question), view)

    async def _everyones_statistics(self, corpus: str, question: str, view: str) -> CorpusStatistics:
        words = ["RG.TRIGGER", "Terms", corpus, question, *([view] if view else [])]
        replies = await self._shard.runtime.peers(*words)
        for reply in replies:
            if isinstance(reply, Exception):
                raise ClusterUnavailable(f"another shard gave no statistics: {reply}; ask again in a moment")
        statistics = total(
            [
                await self._statistics(corpus, question, view),
                *(parse_statistics(reply[0])[0] for reply in replies if not isinstance(reply, Exception)),
            ]
        )
        return statistics.compared(await self._vector(corpus, question)) if statistics.encoders else statistics

    async def _bridges(
        self, corpus: str, question: str, statistics: CorpusStatistics, filter_: str
    ) -> bridges.Bridges | None:
        """What the first passages of all shards name, for whoever asks this one without an engine."""
        own = await self.ranking(corpus, question, bridges.FIRST, statistics, filter_, is_aside=True)
        asked = {**statistics.record(), ASIDE: True}
        lists = await self._peers("Rank", corpus, question, bridges.FIRST, orjson.dumps(asked).decode(), filter_)
        told = [(own.passages, own.words), *((one["passages"], one["words"]) for one in lists)]
        first = bridges.first_passages(told)
        words = [list(one.words) for one in first]
        view = filters.view_of(filter_)
        counts = await self._peers("Bridge", corpus, orjson.dumps(words).decode(), *([view] if view else []))
        named = bridges.counted([self._shard.named(corpus, words, view), *map(bridges.NamedTitles.parse, counts)])
        return bridges.build(first, named, statistics.passages)

    async def _peers(self, *command: Argument) -> list[dict[str, Any]]:
        """Replies of all other shards. Raises ClusterUnavailable."""
        replies = await self._shard.runtime.peers("RG.TRIGGER", *command)
        for reply in replies:
            if isinstance(reply, Exception):
                raise ClusterUnavailable(f"another shard did not rank: {reply}; ask again in a moment")
        return [orjson.loads(reply[0]) for reply in replies if not isinstance(reply, Exception)]

    async def _vector(self, corpus: str, question: str) -> QuestionVector | None:
        """Of this shard's encoder, else of another's; None: there is none, and the words alone count."""
        try:
            return await self._encoder.question(question)
        except NoEncoder:
            replies = await self._shard.runtime.peers("RG.TRIGGER", "Embed", corpus, question)
        came = (QuestionVector.of_reply(orjson.loads(one[0])) for one in replies if not isinstance(one, Exception))
        return next((one for one in came if one is not None), None)

    async def _show(self, corpus: str, ranking: ShardRanking) -> None:
        """Sends the list to its `rank:` key, ahead of the reply on the same socket, and does not wait for it."""
        task = asyncio.create_task(self._write(corpus, ranking))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        await asyncio.sleep(0)

    async def _write(self, corpus: str, ranking: ShardRanking) -> None:
        runtime = self._shard.runtime
        key = keys.rank(corpus, runtime.hashtag(), ranking.question, ranking.filter_)
        pairs = [word for passage, score in ranking.passages for word in (score, passage)]
        fill = [("ZADD", key, *pairs), ("EXPIRE", key, RANK_SECONDS)] if pairs else []
        for reply in await runtime.calls([("UNLINK", key), *fill]):
            if isinstance(reply, Exception):
                runtime.log(f"{key!r} was not written: {reply}", "verbose")


def parse_statistics(raw: str | bytes) -> tuple[CorpusStatistics, str]:
    """The statistics, and the id of the request that came along."""
    try:
        record = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadData(f"the statistics are not JSON: {error}; send the sum of all shards' Terms") from None
    return CorpusStatistics.parse(record), checked(record.get(FIELD))


def is_aside_of(raw: str) -> bool:
    """Of statistics that were parsed."""
    return bool(orjson.loads(raw).get(ASIDE))


def parse_words(raw: str) -> list[list[str]]:
    """Of the first passages."""
    try:
        return bridges.parse_words(orjson.loads(raw))
    except orjson.JSONDecodeError as error:
        raise BadData(f"the words are not JSON: {error}; send those that Rank told") from None
