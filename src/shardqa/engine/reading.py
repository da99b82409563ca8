"""From a ranked list to candidates: the readers are asked for the best passages first, and for others where that pays.

Passages are read in the order of their ranks over all shards, in stages: 1, 5, 10, ... up to k. A stage is a GET
of each shard that holds passages of it, for its own best n; the shard remembers what it has read of the question. A
stage ends early, or is left out, where the passages to come rank too low for what the best candidate so far scores:
from a score of `sure` on, no passage is worth it. So what is read follows from ranks and scores alone, and is the same
however many shards there are. One asyncio loop owns a Readers.
"""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import orjson
from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine import forms, parts
from shardqa.engine.connections import Shards
from shardqa.engine.merging import ScoredSpan, candidates_of, lines_of, scored, scoring_of
from shardqa.engine.rank import RankedList
from shardqa.errors import ClusterUnavailable, WritesRefused, WrongShard
from shardqa.models.corpus_scoring import CorpusScoring
from shardqa.models.scoring import FARTHEST, lag, log_odds
from shardqa.question import Question
from shardqa.schema import Candidate, MergedCandidates, ShardUse

STAGES = (1, 5, 10, 20, 40)  # passages after each, up to k; 2 of 797 questions were first sure at 2 or 3
# Log-odds of a score that a passage must stay below `sure` to have another read, for each lag of that other. On 11 sets
# of questions 4 reads 2.59 passages of 5 where 0 reads 3.56, F1 the same on average; docs/where-the-time-goes.md.
LAG_ODDS = 4.0


class Place(NamedTuple):
    """A shard that holds passages of the list."""

    node: str
    tag: str


@dataclass(frozen=True, slots=True)
class Read:
    """A shard's reply about its best `passages`."""

    passages: int
    key: str
    reply: dict[str, Any]
    us: dict[str, int]  # microseconds by phase, of this request
    cached: bool
    calibrated: bool = False  # its scores are the corpus's own


Early: TypeAlias = dict[str, asyncio.Task[Read]]  # readings begun before, by the key of the shard's answer


class Readers:
    def __init__(self, settings: Settings, shards: Shards) -> None:
        self._settings = settings
        self._shards = shards

    async def staged(
        self,
        ranked: RankedList,
        is_last: bool = True,
        on_stage: Callable[["StagedReading", int], None] | None = None,
        own: CorpusScoring | None = None,
        early: Early | None = None,
    ) -> "StagedReading":
        """Reads to the end. `on_stage` is called after each stage, with the passages it covers; `early`: `begin`.

        Raises ClusterUnavailable where no shard could be asked. A shard whose tag is moving counts as one that could
        not, unless the question will be ranked again: then (not `is_last`) WrongShard is raised.
        """
        reading = StagedReading(self, ranked, is_last, own, early)
        while (stage := reading.next_stage(ranked.question, reading.last)) > reading.last:
            await reading.upto(stage)
            reading.last = stage
            if on_stage is not None:
                on_stage(reading, stage)
        return reading

    def begin(self, early: Early, ranked: RankedList) -> None:
        """Reads the best passage, while its shards still look for bridges: `early` gets the shard's answer, by key."""
        if ranked.passages and ranked.question.sure < 1:  # else all are read at once
            place = Place(ranked.passages[0].node, ranked.passages[0].tag)
            if (key := self.key(ranked, place, 1)) not in early:
                early[key] = asyncio.create_task(self.one(ranked.question, place.node, 1, key))

    def key(self, ranked: RankedList, place: Place, passages: int) -> str:
        """The key of a shard's answer about its best `passages`."""
        question, epoch, model = ranked.question, ranked.epochs[place.tag], self._settings.model
        return keys.answer(question.corpus, place.tag, epoch, model, passages, question.text, question.filter)

    async def one(self, question: Question, name: str, passages: int, key: str) -> Read:
        """The answer of the shard at node `name`: a GET of its key that its reader fills when it misses."""
        node = self._shards.node(name)
        if node is None:
            raise ClusterUnavailable(f"node {name} left the cluster while it was asked; ask again")
        reply = None if question.fresh else await self._filled(node, key)
        if reply is None:
            with suppress(WritesRefused):  # the value is of this epoch, too
                await self._shards.on(node, "UNLINK", key)
            reply = await self._filled(node, key)
        cached = bool(reply["cached"])
        us = {} if cached else {name: int(us) for name, us in reply["us"].items()}  # else those of another request
        return Read(passages, key, reply, us, cached)

    async def _filled(self, node: ClusterNode, key: str) -> dict[str, Any]:
        """The value in Redis, or the one that the shard's reader makes of a GET that misses."""
        value = await self._shards.on(node, "GET", key)
        if value is None:
            raise ClusterUnavailable(f"shard {node.name} has no function that fills {key[:80]!r}; see 'shardqa doctor'")
        loaded = orjson.loads(value)
        assert isinstance(loaded, dict), f"an answer key holds {type(loaded).__name__}, not an object"
        return loaded


class StagedReading:
    """The replies to one question so far, as they come in."""

    def __init__(
        self,
        readers: Readers,
        ranked: RankedList,
        is_last: bool = True,
        own: CorpusScoring | None = None,
        early: Early | None = None,
    ) -> None:
        self._readers = readers
        self._early = {} if early is None else early  # whoever takes one ends it
        self._own = own  # the corpus's scores, in place of the reader's
        self._is_last = is_last
        self._ranked = ranked
        self._ranks = ranked.ranks
        self._order = [passage.key for passage in ranked.passages]
        self._lags = [lag(score, self._ranks.scores[0]) for score in self._ranks.scores]  # ascending
        self._places: list[Place] = [Place(passage.node, passage.tag) for passage in ranked.passages]
        self._reads: dict[Place, list[Read]] = {}  # by place, each of more passages than the one before
        self._unreachable: dict[Place, ClusterUnavailable] = {}
        self._scored: dict[int, list[ScoredSpan]] = {}  # by stage, of what is read so far
        self.last = 0  # passages after the last stage
        self.failed = list(ranked.failed)

    async def upto(self, stage: int) -> None:
        """Reads the best `stage` passages. Raises what a shard's answer raises."""
        asked = {place: reads[-1].passages for place, reads in self._reads.items()}
        await asyncio.gather(
            *(
                self._one(place, count)
                for place, count in sorted(Counter(self._places[:stage]).items())
                if count > asked.get(place, 0) and place not in self._unreachable
            )
        )
        if self._unreachable and not self._reads and len(self._unreachable) == len(set(self._places)):
            raise next(iter(self._unreachable.values()))

    async def _one(self, place: Place, count: int) -> None:
        try:
            key = self._readers.key(self._ranked, place, count)
            early = self._early.pop(key, None)
            read = await (early or self._readers.one(self._ranked.question, place.node, count, key))
        except ClusterUnavailable as fault:
            if isinstance(fault, WrongShard) and not self._is_last:
                raise
            self._unreachable[place] = fault
            if place.node not in self.failed:
                self.failed.append(place.node)
            return
        reads = self._reads.setdefault(place, [])
        reads.append(_scored_by(read, self._own))
        self._scored.clear()

    def next_stage(self, question: Question, read: int) -> int:
        """The passages to have read after another stage, of `question.k`; `read` where no other is worth it."""
        every = min(question.k, len(self._order))
        if question.sure >= 1:
            return every
        reach = next((stage for stage in STAGES if read < stage < every), every)
        if not read:
            return reach
        best = next(iter(self.scored(read)), None)
        room = log_odds(question.sure) - log_odds(best.score) if best is not None else FARTHEST
        return bisect_right(self._lags, room / LAG_ODDS, read, reach)

    def candidates(self, stage: int) -> list[Candidate]:
        return candidates_of(self.scored(stage))

    def scored(self, stage: int) -> list[ScoredSpan]:
        """The spans behind `candidates`, with what each score is made of."""
        if stage not in self._scored:
            self._scored[stage] = scored(self._replies(stage), self._ranked.question.text, self._ranks)
        return self._scored[stage]

    def _replies(self, stage: int) -> list[dict[str, Any]]:
        """The shards' replies with the best `stage` passages alone."""
        return _limited(self._latest(), set(self._order[:stage]))

    def _latest(self) -> list[dict[str, Any]]:
        """Every shard's reply that covers most passages, in an order that does not depend on who was fast."""
        return [self._reads[place][-1].reply for place in sorted(self._reads)]

    def merged(self) -> MergedCandidates:
        """The candidates of all that was read."""
        candidates, replies = self.candidates(self.last), self._replies(self.last)
        sentences = parts.sentences_of(replies)
        question = self._ranked.question.text
        answers = forms.answers(candidates, self.scored(self.last), sentences, replies, question, self._ranks)
        return MergedCandidates(
            candidates=candidates,
            below=lines_of(self._latest()),
            shards=[_use(place, reads) for place, reads in sorted(self._reads.items())],
            composed=answers.composed,
            auto=answers.auto,
            likeliest=parts.likeliest(sentences),
            calibrated=self.is_calibrated,
        )

    @property
    def is_calibrated(self) -> bool:
        """Whether scores are the corpus's own."""
        return self._own is not None and all(reads[-1].calibrated for reads in self._reads.values())


def _scored_by(read: Read, own: CorpusScoring | None) -> Read:
    """Parses the scores, once for all that looks at them: the corpus's own where they fit the reader."""
    readers = scoring_of(read.reply)
    scores = readers if own is None else own.over(readers)
    return replace(read, reply={**read.reply, "scores": scores}, calibrated=own is not None and own.fits(readers))


def _limited(replies: Iterable[dict[str, Any]], passages: set[str]) -> list[dict[str, Any]]:
    """Leaves in the replies these passages alone, with their spans."""
    return [
        {
            **reply,
            "spans": [span for span in reply["spans"] if span["passage"] in passages],
            "passages": {key: passage for key, passage in reply["passages"].items() if key in passages},
        }
        for reply in replies
    ]


def _use(place: Place, reads: Sequence[Read]) -> ShardUse:
    """Adds up what the shard did in all stages."""
    us: Counter[str] = Counter()
    for read in reads:
        us.update(read.us)
    return ShardUse(
        node=place.node,
        tag=place.tag,
        passages=reads[-1].passages,
        cached=all(read.cached for read in reads),
        key=reads[-1].key,
        us=dict(us),
    )
