"""Answers a question: looks in the caches, ranks passages, asks the shards' readers, merges."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from shardqa import checks, filters, keys
from shardqa.answer_lines import AnswerWhen
from shardqa.config import MAX_K, MAX_N_BEST, Settings
from shardqa.engine.answer_cache import AnswerCache, Finished, Form, pack, unpack
from shardqa.engine.connected import since
from shardqa.engine.connections import Shards
from shardqa.engine.merging import conclude
from shardqa.engine.rank import Ranking, ShardTerms
from shardqa.engine.reading import Readers, StagedReading
from shardqa.errors import (
    AnswerTimeout,
    BadLimit,
    ClusterUnavailable,
    ShardqaError,
    WrongShard,
)
from shardqa.filters import DocumentFilter
from shardqa.models.corpus_scoring import CorpusScoring
from shardqa.schema import (
    Answer,
    MergedCandidates,
    RankedList,
    Step,
    Timing,
)
from shardqa.spans import note, span

BEFORE_TIMES = b',"timing":'  # the last field of an Answer
TIMES = b'{"cache":%.3f,"terms":0.0,"rank":0.0,"read":0.0,"total":%.3f}}'  # of an answer that this process kept
ANSWER_SECONDS = 3_600  # life of a final answer in Redis, as of a shard's
RANKINGS = 2  # of one question: a second where slots moved between ranking and reading


def between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise BadLimit(f"{name}={value} is outside {low} to {high}; choose a number in between")
    return value


@dataclass(frozen=True, slots=True)
class Steps:
    """Tells how far an answer is, to whoever wants to hear it."""

    start: float
    told: Callable[[Step], None] | None

    def terms(self, terms: ShardTerms) -> None:
        if self.told is not None:
            self.told(Step(step="terms", ms=since(self.start), passages=terms.statistics.passages))

    def ranked(self, ranked: RankedList) -> None:
        if self.told is not None:
            documents = list(dict.fromkeys(passage.document for passage in ranked.passages))
            count = len(ranked.passages)
            self.told(Step(step="rank", ms=since(self.start), passages=count, documents=documents))

    def read(self, reading: StagedReading, passages: int) -> None:
        if self.told is not None:
            best = next(iter(reading.candidates(passages)), None)
            self.told(Step(step="read", ms=since(self.start), passages=passages, best=best))


@dataclass(frozen=True, slots=True)
class CachedReply:
    json: bytes
    no_answer: bool
    milliseconds: float


class Asking(Ranking):
    def __init__(self, settings: Settings, masters: Shards) -> None:
        super().__init__(settings, masters)
        self.readers = Readers(settings, masters)
        self._kept = AnswerCache(settings.cache_megabytes)

    async def ask(
        self,
        question: str,
        corpus: str | None = None,
        k: int | None = None,
        n_best: int | None = None,
        min_score: float | None = None,
        fresh: bool = False,
        answer_when: AnswerWhen | None = None,
        told: Callable[[Step], None] | None = None,
        filter: DocumentFilter | None = None,
    ) -> Answer:
        """Answers `question` from the documents of `corpus` that `filter` lets through.

        `fresh` passes all caches of final answers by, and what is remembered of terms. `told` hears of each step of an
        answer that is not kept, as soon as it is done.

        Raises EmptyQuestion, QuestionTooLong, BadFilter, BadCorpusName, UnknownCorpus, BadLimit, TooManyRequests,
        AnswerTimeout, ShardFailed, ClusterUnavailable (no shard answered at all; one that is missing only makes the
        answer `partial`).
        """
        start = perf_counter()
        corpus = keys.check_corpus(self.settings.corpus if corpus is None else corpus)
        k = between("k", self.settings.k if k is None else k, 1, MAX_K)
        n_best = between("n_best", self.settings.n_best if n_best is None else n_best, 1, MAX_N_BEST)
        if min_score is not None and not 0 <= min_score <= 1:
            raise BadLimit(f"min_score={min_score} is outside 0 to 1; it is a probability")
        asked = checks.question(question)
        view = filters.view_of(filters.canonical(filter))
        with span("ask", corpus=corpus, k=k) as current:
            timing, steps = Timing(), Steps(start, told)
            found, cache, terms, failed = None, None, None, list[str]()
            try:
                async with asyncio.timeout(self.settings.timeout):
                    own = await self.scores.of(corpus)
                    if not fresh:
                        with span("cache"):
                            found, cache, terms = await self._cached(corpus, k, asked, filter, own, timing)
                    if found is None:
                        found, failed = await self._ask_shards(
                            corpus, k, asked, filter, own, timing, fresh, terms, steps
                        )
            except TimeoutError:
                raise AnswerTimeout(
                    f"the answer took more than {self.settings.timeout:g} s; ask again, or allow more by "
                    "SHARDQA_TIMEOUT"
                ) from None
            timing.total = since(start)
            line = answer_when or self.settings.answer_when
            with span("merge"):
                answer = conclude(
                    found, question, corpus, self.settings.model, n_best, line, min_score, cache, failed, timing, view
                )
            note(current, cache=answer.cache or "none", partial=answer.partial, no_answer=answer.no_answer)
        return answer

    def cached_reply(
        self,
        question: str,
        corpus: str | None,
        k: int | None,
        n_best: int | None,
        min_score: float | None,
        answer_when: AnswerWhen | None,
        filter: DocumentFilter | None = None,
    ) -> CachedReply | None:
        """The JSON of the Answer that `ask` would give, if this process has cached all of it but the times.

        None where anything has to be looked for, or is at fault: `ask` does and says that.
        """
        start = perf_counter()
        settings = self.settings
        corpus = settings.corpus if corpus is None else corpus
        k = settings.k if k is None else k
        line = answer_when or settings.answer_when
        form = Form(question, settings.n_best if n_best is None else n_best, min_score, line)
        epochs, believed = self.epochs.known(corpus), self.scores.believed(corpus)
        if epochs is None or believed is None or not 1 <= form.n_best <= MAX_N_BEST:
            return None
        if min_score is not None and not 0 <= min_score <= 1:
            return None
        try:
            filter_ = filters.canonical(filter)
            key = self._ask_key(corpus, epochs, k, checks.question(question), filter_, believed.own)
        except ShardqaError:
            return None
        finished = self._kept.finished(key, form) or self._finish(key, form, corpus, filters.view_of(filter_))
        if finished is None:
            return None
        took = since(start)
        return CachedReply(finished.head + TIMES % (took, took), finished.no_answer, took)

    def _finish(self, key: str, form: Form, corpus: str, view: str) -> Finished | None:
        found = self._kept.get(key)
        if found is None:
            return None
        model, timing = self.settings.model, Timing()
        answer = conclude(
            found,
            form.question,
            corpus,
            model,
            form.n_best,
            form.answer_when,
            form.min_score,
            "process",
            [],
            timing,
            view,
        )
        json = answer.model_dump_json().encode()
        assert json.endswith(BEFORE_TIMES + timing.model_dump_json().encode() + b"}"), "the times come last"
        finished = Finished(json[: json.rindex(BEFORE_TIMES) + len(BEFORE_TIMES)], answer.no_answer)
        self._kept.finish(key, form, finished)
        return finished

    async def _cached(
        self,
        corpus: str,
        k: int,
        question: str,
        filter: DocumentFilter | None,
        own: CorpusScoring | None,
        timing: Timing,
    ) -> tuple[MergedCandidates | None, Literal["process", "redis"] | None, ShardTerms | None]:
        """From this process, else from Redis. Where the epochs are not known to be current, the first round, which a
        new question takes anyway, tells them; it comes back for the second."""
        epochs, told = self.epochs.known(corpus), None
        if epochs is None:
            told = await self._terms(question, corpus, view=filters.view_of(filters.canonical(filter)))
            timing.terms = told.ms
            if told.failed:
                return None, None, told
            epochs = told.epochs
        start = perf_counter()
        key = self._ask_key(corpus, epochs, k, question, filters.canonical(filter), own)
        kept = self._kept.get(key)
        if kept is not None:
            timing.cache = since(start)
            return kept, "process", told
        found = await self._stored(key)
        timing.cache = since(start)
        return found, "redis" if found else None, told

    def _ask_key(
        self, corpus: str, epochs: dict[str, int], k: int, question: str, filter_: str, own: CorpusScoring | None
    ) -> str:
        epoch, scoring = keys.corpus_epoch(epochs), own.name if own else ""
        return keys.ask(corpus, epoch, self.settings.model, k, self.settings.sure, question, filter_, scoring)

    async def _stored(self, key: str) -> MergedCandidates | None:
        """The final answer in Redis; a node that is down or a value that is not ours counts as none."""
        try:
            value = await self.masters.by_key(key, "GET")
        except ClusterUnavailable:
            return None
        found = unpack(value) if value is not None else None
        if found is not None:
            self._kept.put(key, found, len(value))
        return found

    async def _ask_shards(
        self,
        corpus: str,
        k: int,
        question: str,
        filter: DocumentFilter | None,
        own: CorpusScoring | None,
        timing: Timing,
        fresh: bool,
        told: ShardTerms | None,
        steps: Steps,
    ) -> tuple[MergedCandidates, list[str]]:
        view = filters.view_of(filters.canonical(filter))
        for ranking in range(1, RANKINGS + 1):
            with span("retrieve", k=k):
                if told is None or ranking > 1:
                    told = await self._terms(question, corpus, fresh or ranking > 1, view)
                steps.terms(told)
                ranked = await self.rank(question, corpus, k, told, filter)
                steps.ranked(ranked)
            timing.terms, timing.rank = ranked.terms_ms, ranked.rank_ms
            start = perf_counter()
            try:
                with span("read", passages=len(ranked.passages)):
                    reading = await self.readers.staged(
                        ranked, question, k, fresh, ranking == RANKINGS, steps.read, own
                    )
                    found, failed = reading.asked(self.settings.sure), reading.failed
                break
            except WrongShard:
                if ranking == RANKINGS:  # no shard is left that could be asked
                    raise
        timing.read = since(start)
        if not failed and ranked.is_settled:
            await self._store(self._ask_key(corpus, ranked.epochs, k, question, ranked.filter, own), found)
        return found, failed

    async def _store(self, key: str, asked: MergedCandidates) -> None:
        value = pack(asked)
        self._kept.put(key, asked, len(value))
        try:
            await self.masters.by_key(key, "SET", value, "EX", ANSWER_SECONDS)
        except ShardqaError:
            return  # the answer stands, whatever keeps it from being stored: /readyz and the doctor tell that
