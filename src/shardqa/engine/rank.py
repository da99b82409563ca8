"""Ranks passages across shards: sums the corpus-wide statistics first, then merges the shards' lists."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeAlias
from zlib import crc32

from shardqa import keys, request, rounds
from shardqa.bridges import FIRST, Bridges, first_passages
from shardqa.description import record_of
from shardqa.engine import absence
from shardqa.engine.bridging import Bridge
from shardqa.engine.connections import Shards
from shardqa.engine.epochs import Epochs, PartEpochs
from shardqa.engine.shard_parts import ShardPart, asked
from shardqa.errors import ClusterUnavailable, ShardqaError, UnknownCorpus
from shardqa.models.scoring import Ranks
from shardqa.question import Question
from shardqa.rounds import RankReply, StatisticsArgument, TermsReply
from shardqa.statistics import CorpusStatistics, QuestionVector, total


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """The first round: what the shards know of a question's terms."""

    statistics: CorpusStatistics  # the sum of all
    epochs: PartEpochs  # of the shards that answered
    failed: list[str]  # nodes that did not
    ms: float
    wordless: frozenset[ShardPart] = frozenset()  # those without a word of the question: they need not be asked more
    titled: frozenset[ShardPart] = frozenset()  # those whose documents have titles
    absent: tuple[str, ...] = ()  # terms that no passage has, nor its title; none where a shard is missing


@dataclass(frozen=True, slots=True)
class RankedPassage:
    key: str
    corpus: str
    document: str
    score: float
    node: str
    tag: str


@dataclass(frozen=True, slots=True)
class RankedList:
    """The passages of all shards, best first; ties are broken by key."""

    question: Question
    passages: list[RankedPassage]
    epochs: PartEpochs
    is_settled: bool = True  # False: the corpus changed between the two rounds, so the scores are of neither state
    failed: list[str] = field(default_factory=list)  # nodes that did not answer
    terms_ms: float = 0.0
    rank_ms: float = 0.0
    bridges: Bridges | None = None  # what the first passages name
    size: int = 0  # passages of the corpus
    absent: tuple[str, ...] = ()  # of ShardTerms

    @property
    def ranks(self) -> Ranks:
        return Ranks([passage.score for passage in self.passages], self.size)


PartList: TypeAlias = tuple[ShardPart, RankReply]  # a shard's part of a corpus, and the passages of it that rank best


def since(start: float) -> float:
    """Returns the milliseconds since a moment."""
    return round((perf_counter() - start) * 1_000, 3)


class Ranking:
    def __init__(self, shards: Shards, epochs: Epochs) -> None:
        self._shards = shards
        self._epochs = epochs
        self._encoded = set[tuple[str, ...]]()  # corpora of which enough passages had vectors when they were asked last

    async def terms(self, question: Question) -> ShardTerms:
        """The statistics of what the question's view shows, and its vector where passages have some.

        Raises UnknownCorpus, BadFilter, ClusterUnavailable.
        """
        start = perf_counter()
        vector = asyncio.create_task(self._vector(question)) if question.corpora in self._encoded else None
        try:
            terms = await self._statistics(question)
            if terms.statistics.encoders:
                self._encoded.add(question.corpora)
                statistics = terms.statistics.compared(await (vector or self._vector(question)))
                terms = replace(terms, statistics=statistics)
            else:
                self._encoded.discard(question.corpora)
        finally:
            if vector is not None:
                vector.cancel()
        return replace(terms, ms=since(start))

    async def _vector(self, question: Question) -> QuestionVector | None:
        """Has one shard encode the question, another for each, or the next that has an encoder; None: no shard has."""
        nodes = sorted(self._shards.nodes(), key=lambda node: str(node.name))
        first = crc32(question.text.encode("utf-8", "surrogatepass")) % max(1, len(nodes))
        for node in nodes[first:] + nodes[:first]:
            try:
                reply = await self._shards.on(node, *rounds.embed(question.corpora[0], question.text))
                vector = QuestionVector.of_reply(record_of(reply))
            except ShardqaError:  # what is wrong with the question, the terms tell as well
                continue
            if vector is not None:
                return vector
        return None

    async def _statistics(self, question: Question) -> ShardTerms:
        """Asks all shards; one that holds no word of the question is passed over from here on."""
        start = perf_counter()
        with self._epochs.readings(question.corpora) as readings:
            replies, failures = await asked(
                self._shards,
                question,
                lambda corpus: rounds.terms(corpus, question.text, question.view),
                TermsReply.parse,
            )
            every = [terms for _, terms in replies]
            statistics = total(terms.statistics for terms in every)
            _demand_documents(
                question.corpora, {part.corpus for part, one in replies if one.statistics.documents}, failures
            )
            epochs = _epochs_of(replies)
            if not failures:
                self._epochs.learn_of(readings, epochs)
        return ShardTerms(
            statistics,
            epochs,
            failures,
            since(start),
            wordless=frozenset(part for part, terms in replies if terms.has_none and not statistics.vectors),
            titled=frozenset(part for part, terms in replies if terms.statistics.titles),
            absent=() if failures else absence.of(statistics, [terms.titled for terms in every]),
        )

    async def rank(
        self,
        question: Question,
        limit: int,
        terms: ShardTerms | None = None,
        on_best: Callable[[RankedList], None] | None = None,
    ) -> RankedList:
        """The best `limit` passages of all shards, in two rounds; `terms` are of a first that was made already. A
        filter leaves documents out on the shards, and no score depends on it, unless it is a View. `on_best` hears of
        the list before bridges are looked for, which put no passage before the best.

        Raises BadFilter, UnknownCorpus, ClusterUnavailable and what `ask` raises.
        """
        terms = terms or await self.terms(question)
        ranking, is_current = await self._ranked(question, limit, terms, on_best)
        if is_current or not terms.wordless:
            return ranking
        # Something changed since the first round: a shard that was passed over may hold a word by now.
        again = await self.terms(question)
        everyone = replace(again, ms=terms.ms + again.ms, wordless=frozenset())
        return (await self._ranked(question, limit, everyone, on_best))[0]

    async def _ranked(
        self, question: Question, limit: int, terms: ShardTerms, on_best: Callable[[RankedList], None] | None
    ) -> tuple[RankedList, bool]:
        """The list, and whether all that answered are still at the epochs of the terms."""
        start = perf_counter()
        most = max(limit, FIRST) if terms.statistics.is_bridged else limit
        with self._epochs.readings(question.corpora) as readings:
            lists, failures = await self._lists(question, most, terms.statistics, terms.wordless)
            silent = sorted({*terms.failed, *failures})
            epochs = _epochs_of(lists)
            if not silent and not terms.wordless:
                self._epochs.learn_of(readings, epochs)
        bridge = Bridge(self._shards, question, terms.titled)
        if terms.statistics.is_bridged:
            if on_best is not None:
                on_best(_merged(question, limit, terms, lists, epochs))
            lists, failures = await self._led_on(question, most, terms.statistics, bridge, lists)
            silent = sorted({*silent, *failures})
            epochs |= bridge.epochs | _epochs_of(lists)
        is_current = all(terms.epochs.get(part) == epoch for part, epoch in epochs.items())
        if terms.wordless:
            epochs = terms.epochs | epochs
        ranking = _merged(question, limit, terms, lists, epochs)
        result = replace(ranking, failed=silent, rank_ms=since(start), bridges=bridge.bridges)
        return result, is_current

    async def _lists(
        self, question: Question, limit: int, statistics: CorpusStatistics, but: Collection[ShardPart]
    ) -> tuple[list[PartList], list[str]]:
        """The lists, and the nodes that did not answer."""
        argument = StatisticsArgument(statistics, request.current.get(), among=question.among)
        return await asked(
            self._shards,
            question,
            lambda corpus: rounds.rank(corpus, question.text, limit, argument, question.filter),
            RankReply.parse,
            but,
            others_are_known=bool(but),
        )

    async def _led_on(
        self, question: Question, limit: int, statistics: CorpusStatistics, bridge: Bridge, lists: list[PartList]
    ) -> tuple[list[PartList], list[str]]:
        """Asks those shards anew that a title of the first passages leads to; the other lists stay."""
        first = first_passages((one.passages, one.words) for _, one in lists)
        await bridge.look(first, statistics.passages)
        if bridge.bridges is None:
            return lists, bridge.failed
        again, silent = await self._lists(question, limit, replace(statistics, bridges=bridge.bridges), bridge.others())
        by_part = {(part.corpus, one.tag): (part, one) for part, one in [*lists, *again]}  # a failover renames the node
        return list(by_part.values()), [*bridge.failed, *silent]


def _merged(question: Question, limit: int, terms: ShardTerms, lists: list[PartList], epochs: PartEpochs) -> RankedList:
    passages = [
        RankedPassage(key, *keys.parse_passage(key).name, score, part.node, one.tag)
        for part, one in lists
        for key, score in one.passages
    ]
    passages.sort(key=lambda passage: (-passage.score, passage.key))
    return RankedList(
        question,
        passages=passages[:limit],
        epochs=epochs,
        is_settled=terms.epochs == epochs,
        terms_ms=terms.ms,
        size=terms.statistics.passages,
        absent=terms.absent,
    )


def _epochs_of(replies: Sequence[tuple[ShardPart, TermsReply | RankReply]]) -> PartEpochs:
    return {(part.corpus, reply.tag): reply.epoch for part, reply in replies}


def _demand_documents(corpora: Sequence[str], names: Collection[str], silent: list[str]) -> None:
    """`names` are of corpora with documents. Raises UnknownCorpus, and ClusterUnavailable where the shards that answer
    have no document of any."""
    missing = [corpus for corpus in corpora if corpus not in names]
    if missing and not silent:
        raise UnknownCorpus(f"there is no corpus {missing[0]!r}")
    if silent and not names:
        raise ClusterUnavailable(
            f"corpus {missing[0]!r} has no document on the shards that answer, and {', '.join(silent)} did not; "
            "see 'shardqa status'"
        )
