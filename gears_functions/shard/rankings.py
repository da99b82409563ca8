"""Rankings of this shard's passages, remembered for the GET that follows.

An engine sums up the statistics of all shards and sends them along; without them the other shards are asked for theirs.
The worker's loop only.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, TypeVar

from cachetools import LRUCache

from shardqa import analysis, bridges, filters, keys, rounds
from shardqa.description import record_of
from shardqa.errors import ClusterUnavailable, NoEncoder
from shardqa.gears_functions.shard.encoder import ShardEncoder
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.pairs import Pairs
from shardqa.gears_functions.shard.shard_terms import ShardTerms
from shardqa.rounds import BridgeReply, RankReply, StatisticsArgument, TermsReply
from shardqa.statistics import CorpusStatistics, QuestionVector, total
from shardqa.worker.runtime import Runtime

Reply = TypeVar("Reply")

MAX_LIMIT = 1_000  # passages of one list
STATISTICS_SECONDS = 10.0  # for which a GET may go by the statistics that came with Rank: as long as a question takes
REMEMBERED = 512  # rankings kept for the GET that follows; a few dozen kilobytes each at most


@dataclass(frozen=True, slots=True)
class ShardRanking:
    question: str  # normalised, in full: keys may hold only its hash
    epoch: int  # of the corpus when it was ranked
    limit: int
    passages: list[tuple[str, float]]  # key and score, best first
    words: list[list[str]]  # of the first passages
    filter_: str = ""  # canonical
    argument: StatisticsArgument | None = None  # that came with the request
    at: float = 0.0  # monotonic seconds

    def reaches(self, k: int) -> bool:
        """Returns whether this ranking has the best k passages, or all that there are."""
        return len(self.passages) >= k or self.limit >= k

    @property
    def request(self) -> str:
        """Returns the id of the request that last asked for this ranking, for the log."""
        return "" if self.argument is None else self.argument.request

    @property
    def among(self) -> str:
        return "" if self.argument is None else self.argument.among


class Rankings:
    def __init__(
        self, runtime: Runtime, sync: KeyspaceSync, terms: ShardTerms, encoder: ShardEncoder, pairs: Pairs
    ) -> None:
        self._runtime = runtime
        self._sync = sync
        self._terms = terms
        self._encoder = encoder
        self._pairs = pairs
        self._recent: LRUCache[tuple[str, str], ShardRanking] = LRUCache(REMEMBERED)  # by corpus, question in keys

    async def rank(
        self, corpus: str, question: str, limit: int, filter_: str = "", argument: StatisticsArgument | None = None
    ) -> ShardRanking:
        """Returns the best passages of this shard, of the documents that a filter lets through.

        Without `argument` the other shards are asked for their statistics. Raises ClusterUnavailable when one of them
        does not answer: with less than all numbers the order is another; Indexing while this one is not ready.
        """
        if argument is None:
            statistics = await self._everyones_statistics(corpus, question, filter_)
            ranking = await self._rank(corpus, question, limit, filter_, statistics)
        else:
            ranking = await self._rank(corpus, question, limit, filter_, argument.statistics)
            ranking = replace(ranking, argument=argument)
        if argument is None or not argument.is_aside:
            self._remember(corpus, ranking)
        return ranking

    async def rank_again(self, corpus: str, before: ShardRanking, limit: int) -> ShardRanking | None:
        """Ranks anew, by a ranking's own statistics, after the corpus has changed; None where those are old.

        The other shards need not be asked: one that is gone would keep this one from answering. It is not remembered.
        """
        if before.argument is None or monotonic() - before.at > STATISTICS_SECONDS:
            return None
        ranking = await self._rank(corpus, before.question, limit, before.filter_, before.argument.statistics)
        return replace(ranking, argument=before.argument, at=before.at)

    def remembered(self, corpus: str, question_in_key: str) -> ShardRanking | None:
        """Returns the last ranking of a question, by the form it has in keys; it may be of an older epoch."""
        return self._recent.get((corpus, question_in_key))

    async def _rank(
        self, corpus: str, question: str, limit: int, filter_: str, statistics: CorpusStatistics
    ) -> ShardRanking:
        await self._sync.synced()
        epoch = await self._sync.epoch(corpus)
        # Nothing is awaited from here to the list: it is of this epoch.
        index = self._sync.index(corpus)
        passages = index.rank(analysis.query(question), statistics, limit, filter_)
        words = index.first_words(passages) if statistics.is_bridged else []
        return ShardRanking(question, epoch, limit, passages, words, filter_, at=monotonic())

    def _remember(self, corpus: str, ranking: ShardRanking) -> None:
        self._recent[corpus, keys.question_in_key(ranking.question, ranking.filter_, ranking.among)] = ranking

    # ---- asking the other shards

    async def _everyones_statistics(self, corpus: str, question: str, filter_: str) -> CorpusStatistics:
        view = filters.view_of(filter_)
        others = await self._peers(rounds.terms(corpus, question, view), TermsReply.parse)
        await self._sync.synced()
        own = self._terms.statistics(corpus, analysis.query(question), view)
        statistics = total([own, *(one.statistics for one in others)])
        if statistics.encoders:
            statistics = statistics.compared(await self._vector(corpus, question))
        if statistics.is_bridged:
            return replace(statistics, bridges=await self._bridges(corpus, question, statistics, filter_))
        return statistics

    async def _bridges(
        self, corpus: str, question: str, statistics: CorpusStatistics, filter_: str
    ) -> bridges.Bridges | None:
        """Returns the bridges that the first passages of all shards name; None where the corpus follows none."""
        own = await self._rank(corpus, question, bridges.FIRST, filter_, statistics)
        argument = StatisticsArgument(statistics, is_aside=True)
        lists = await self._peers(rounds.rank(corpus, question, bridges.FIRST, argument, filter_), RankReply.parse)
        first = bridges.first_passages([(own.passages, own.words), *((one.passages, one.words) for one in lists)])
        view = filters.view_of(filter_)
        replies = await self._peers(rounds.bridge(corpus, first, view), BridgeReply.parse)
        titles = self._terms.titles(corpus, [one.words for one in first], view)
        counts = bridges.counted([titles, *(one.named for one in replies)])
        return bridges.build(first, counts, statistics.passages)

    async def _peers(self, command: rounds.Command, parse: Callable[[Any], Reply]) -> list[Reply]:
        """Returns the replies of all other shards. Raises ClusterUnavailable."""
        replies = await self._runtime.peers(*command)
        for reply in replies:
            if isinstance(reply, Exception):
                raise ClusterUnavailable(f"another shard did not help to rank: {reply}; ask again in a moment")
        return [parse(reply) for reply in replies]

    async def _vector(self, corpus: str, question: str) -> QuestionVector | None:
        """Returns the question's vector by this shard's encoder, else by another's; None: no shard has one."""
        try:
            return await self._encoder.question(await self._pairs.of(corpus), question)
        except NoEncoder:
            replies = await self._runtime.peers(*rounds.embed(corpus, question))
        vectors = (QuestionVector.of_reply(record_of(one)) for one in replies if not isinstance(one, Exception))
        return next((vector for vector in vectors if vector is not None), None)
