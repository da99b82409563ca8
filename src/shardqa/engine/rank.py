"""Ranks passages across shards: sums the corpus-wide statistics first, then merges the shards' lists."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Self
from zlib import crc32

import orjson

from shardqa import keys, request
from shardqa.bridges import FIRST, Bridges, first_passages
from shardqa.description import record_of
from shardqa.engine.bridging import Bridge
from shardqa.engine.connections import Argument, Shards, values_and_failures
from shardqa.engine.epochs import Epochs
from shardqa.errors import ClusterUnavailable, ShardqaError, UnknownCorpus
from shardqa.models.scoring import Ranks
from shardqa.question import Question
from shardqa.statistics import CorpusStatistics, QuestionVector, total


@dataclass(frozen=True, slots=True)
class TermsReply:
    """A shard's numbers of a question's terms."""

    node: str
    tag: str
    epoch: int
    statistics: CorpusStatistics
    titled: Mapping[str, int]  # passages by term that their title holds

    @classmethod
    def parse(cls, node: str, reply: dict[str, Any]) -> Self:
        return cls(node, str(reply["tag"]), int(reply["epoch"]), CorpusStatistics.parse(reply), reply["titled"])

    @property
    def has_none(self) -> bool:
        """Whether no passage of the shard can rank by words: none holds one of the question's, in text or title."""
        return not any(self.statistics.df.values()) and not any(self.titled.values())


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """The first round: what the shards know of a question's terms."""

    statistics: CorpusStatistics  # the sum of all
    epochs: dict[str, int]  # by tag, of the shards that answered
    failed: list[str]  # nodes that did not
    ms: float
    wordless: frozenset[str] = frozenset()  # nodes that hold no word of the question, and need not be asked more
    titled: frozenset[str] = frozenset()  # nodes whose documents have titles


@dataclass(frozen=True, slots=True)
class RankedPassage:
    key: str
    document: str
    score: float
    node: str
    tag: str


@dataclass(frozen=True, slots=True)
class RankedList:
    """The passages of all shards, best first; ties are broken by key."""

    question: Question
    passages: list[RankedPassage]
    epochs: dict[str, int]  # tag -> epoch
    is_settled: bool = True  # False: the corpus changed between the two rounds, so the scores are of neither state
    failed: list[str] = field(default_factory=list)  # nodes that did not answer
    terms_ms: float = 0.0
    rank_ms: float = 0.0
    bridges: Bridges | None = None  # what the first passages name
    size: int = 0  # passages of the corpus

    @property
    def ranks(self) -> Ranks:
        return Ranks([passage.score for passage in self.passages], self.size)


@dataclass(frozen=True, slots=True)
class ShardList:
    """The passages that one shard ranks best."""

    node: str
    tag: str
    epoch: int
    scores: list[tuple[str, float]]  # (key, score), best first
    words: list[list[str]]  # of the first passages

    @classmethod
    def parse(cls, node: str, reply: dict[str, Any]) -> Self:
        return cls(node, str(reply["tag"]), int(reply["epoch"]), reply["passages"], reply.get("words", []))

    def passages(self) -> list[RankedPassage]:
        return [
            RankedPassage(key, keys.parse_passage(key).document, score, self.node, self.tag)
            for key, score in self.scores
        ]


def since(start: float) -> float:
    """Milliseconds."""
    return round((perf_counter() - start) * 1_000, 3)


class Ranking:
    def __init__(self, shards: Shards, epochs: Epochs) -> None:
        self._shards = shards
        self._epochs = epochs
        self._encoded = set[str]()  # corpora of which enough passages had vectors when they were asked last

    async def terms(self, question: Question) -> ShardTerms:
        """The statistics of the documents that the question's view shows. Where passages have vectors, the question's
        own is asked for beside the terms: so it takes next to no time.

        Raises UnknownCorpus, BadFilter, ClusterUnavailable.
        """
        start = perf_counter()
        vector = asyncio.create_task(self._vector(question)) if question.corpus in self._encoded else None
        try:
            terms = await self._statistics(question)
            if terms.statistics.encoders:
                self._encoded.add(question.corpus)
                compared = terms.statistics.compared(await (vector or self._vector(question)))
                terms = replace(terms, statistics=compared)
            else:
                self._encoded.discard(question.corpus)
        finally:
            if vector is not None:
                vector.cancel()
        return replace(terms, ms=since(start))

    async def _vector(self, question: Question) -> QuestionVector | None:
        """One shard encodes the question, another for each; where that has no encoder, the next. None: no shard has
        one, and the words alone count."""
        nodes = sorted(self._shards.nodes(), key=lambda node: str(node.name))
        first = crc32(question.text.encode("utf-8", "surrogatepass")) % max(1, len(nodes))
        for node in nodes[first:] + nodes[:first]:
            try:
                reply = await self._shards.on(node, "RG.TRIGGER", "Embed", question.corpus, question.text)
                vector = QuestionVector.of_reply(record_of(reply))
            except ShardqaError:  # what is wrong with the question, the terms tell as well
                continue
            if vector is not None:
                return vector
        return None

    async def _statistics(self, question: Question) -> ShardTerms:
        """Asks all shards; one that holds no word of the question is passed over from here on."""
        start, corpus = perf_counter(), question.corpus
        with self._epochs.reading(corpus) as reading:
            words = ("RG.TRIGGER", "Terms", corpus, question.text, *([question.view] if question.view else []))
            values, failed = values_and_failures(await self._shards.everywhere(*words), record_of)
            every = [TermsReply.parse(node, reply) for node, reply in values]
            statistics = total(terms.statistics for terms in every)
            if statistics.documents == 0:
                raise _no_documents(corpus, failed)
            epochs = {terms.tag: terms.epoch for terms in every}
            if not failed:
                self._epochs.learn(reading, epochs)
        return ShardTerms(
            statistics,
            epochs,
            failed,
            since(start),
            wordless=frozenset(terms.node for terms in every if terms.has_none and not statistics.vectors),
            titled=frozenset(terms.node for terms in every if terms.statistics.titles),
        )

    async def rank(
        self,
        question: Question,
        limit: int,
        terms: ShardTerms | None = None,
        on_best: Callable[[RankedList], None] | None = None,
    ) -> RankedList:
        """The best `limit` passages of all shards. Two rounds: corpus-wide statistics first, so that the order is
        the same however many shards there are; `terms` are those of a first round that was made already. A filter
        leaves documents out on the shards, and no score depends on it, unless it is a View. Shards without any word of
        the question are not asked. `on_best` hears of the list before bridges are looked for, which put no passage
        before the best.

        Raises BadFilter, UnknownCorpus, ClusterUnavailable and what `ask` raises.
        """
        terms = terms or await self.terms(question)
        ranked, is_current = await self._ranked(question, limit, terms, on_best)
        if is_current or not terms.wordless:
            return ranked
        # Something changed since the first round: a shard that was passed over may hold a word by now.
        again = await self.terms(question)
        everyone = replace(again, ms=terms.ms + again.ms, wordless=frozenset())
        ranked, _ = await self._ranked(question, limit, everyone, on_best)
        return ranked

    async def _ranked(
        self, question: Question, limit: int, terms: ShardTerms, on_best: Callable[[RankedList], None] | None
    ) -> tuple[RankedList, bool]:
        """The list, and whether all that answered are still at the epochs of the terms."""
        start = perf_counter()
        most = max(limit, FIRST) if terms.statistics.is_bridged else limit
        with self._epochs.reading(question.corpus) as reading:
            lists, failures = await self._lists(question, most, terms.statistics, terms.wordless)
            failed = sorted({*terms.failed, *failures})
            epochs = {one.tag: one.epoch for one in lists}
            if not failed and not terms.wordless:
                self._epochs.learn(reading, epochs)
        bridge = Bridge(self._shards, question, terms.titled)
        if terms.statistics.is_bridged:
            if on_best is not None:
                on_best(_merged(question, limit, terms, lists, epochs))
            lists, failures = await self._led_on(question, most, terms.statistics, bridge, lists)
            failed = sorted({*failed, *failures})
            epochs |= bridge.epochs | {one.tag: one.epoch for one in lists}
        is_current = all(terms.epochs.get(tag) == epoch for tag, epoch in epochs.items())
        if terms.wordless:
            epochs = terms.epochs | epochs
        merged = _merged(question, limit, terms, lists, epochs)
        ranked = replace(merged, failed=failed, rank_ms=since(start), bridges=bridge.bridges)
        return ranked, is_current

    async def _lists(
        self, question: Question, limit: int, statistics: CorpusStatistics, but: Collection[str]
    ) -> tuple[list[ShardList], list[str]]:
        """The lists, and the nodes that did not answer."""
        record = orjson.dumps({**statistics.record(), request.FIELD: request.current.get()})
        command: list[Argument] = ["RG.TRIGGER", "Rank", question.corpus, question.text, limit, record]
        command += [question.filter] if question.filter else []
        replies = await self._shards.everywhere(*command, but=but)
        values, failed = values_and_failures(replies, record_of, bool(but))
        return [ShardList.parse(node, reply) for node, reply in values], failed

    async def _led_on(
        self, question: Question, limit: int, statistics: CorpusStatistics, bridge: Bridge, lists: list[ShardList]
    ) -> tuple[list[ShardList], list[str]]:
        """Asks those shards anew that a title of the first passages leads to; the other lists stay."""
        first = first_passages((one.scores, one.words) for one in lists)
        await bridge.look(first, statistics.passages)
        if bridge.bridges is None:
            return lists, bridge.failed
        again, failed = await self._lists(question, limit, replace(statistics, bridges=bridge.bridges), bridge.others())
        new = {one.node for one in again}
        return [*(one for one in lists if one.node not in new), *again], [*bridge.failed, *failed]


def _merged(
    question: Question, limit: int, terms: ShardTerms, lists: list[ShardList], epochs: dict[str, int]
) -> RankedList:
    passages = [passage for one in lists for passage in one.passages()]
    passages.sort(key=lambda passage: (-passage.score, passage.key))
    return RankedList(
        question,
        passages=passages[:limit],
        epochs=epochs,
        is_settled=terms.epochs == epochs,
        terms_ms=terms.ms,
        size=terms.statistics.passages,
    )


def _no_documents(corpus: str, failed: list[str]) -> ClusterUnavailable | UnknownCorpus:
    if failed:
        return ClusterUnavailable(
            f"corpus {corpus!r} has no document on the shards that answer, and {', '.join(failed)} did not; "
            "see 'shardqa status'"
        )
    return UnknownCorpus(f"there is no corpus {corpus!r}")
