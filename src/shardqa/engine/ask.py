"""Answers a question: looks in the caches, ranks passages, asks the shards' readers, merges."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Literal

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine.answer_cache import AnswerCache, Finished, pack, unpack
from shardqa.engine.connections import Shards
from shardqa.engine.epochs import Epochs, PartEpochs
from shardqa.engine.merging import conclude
from shardqa.engine.rank import RankedList, Ranking, ShardTerms, since
from shardqa.engine.reading import Early, Readers, StagedReading, reach
from shardqa.engine.slips import corrections
from shardqa.engine.tracing import note, span
from shardqa.errors import AnswerTimeout, ClusterUnavailable, ShardqaError, WrongShard
from shardqa.models.subject import names_of
from shardqa.question import Question
from shardqa.schema import Answer, MergedCandidates, Step, Timing

ANSWER_SECONDS = 3_600  # life of a final answer in Redis, as of a shard's


@dataclass(slots=True)
class Progress:
    """Follows one question, and tells whoever wants to hear of its steps."""

    on_step: Callable[[Step], None] | None
    start: float = field(default_factory=perf_counter)
    timing: Timing = field(default_factory=Timing)

    def terms(self, terms: ShardTerms) -> None:
        if self.on_step is not None:
            self.on_step(Step(step="terms", ms=since(self.start), passages=terms.statistics.passages))

    def ranked(self, ranked: RankedList) -> None:
        self.timing.terms, self.timing.rank = ranked.terms_ms, ranked.rank_ms
        if self.on_step is not None:
            documents = list(dict.fromkeys(passage.document for passage in ranked.passages))
            count = len(ranked.passages)
            self.on_step(Step(step="rank", ms=since(self.start), passages=count, documents=documents))

    def read(self, reading: StagedReading, passages: int) -> None:
        if self.on_step is not None:
            best = next(iter(reading.candidates(passages)), None)
            self.on_step(Step(step="read", ms=since(self.start), passages=passages, best=best))


@dataclass(frozen=True, slots=True)
class Merged:
    """The candidates of a question, and where they come from."""

    candidates: MergedCandidates
    cache: Literal["process", "redis"] | None = None
    failed: list[str] = field(default_factory=list)  # nodes that could not be asked


@dataclass(frozen=True, slots=True)
class CachedReply:
    json: bytes
    no_answer: bool
    milliseconds: float


class Asking:
    def __init__(self, settings: Settings, shards: Shards, epochs: Epochs, ranking: Ranking, readers: Readers) -> None:
        self._settings = settings
        self._shards = shards
        self._epochs = epochs
        self._ranking = ranking
        self._readers = readers
        self._cache = AnswerCache(settings.cache_megabytes)

    async def ask(self, question: Question, on_step: Callable[[Step], None] | None = None) -> Answer:
        """`on_step` hears of each step of an answer that no cache has, as soon as it is done.

        Raises UnknownCorpus, BadFilter, TooManyRequests, AnswerTimeout, ShardFailed, ClusterUnavailable (no shard
        answered at all; one that is missing only makes the answer `partial`).
        """
        progress = Progress(on_step)
        with span("ask", corpus=question.asked_of, k=question.k) as current:
            try:
                async with asyncio.timeout(self._settings.timeout):
                    reading = await self._merged(question, progress)
            except TimeoutError:
                raise AnswerTimeout(
                    f"the answer took more than {self._settings.timeout:g} s; ask again, or allow more by "
                    "SHARDQA_TIMEOUT"
                ) from None
            progress.timing.total = since(progress.start)
            with span("merge"):
                answer = self._conclude(reading, question, progress.timing)
            note(current, cache=answer.cache or "none", partial=answer.partial, no_answer=answer.no_answer)
        return answer

    async def _merged(self, question: Question, progress: Progress) -> Merged:
        terms = None
        if not question.fresh:
            with span("cache"):
                epochs = self._epochs.known_of(question.corpora)
                if epochs is None:  # then the first round, which a new question takes anyway, brings them
                    terms = await self._ranking.terms(question)
                    progress.timing.terms = terms.ms
                    epochs = terms.epochs if not terms.failed else None
                reading = await self._cached(question, epochs, progress.timing) if epochs is not None else None
            if reading is not None:
                return reading
        return await self._computed(question, terms, progress)

    async def _cached(self, question: Question, epochs: PartEpochs, timing: Timing) -> Merged | None:
        """The final answer that this process keeps, else Redis'."""
        start = perf_counter()
        key = self._ask_key(question, epochs)
        candidates = self._cache.get(key)
        reading = Merged(candidates, "process") if candidates is not None else await self._stored(key)
        timing.cache = since(start)
        return reading

    async def _stored(self, key: str) -> Merged | None:
        """The final answer in Redis; a node that is down or a value that is not ours counts as none."""
        try:
            value = await self._shards.by_key(key, "GET")
        except ClusterUnavailable:
            return None
        candidates = unpack(value) if value is not None else None
        if candidates is None:
            return None
        self._cache.put(key, candidates, len(value))
        return Merged(candidates, "redis")

    async def _computed(self, question: Question, terms: ShardTerms | None, progress: Progress) -> Merged:
        early: Early = {}
        try:
            ranking, reading, corrected = await self._read(question, terms, progress, early)
        finally:
            for task in early.values():
                task.cancel()
            await asyncio.gather(*early.values(), return_exceptions=True)  # what nobody awaited may have failed
        candidates = reading.merged().model_copy(update={"corrected": corrected})
        if not reading.failed and ranking.is_settled:
            await self._store(self._ask_key(question, ranking.epochs), candidates)
        return Merged(candidates, failed=reading.failed)

    async def _read(
        self, question: Question, terms: ShardTerms | None, progress: Progress, early: Early
    ) -> tuple[RankedList, StagedReading, dict[str, str]]:
        """Ranks, reads, and tells corrected words; `early` gets what is read meanwhile, and the caller ends it."""
        corrected = dict[str, str]()
        for is_last in (False, True):
            with span("retrieve", k=question.k):
                if terms is None or is_last:
                    terms = await self._ranking.terms(question)
                if words := await corrections(self._shards, question, terms.absent):
                    corrected, question = words, question.corrected(words)
                    terms = await self._ranking.terms(question)
                progress.terms(terms)
                begin = partial(self._readers.begin, early)
                ranking = await self._ranking.rank(question, reach(question), terms, begin)
                progress.ranked(ranking)
            start = perf_counter()
            try:
                with span("read", passages=len(ranking.passages)):
                    reading = await self._readers.staged(ranking, is_last, progress.read, early)
                progress.timing.read = since(start)
                return ranking, reading, corrected
            except WrongShard:  # slots moved between ranking and reading
                if is_last:  # no shard is left that could be asked
                    raise
        raise AssertionError("the last ranking is read, or its fault is raised")

    async def _store(self, key: str, candidates: MergedCandidates) -> None:
        value = pack(candidates)
        self._cache.put(key, candidates, len(value))
        try:
            await self._shards.by_key(key, "SET", value, "EX", ANSWER_SECONDS)
        except ShardqaError:
            return  # the answer stands, whatever keeps it from being stored: /readyz and the doctor tell that

    def _ask_key(self, question: Question, epochs: PartEpochs) -> str:
        return keys.ask(
            question.asked_of,
            keys.ask_epoch(epochs),
            self._settings.model,
            question.k,
            question.sure,
            question.text,
            question.filter,
            names_of(question.told),
        )

    def _conclude(self, reading: Merged, question: Question, timing: Timing) -> Answer:
        return conclude(reading.candidates, question, self._settings.model, reading.cache, reading.failed, timing)

    def cached_reply(self, question: Question) -> CachedReply | None:
        """The JSON of the Answer to the question, if this process has cached all of it but the times; else None."""
        start = perf_counter()
        epochs = self._epochs.known_of(question.corpora)
        if epochs is None:
            return None
        key = self._ask_key(question, epochs)
        answer = self._cache.finished(key, question) or self._finish(key, question)
        if answer is None:
            return None
        ms = since(start)
        return CachedReply(answer.json(0.0 if question.view else ms, ms), answer.no_answer, ms)

    def _finish(self, key: str, question: Question) -> Finished | None:
        candidates = self._cache.get(key)
        if candidates is None:
            return None
        answer = Finished.of(self._conclude(Merged(candidates, "process"), question, Timing()))
        self._cache.finish(key, question, answer)
        return answer
