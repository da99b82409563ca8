"""A GET of an `answer:` key that misses: this shard's reader answers from its best k passages.

    GET answer:<corpus>:{T}:<epoch>:<model>:<k>:<question>

The client is answered first; the value is stored a moment later, and only while the key's epoch is the shard's, so that
an answer never outlives the text it came from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import orjson
from cachetools import LRUCache

from shardqa import checks, keys, places
from shardqa.config import MAX_K, MAX_N_BEST
from shardqa.errors import BadKey, BadLimit, BadModel, ClusterUnavailable, WrongShard
from shardqa.models import evidence, metrics, reader, sentences, span_edges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardqa.gears_functions.runtime import Runtime
    from shardqa.gears_functions.shard.epochs import ShardEpochs
    from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
    from shardqa.gears_functions.shard.model_sync import ModelSync
    from shardqa.gears_functions.shard.rankings import Rankings, ShardRanking
    from shardqa.gears_functions.shard.timings import Timings
    from shardqa.models.scoring import Scoring
    from shardqa.models.tokenizer import PassageTokens, Tokenizer

ANSWER_SECONDS = 3_600  # life of a stored answer
STORE_AFTER = 0.002  # seconds between reply and SET: a tracking client must see the reply before the invalidation
SPANS_PER_PASSAGE = 5  # candidates of one passage, enough for an n-best over a few
STAGES_KEPT = 256  # questions whose spans are remembered for a next stage, 2 KB a passage
ATTEMPTS = 3  # rankings until all passages found are still there
HEADING = 48  # word pieces of a heading before its passage: a row stays below the reader's 512
NO_HEADING = np.zeros(0, dtype=np.int32)
Stage: TypeAlias = tuple[str, str, str, int]  # corpus, model, question in keys, epoch: one is read in stages
LOGIT_DIGITS = 3  # of sentences: a thousandth of a logit moves no chance by more than 0.0003


@dataclass(frozen=True, slots=True)
class Loaded:
    """A passage to read."""

    key: str
    score: float  # of its rank
    text: str
    start: int  # in the document
    title: str
    ids: NDArray[np.int32] | None  # word pieces, [n]; None where their tensor is gone, or may be of an earlier text
    places: places.Raw  # where its parts stand in the file
    metadata: str  # of its document, JSON
    heading: str = ""  # the last of its path

    def record(self) -> dict[str, Any]:
        record = {"title": self.title, "text": self.text, "start": self.start, "rank_score": self.score}
        return {**record, "metadata": self.metadata} if self.metadata else record


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A span of a passage."""

    passage: Loaded
    start: int  # characters of the passage's text, half open
    end: int
    span_logit: float
    null_logit: float
    sentence: tuple[int, int]  # the characters of its own sentence or sentences
    evidence: float = 0.0  # of its sentence

    def record(self) -> dict[str, Any]:
        return {
            "passage": self.passage.key,
            "document": keys.parse_passage(self.passage.key).document,
            "text": self.passage.text[self.start : self.end],
            "start": self.passage.start + self.start,
            "end": self.passage.start + self.end,
            "span_logit": self.span_logit,
            "null_logit": self.null_logit,
            "place": places.at(self.passage.places, self.passage.start + self.start),
            "sentence": (self.passage.start + self.sentence[0], self.passage.start + self.sentence[1]),
            "evidence": round(self.evidence, LOGIT_DIGITS),
        }


@dataclass(frozen=True, slots=True)
class PassageReading:
    """A passage as the reader sees it."""

    passage: Loaded
    null_logit: float
    spans: list[PassageSpan]
    sentences: list[evidence.Sentence]  # in characters of the passage's text
    relevance: float = 0.0  # 0 of a reader without that output

    def record(self) -> dict[str, Any]:
        first, marks = self.passage.start, self.passage.places
        return {
            **self.passage.record(),
            "null_logit": round(self.null_logit, LOGIT_DIGITS),
            "relevance": round(self.relevance, LOGIT_DIGITS),
            "sentences": [
                (first + start, first + end, *(round(logit, LOGIT_DIGITS) for logit in logits))
                for start, end, *logits in self.sentences
            ],
            **({"places": marks} if marks else {}),
        }

    def ranked(self, score: float) -> PassageReading:
        """Returns the same, with the score that its passage's rank has now."""
        passage = replace(self.passage, score=score)
        return replace(self, passage=passage, spans=[replace(span, passage=passage) for span in self.spans])


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


class Answer:
    """The worker's loop only; the network runs in the model's own thread."""

    def __init__(
        self,
        runtime: Runtime,
        tokenizer: Tokenizer,
        sync: KeyspaceSync,
        epochs: ShardEpochs,
        rankings: Rankings,
        copies: ModelSync,
        timings: Timings,
        override_reply: Callable[[bytes], None],
    ) -> None:
        self._runtime = runtime
        self._tokenizer = tokenizer
        self._sync = sync
        self._epochs = epochs
        self._rankings = rankings
        self._copies = copies
        self._timings = timings
        self._override_reply = override_reply
        # Stage -> what was read of each passage, by its key.
        self._stages: LRUCache[Stage, dict[str, PassageReading]] = LRUCache(STAGES_KEPT)
        self._stores: set[asyncio.Task[None]] = set()  # held so that they are not collected before they ran

    async def missed(self, event: dict[str, Any]) -> None:
        """Answers the client whose GET missed. Raises the fault to reply."""
        key = event["key"]
        if isinstance(key, bytes):
            raise BadKey(
                f"key {key[:80]!r} is not UTF-8; ask for answer:<corpus>:{{tag}}:<epoch>:<model>:<k>:<question>"
            )
        parsed = keys.parse_answer(key)
        self._check(parsed)
        reply = await self._answer(parsed)
        self._timings.add({f"answer_{phase}": us for phase, us in reply["us"].items()})
        packed = orjson.dumps({**reply, "cached": False})
        self._override_reply(packed)
        self._store(key, parsed, packed.removesuffix(b"false}") + b"true}", reply["epoch"])

    def request_of(self, event: dict[str, Any]) -> str:
        """Describes a request for the log."""
        try:
            parsed = keys.parse_answer(event["key"])
        except (BadKey, TypeError):
            return "no answer's key"
        ranking = self._rankings.remembered(parsed.corpus, parsed.question)
        request = ranking.request if ranking is not None else ""
        return f"request {request or 'without an id'}, corpus {parsed.corpus}, k {parsed.k}"

    def _check(self, parsed: keys.AnswerKey) -> None:
        """Raises BadLimit, WrongShard."""
        if not 1 <= parsed.k <= MAX_K:
            raise BadLimit(f"k={parsed.k} is outside 1 to {MAX_K}; choose a number in between")
        own = self._runtime.hashtag()
        if parsed.tag != own:
            raise WrongShard(
                f"the shard of {{{parsed.tag}}} can't be asked here, where the tag is {{{own}}}: its slot has moved, "
                "or is moving; RG.TRIGGER Corpora tells the tags"
            )

    async def _answer(self, parsed: keys.AnswerKey) -> dict[str, Any]:
        phases = Phases()
        question, filter_ = self._question_of(parsed)
        question_ids = self._tokenizer.question(question)
        ranking, known, new = await self._passages(parsed, question, filter_, phases)
        pieces = [self._pieces(passage) for passage in new]
        rows = [
            reader.join(question_ids, piece.ids, self._heading(passage))
            for passage, piece in zip(new, pieces, strict=True)
        ]
        phases.done("tokenise")
        readings, scoring = await self._read(parsed.model, new, pieces, rows, phases)
        readings |= known
        best = self._best([span for one in readings.values() for span in one.spans], ranking, scoring)
        self._stages[_stage(parsed, ranking.epoch)] = readings
        phases.done("span")
        return {
            "tag": self._runtime.hashtag(),
            "epoch": ranking.epoch,
            "model": parsed.model,
            "question": question,
            "spans": [span.record() for span in best],
            "passages": {key: readings[key].record() for key, _ in ranking.passages[: parsed.k]},
            "scores": scoring.record(),
            "us": phases.total(),
            "batch": len(rows),
        }

    def _question_of(self, parsed: keys.AnswerKey) -> tuple[str, str]:
        """Returns question and filter, in full: a long one, and one with a filter, stands hashed in its key, and was
        ranked just before."""
        if not parsed.question.startswith(keys.HASHED):
            return checks.question(parsed.question), ""
        ranking = self._rankings.remembered(parsed.corpus, parsed.question)
        if ranking is None:
            raise BadKey(
                f"this shard does not know the question or filter {parsed.question}; send RG.TRIGGER Rank with it first"
            )
        return ranking.question, ranking.filter_

    # ---- passages

    async def _passages(
        self, parsed: keys.AnswerKey, question: str, filter_: str, phases: Phases
    ) -> tuple[ShardRanking, dict[str, PassageReading], list[Loaded]]:
        """The best k: what an earlier stage read of them, and the others, read from the keyspace. One that is gone
        leaves the index, and the next best comes in."""
        for _ in range(ATTEMPTS):
            ranking = await self._ranking(parsed, question, filter_)
            phases.done("rank")
            best = ranking.passages[: parsed.k]
            known = self._known(_stage(parsed, ranking.epoch), best)
            new = [(key, score) for key, score in best if key not in known]
            loaded = await self._load(new)
            phases.done("load")
            if None not in loaded:
                return ranking, known, [passage for passage in loaded if passage is not None]
            # The index has them, the keyspace has not.
            await self._sync.bring_in({name for (name, _), one in zip(new, loaded, strict=True) if one is None})
        raise ClusterUnavailable(f"passages of corpus {parsed.corpus!r} are leaving this shard; ask again in a moment")

    async def _ranking(self, parsed: keys.AnswerKey, question: str, filter_: str) -> ShardRanking:
        await self._sync.synced()
        ranking = self._rankings.remembered(parsed.corpus, keys.question_in_key(question, filter_))
        if ranking is not None and ranking.reaches(parsed.k) and ranking.epoch == await self._sync.epoch(parsed.corpus):
            return ranking
        anew = None if ranking is None else await self._rankings.rank_again(parsed.corpus, ranking, parsed.k)
        return anew or await self._rankings.rank(parsed.corpus, question, parsed.k, filter_)

    async def _load(self, ranked: list[tuple[str, float]]) -> list[Loaded | None]:
        if not ranked:
            return []
        documents = {keys.doc_of_passage(key): 0 for key, _ in ranked}
        commands: list[tuple[str, ...]] = [("HMGET", document, "metadata", "digest") for document in documents]
        for key, _ in ranked:
            commands.append(("HMGET", key, "text", "start", "title", "places", "path"))
            commands.append(("AI.TENSORGET", keys.tokens_of_passage(key), "BLOB"))
        replies = await self._runtime.calls(commands)
        of_documents = dict(zip(documents, replies, strict=False))
        hashes, blobs = replies[len(documents) :: 2], replies[len(documents) + 1 :: 2]
        return [
            loaded(key, score, hash, blob, of_documents[keys.doc_of_passage(key)])
            for (key, score), hash, blob in zip(ranked, hashes, blobs, strict=True)
        ]

    # ---- reading

    def _known(self, stage: Stage, best: Sequence[tuple[str, float]]) -> dict[str, PassageReading]:
        """Returns what an earlier stage of the question read of these passages.

        Empty where this is no later stage: who asks for as many passages once more wants them read anew.
        """
        before = self._stages.get(stage, {})
        return {key: before[key].ranked(score) for key, score in best if key in before and len(best) > len(before)}

    def _best(self, spans: list[PassageSpan], ranking: ShardRanking, scoring: Scoring) -> list[PassageSpan]:
        """The best of all, best first."""
        best_rank = ranking.passages[0][1] if ranking.passages else 0.0
        spans.sort(key=lambda span: (-_score(scoring, span, best_rank), span.passage.key, span.start, span.end))
        return spans[:MAX_N_BEST]

    async def _read(
        self, model: str, passages: list[Loaded], pieces: list[PassageTokens], rows: list[reader.Row], phases: Phases
    ) -> tuple[dict[str, PassageReading], Scoring]:
        """Returns what is read of each passage, by its key, and what scores it."""
        batches = reader.batches(rows)
        outputs = await asyncio.gather(*(self._copies.run(model, one.feeds(), reader.SPANS) for one in batches))
        phases.done("read")
        readings = {
            passages[row].key: reading_of(
                passages[row], pieces[row], rows[row], reader.RowLogits.of(of_batch, line, len(rows[row]))
            )
            for batch, of_batch in zip(batches, outputs, strict=True)
            for line, row in enumerate(batch.rows)
        }
        return readings, self._copies.scoring(model)

    def _pieces(self, passage: Loaded) -> PassageTokens:
        """Returns its word pieces with their places in its text. Raises BadModel."""
        pieces = self._tokenizer.passage(passage.text)
        if passage.ids is not None and not np.array_equal(pieces.ids, passage.ids):
            raise BadModel(
                f"the tokens of {passage.key!r} are not this shard's tokenizer's; run 'shardqa corpus retokenise'"
            )
        return pieces

    def _heading(self, passage: Loaded) -> NDArray[np.int32]:
        return self._tokenizer.passage(f"{passage.heading}:").ids[:HEADING] if passage.heading else NO_HEADING

    # ---- storing

    def _store(self, key: str, parsed: keys.AnswerKey, value: bytes, epoch: int) -> None:
        task = asyncio.create_task(self._set(key, parsed, value, epoch))
        self._stores.add(task)
        task.add_done_callback(self._stores.discard)

    async def _set(self, key: str, parsed: keys.AnswerKey, value: bytes, epoch: int) -> None:
        await asyncio.sleep(STORE_AFTER)
        if parsed.epoch != epoch or not self._epochs.is_current(parsed.corpus, parsed.tag, epoch):
            return
        (reply,) = await self._runtime.calls([("SET", key, value, "EX", ANSWER_SECONDS)])
        if isinstance(reply, Exception):
            self._runtime.log(f"{key[:120]!r} was not stored: {reply}", "verbose")


def _stage(parsed: keys.AnswerKey, epoch: int) -> Stage:
    return parsed.corpus, parsed.model, parsed.question, epoch


def loaded(key: str, score: float, hash: Any, blob: Any, document: Any) -> Loaded | None:
    """None when the passage is gone, or can't be read now.

    A document without a digest was not written to its end, as where its slot is moving: its tokens may have left first.
    """
    if isinstance(hash, Exception) or hash[0] is None:
        return None
    text, start, title, marks, path = hash
    metadata, digest = (None, None) if isinstance(document, Exception) else document
    packed = metadata.decode("utf-8", "replace") if isinstance(metadata, bytes) else ""
    ids = None if isinstance(blob, Exception) or digest is None else np.frombuffer(blob, dtype="<i4")
    heading = (path or b"").decode("utf-8", "replace").rpartition(places.BELOW)[2]
    named = (title or b"").decode()
    return Loaded(key, score, text.decode(), int(start), named, ids, places.stored(marks), packed, heading)


def reading_of(passage: Loaded, pieces: PassageTokens, row: reader.Row, logits: reader.RowLogits) -> PassageReading:
    """Sentences, and spans that say something: what overlaps a good one often leaves its comma or article over."""
    null = reader.null_logit(logits.start, logits.end)
    of_passage = logits.within(row.passage)
    offsets = pieces.offsets
    numbers = sentences.numbers(passage.text, offsets)
    best = reader.best_spans(logits.start, logits.end, row.passage, SPANS_PER_PASSAGE, sentences=numbers)
    spans: dict[tuple[int, int], PassageSpan] = {}  # by their characters, best first: two may be widened to the same
    for span in best:
        start, end = int(offsets[span.start_token, 0]), int(offsets[span.end_token, 1])
        start, end = span_edges.widened(passage.text, start, end)
        if metrics.normalize(passage.text[start:end]):
            within = evidence.own(offsets, numbers, span, of_passage.evidence)
            own = (min(within.start, start), max(within.end, end))
            spans.setdefault((start, end), PassageSpan(passage, start, end, span.logit, null, own, within.evidence))
    likeliest = evidence.likeliest(of_passage, offsets, numbers, best)
    return PassageReading(passage, null, list(spans.values()), likeliest, logits.relevance or 0.0)


def _score(scoring: Scoring, span: PassageSpan, best_rank: float) -> float:
    return scoring.score(span.span_logit, span.null_logit, span.passage.score, best_rank)
