"""A GET of an `answer:` key that misses: this shard's reader answers from its best k passages.

    GET answer:<corpus>:{T}:<epoch>:<model>:<k>:<question>

The client is answered first; the value is stored a moment later, and only while the key's epoch is the shard's, so that
an answer never outlives the text it came from.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from shardqa import checks, keys
from shardqa.checks import MAX_K, MAX_N_BEST
from shardqa.errors import BadKey, BadLimit, ClusterUnavailable, WrongShard
from shardqa.gears_functions import named_rows
from shardqa.gears_functions.passage_reading import Loaded, PassageReading, loaded, reading_of
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.model_sync import ModelSync
from shardqa.gears_functions.shard.pairs import Pair, Pairs
from shardqa.gears_functions.shard.rankings import Rankings, ShardRanking
from shardqa.gears_functions.shard.timings import Timings
from shardqa.gears_functions.splitting import MAX_PASSAGE
from shardqa.models import reader
from shardqa.models.reading_record import ShardReading, SpanRecord, marked_cached
from shardqa.models.scoring import Scoring, lag
from shardqa.models.tokenizer import PassageTokens
from shardqa.worker.runtime import Runtime

ANSWER_SECONDS = 3_600  # life of a stored answer
STORE_AFTER = 0.002  # seconds between reply and SET: a tracking client must see the reply before the invalidation
STAGES_KEPT = 256  # questions whose spans are remembered for a next stage, 2 KB a passage
ATTEMPTS = 3  # rankings until all passages found are still there
HEADING = 48  # word pieces of a heading before its passage: a row stays below the reader's 512
NO_HEADING = np.zeros(0, dtype=np.int32)
Stage: TypeAlias = tuple[str, str, str, int]  # corpus, model, question in keys, epoch: one is read in stages
Asked: TypeAlias = tuple[str, str, str]  # a question with its filter and, where they are several, its corpora


class Phases:
    """Microseconds by phase."""

    def __init__(self) -> None:
        self.us: dict[str, int] = {}
        self._start = self._last = perf_counter()

    def done(self, phase: str) -> None:
        now = perf_counter()
        self.us[phase] = round((now - self._last) * 1e6)
        self._last = now

    def total(self) -> dict[str, int]:
        return {**self.us, "total": round((perf_counter() - self._start) * 1e6)}


@dataclass(eq=False)
class Answer:
    """The worker's loop only; the network runs in the model's own thread."""

    _runtime: Runtime
    _pairs: Pairs
    _sync: KeyspaceSync
    _epochs: ShardEpochs
    _rankings: Rankings
    _copies: ModelSync
    _timings: Timings
    _override_reply: Callable[[bytes], None]
    # Stage -> what was read of each passage, by its key.
    _stages: LRUCache[Stage, dict[str, PassageReading]] = field(default_factory=lambda: LRUCache(STAGES_KEPT))
    _stores: set[asyncio.Task[None]] = field(default_factory=set)  # held so that they are not collected before they ran

    async def missed(self, event: dict[str, Any]) -> None:
        """Answers the client whose GET missed. Raises the fault to reply."""
        key = event["key"]
        if isinstance(key, bytes):
            raise BadKey(f"key {key[:80]!r} is not UTF-8; send answer:<corpus>:{{tag}}:<epoch>:<model>:<k>:<question>")
        ask = keys.parse_answer(key)
        self._check(ask)
        reading = await self._answer(ask)
        self._timings.add({f"answer_{phase}": us for phase, us in reading.us.items()})
        json = reading.json()
        self._override_reply(json)
        self._store(key, ask, reading.epoch, marked_cached(json))

    def request_of(self, event: dict[str, Any]) -> str:
        """Describes a request for the log."""
        try:
            ask = keys.parse_answer(event["key"])
        except (BadKey, TypeError):
            return "no answer's key"
        ranking = self._rankings.remembered(ask.corpus, ask.question)
        request = ranking.request if ranking is not None else ""
        return f"request {request or 'without an id'}, corpus {ask.corpus}, k {ask.k}"

    def _check(self, ask: keys.AnswerKey) -> None:
        """Raises BadLimit for a `k` out of bounds, WrongShard for the tag of another shard."""
        if not 1 <= ask.k <= MAX_K:
            raise BadLimit(f"k={ask.k} is outside 1 to {MAX_K}; choose a number in between")
        own = self._runtime.hashtag()
        if ask.tag != own:
            raise WrongShard(
                f"the shard of {{{ask.tag}}} can't be asked here, where the tag is {{{own}}}: its slot has moved, "
                "or is moving; RG.TRIGGER Corpora tells the tags"
            )

    async def _answer(self, ask: keys.AnswerKey) -> ShardReading:
        phases = Phases()
        question, filter_, among = self._question_of(ask)
        pair = await self._pairs.of(ask.corpus)
        question_ids, model = pair.tokenizer.question(question), pair.reader or ask.model
        ranking, memory, new = await self._passages(ask, (question, filter_, among), phases)
        every = zip(new, (self._pieces(passage, pair) for passage in new), strict=True)
        pieces = [named_rows.read_of(one, piece, question) for one, piece in every]
        rows = [
            reader.join(question_ids, piece.ids, _heading(passage, pair))
            for passage, piece in zip(new, pieces, strict=True)
        ]
        phases.done("tokenise")
        readings, scoring = await self._read(model, question, list(zip(new, pieces, rows, strict=True)), phases)
        readings |= memory
        best = self._best([span for one in readings.values() for span in one.spans], ranking, scoring)
        self._stages[_stage(ask, ranking.epoch)] = readings
        phases.done("span")
        return ShardReading(
            tag=self._runtime.hashtag(),
            epoch=ranking.epoch,
            model=model,
            question=question,
            spans=best,
            passages={key: readings[key].passage for key, _ in ranking.passages[: ask.k]},
            scores=scoring,
            us=phases.total(),
            batch=len(rows),
        )

    def _question_of(self, ask: keys.AnswerKey) -> Asked:
        """Returns the whole question, with its filter; one that its key only has hashed was ranked just before."""
        if not ask.question.startswith(keys.HASHED):
            return checks.question(ask.question), "", ""
        ranking = self._rankings.remembered(ask.corpus, ask.question)
        if ranking is None:
            raise BadKey(f"this shard knows no question or filter {ask.question}; send RG.TRIGGER Rank with it first")
        return ranking.question, ranking.filter_, ranking.among

    # ---- passages

    async def _passages(
        self, ask: keys.AnswerKey, question: Asked, phases: Phases
    ) -> tuple[ShardRanking, dict[str, PassageReading], list[Loaded]]:
        """Returns the best k passages: those that an earlier stage has read, and the others, loaded from the keyspace.

        One that is gone leaves the index, and the next best comes in.
        """
        for _ in range(ATTEMPTS):
            ranking = await self._ranking(ask, question)
            phases.done("rank")
            best = ranking.passages[: ask.k]
            memory = self._known(_stage(ask, ranking.epoch), best)
            new = [(key, score) for key, score in best if key not in memory]
            passages = await self._load(new)
            phases.done("load")
            if None not in passages:
                return ranking, memory, [passage for passage in passages if passage is not None]
            # The index has them, the keyspace has not.
            await self._sync.bring_in({name for (name, _), one in zip(new, passages, strict=True) if one is None})
        raise ClusterUnavailable(f"passages of corpus {ask.corpus!r} are leaving this shard; ask again in a moment")

    async def _ranking(self, ask: keys.AnswerKey, question: Asked) -> ShardRanking:
        await self._sync.synced()
        text, filter_, among = question
        ranking = self._rankings.remembered(ask.corpus, keys.question_in_key(*question))
        if ranking is not None and ranking.reaches(ask.k) and ranking.epoch == await self._sync.epoch(ask.corpus):
            return ranking
        anew = None if ranking is None else await self._rankings.rank_again(ask.corpus, ranking, ask.k)
        if anew is None and among:  # whose numbers this shard can't ask for: they are not this corpus' alone
            raise ClusterUnavailable(f"the ranking among {among[:80]} is too old to be read by; ask again")
        return anew or await self._rankings.rank(ask.corpus, text, ask.k, filter_)

    async def _load(self, pairs: list[tuple[str, float]]) -> list[Loaded | None]:
        if not pairs:
            return []
        firsts = list(dict.fromkeys(keys.first_passage(key) for key, _ in pairs))
        commands: list[tuple[str, ...]] = []
        for first in firsts:
            commands += [("HMGET", keys.doc_of_passage(first), "metadata", "digest"), ("HGET", first, "title")]
        for key, _ in pairs:
            commands.append(("HMGET", key, "text", "start", "places", "path"))
            commands.append(("AI.TENSORGET", keys.tokens_of_passage(key), "BLOB"))
        replies = await self._runtime.calls(commands)
        documents = dict(zip(firsts, zip(replies[::2], replies[1::2], strict=True), strict=False))
        of_passages = replies[2 * len(firsts) :]
        return [
            loaded(key, score, hash, blob, *documents[keys.first_passage(key)])
            for (key, score), hash, blob in zip(pairs, of_passages[::2], of_passages[1::2], strict=True)
        ]

    # ---- reading

    def _known(self, stage: Stage, best: Sequence[tuple[str, float]]) -> dict[str, PassageReading]:
        """Returns what an earlier stage of the question read of these passages, by key.

        Empty where this is no later stage: who asks for as many passages once more wants them read anew.
        """
        before = self._stages.get(stage, {})
        return {key: before[key].ranked(score) for key, score in best if key in before and len(best) > len(before)}

    def _best(self, spans: list[SpanRecord], ranking: ShardRanking, scoring: Scoring) -> list[SpanRecord]:
        """Returns the best spans of all passages, best first."""
        best_rank = ranking.passages[0][1] if ranking.passages else 0.0

        def order(span: SpanRecord) -> tuple[float, str, int, int]:
            precedence = scoring.precedence(span, lag(span.rank_score, best_rank))
            return -precedence, span.passage.key, span.start, span.end

        return sorted(spans, key=order)[:MAX_N_BEST]

    async def _read(
        self, model: str, question: str, every: list[tuple[Loaded, PassageTokens, reader.Row]], phases: Phases
    ) -> tuple[dict[str, PassageReading], Scoring]:
        """Has the model read these passages; returns what it says of each, by key, and what scores that."""
        batches = reader.batches([row for _, _, row in every])
        outputs = await asyncio.gather(*(self._copies.run(model, one.feeds(), reader.SPANS) for one in batches))
        phases.done("read")
        readings = {
            every[n][0].key: reading_of(*every[n], reader.RowLogits.of(of_batch, line, len(every[n][2])), question)
            for batch, of_batch in zip(batches, outputs, strict=True)
            for line, n in enumerate(batch.rows)
        }
        return readings, self._copies.scoring(model)

    def _pieces(self, passage: Loaded, pair: Pair) -> PassageTokens:
        """Returns a passage's word pieces with their places in its text.

        Where its document is still to be cut for this pair they may be more than fit, and the first are read.
        """
        pieces = pair.tokenizer.passage(passage.text)
        if passage.ids is not None and not np.array_equal(pieces.ids, passage.ids):
            pieces = PassageTokens(*(part[:MAX_PASSAGE] for part in (pieces.ids, pieces.offsets, pieces.words)))
        return pieces

    # ---- storing

    def _store(self, key: str, ask: keys.AnswerKey, epoch: int, value: bytes) -> None:
        task = asyncio.create_task(self._set(key, ask, epoch, value))
        self._stores.add(task)
        task.add_done_callback(self._stores.discard)

    async def _set(self, key: str, ask: keys.AnswerKey, epoch: int, value: bytes) -> None:
        await asyncio.sleep(STORE_AFTER)
        if ask.epoch != epoch or not self._epochs.is_current(ask.corpus, ask.tag, epoch):
            return
        (reply,) = await self._runtime.calls([("SET", key, value, "EX", ANSWER_SECONDS)])
        if isinstance(reply, Exception):
            self._runtime.log(f"{key[:120]!r} was not stored: {reply}", "verbose")


def _stage(ask: keys.AnswerKey, epoch: int) -> Stage:
    return ask.corpus, ask.model, ask.question, epoch


def _heading(passage: Loaded, pair: Pair) -> NDArray[np.int32]:
    return pair.tokenizer.passage(f"{passage.heading}:").ids[:HEADING] if passage.heading else NO_HEADING
