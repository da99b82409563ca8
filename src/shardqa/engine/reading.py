"""From a ranked list to candidates: the readers are asked for the best passages first, and for others where that pays.

Passages are read in the order of their ranks over all shards, in stages: 1, 5, 10, ... up to k. A stage is a GET of
each shard that holds passages of it, for its own best n; the shard remembers what it has read of the question. A stage
ends early, or is left out, where the passages to come rank too low for what the best candidate so far scores: from a
score of `sure` on, no passage is worth it. Where the best k give no answer, those of the MORE that rank next are read,
STEP at a time, whose rank lies near the best one's. So what is read follows from ranks and scores alone, and is the
same however many shards there are. One asyncio loop owns a Readers.
"""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from redis.asyncio.cluster import ClusterNode

from shardqa import keys
from shardqa.checks import MAX_K
from shardqa.config import Settings
from shardqa.engine import forms, parts
from shardqa.engine.connections import Shards
from shardqa.engine.merging import ScoredSpan, candidates_of, is_quoted, lines_of, scored
from shardqa.engine.rank import RankedList, RankedPassage
from shardqa.errors import ClusterUnavailable, WritesRefused, WrongShard
from shardqa.models.reading_record import ShardReading
from shardqa.models.scoring import lag, log_odds
from shardqa.models.subject import Subject
from shardqa.question import Question
from shardqa.schema import Candidate, MergedCandidates, ShardUse

MORE = 8  # further passages: other-worded questions have their passage among twenty far more often than among five
STEP = 4
# Lag up to which one of these is read. Of SQuAD's, seeds' and fish's questions 10 had their first right passage beyond
# the fifth, 8 of them at 0.28 or less. Of 544 other questions, 136 a wording, 0.35 answers one more and reads 5.4
# passages for each; 0.3 reads 5.0, 0.2 3.8 and shows five answers fewer.
NEAR_LAG = 0.28
STAGES = (1, 5, 10, 20, 40)  # passages after each, up to k; 2 of 797 questions were first sure at 2 or 3
# Log-odds of a score that a passage must stay below `sure` to have another read, for each lag of that other. On 11 sets
# of questions 4 reads 2.59 passages of 5 where 0 reads 3.56, F1 the same on average; docs/where-the-time-goes.md.
LAG_ODDS = 4.0


def reach(question: Question) -> int:
    """The passages that a question may have read."""
    return min(question.k + MORE, MAX_K)


class Place(NamedTuple):
    """A shard that holds passages of the list, of one corpus."""

    node: str
    tag: str
    corpus: str


@dataclass(frozen=True, slots=True)
class Read:
    """A shard's reply about its best `passages`."""

    passages: int
    key: str
    reading: ShardReading


Early: TypeAlias = dict[str, asyncio.Task[Read]]  # readings begun before, by the key of the shard's answer


class Readers:
    def __init__(self, settings: Settings, shards: Shards) -> None:
        self._settings = settings
        self._shards = shards

    async def staged(
        self,
        ranking: RankedList,
        is_last: bool = True,
        on_stage: Callable[["StagedReading", int], None] | None = None,
        early: Early | None = None,
    ) -> "StagedReading":
        """Reads to the end. `on_stage` is called after each stage, with the passages it covers; `early`: `begin`.

        Raises ClusterUnavailable where no shard could be asked. A shard whose tag is moving counts as one that could
        not, unless the question will be ranked again: then (not `is_last`) WrongShard is raised.
        """
        reading = StagedReading(self, ranking, is_last, early)
        while (stage := reading.next_stage()) > reading.last:
            await reading.upto(stage)
            reading.last = stage
            if on_stage is not None:
                on_stage(reading, stage)
        return reading

    def begin(self, early: Early, ranking: RankedList) -> None:
        """Reads the best passage, while its shards still look for bridges: `early` gets the shard's answer, by key."""
        if ranking.passages and ranking.question.sure < 1:  # else all are read at once
            place = _place(ranking.passages[0])
            if (key := self.key(ranking, place, 1)) not in early:
                early[key] = asyncio.create_task(self.one(ranking.question, place.node, 1, key))

    def key(self, ranking: RankedList, place: Place, passages: int) -> str:
        """The key of a shard's answer about its best `passages`."""
        question, epoch, model = ranking.question, ranking.epochs[place.corpus, place.tag], self._settings.model
        parts = question.text, question.filter, question.among
        return keys.answer(place.corpus, place.tag, epoch, model, passages, *parts)

    async def one(self, question: Question, name: str, passages: int, key: str) -> Read:
        """The answer of the shard at node `name`: a GET of its key that its reader fills when it misses."""
        node = self._shards.node(name)
        reading = None if question.fresh else await self._filled(node, key)
        if reading is None:
            with suppress(WritesRefused):  # the value is of this epoch, too
                await self._shards.on(node, "UNLINK", key)
            reading = await self._filled(node, key)
        if reading is None:
            raise ClusterUnavailable(f"shard {node.name} answers in another version's form; give it this module")
        return Read(passages, key, reading)

    async def _filled(self, node: ClusterNode, key: str) -> ShardReading | None:
        """The value in Redis, or the one that the shard's reader makes of a GET that misses; None for another
        version's."""
        value = await self._shards.on(node, "GET", key)
        if value is None:
            raise ClusterUnavailable(f"shard {node.name} has no function that fills {key[:80]!r}; see 'shardqa doctor'")
        return ShardReading.parse(value)


class StagedReading:
    """The replies to one question so far, as they come in."""

    def __init__(self, readers: Readers, ranking: RankedList, is_last: bool = True, early: Early | None = None) -> None:
        self._readers = readers
        self._early = {} if early is None else early  # whoever takes one ends it
        self._is_last = is_last
        self._ranked = ranking
        self._subject = Subject.of(ranking.question.told, ranking.absent)
        self._ranks = ranking.ranks
        self._order = [passage.key for passage in ranking.passages]
        self._lags = [lag(score, self._ranks.scores[0]) for score in self._ranks.scores]  # ascending
        self._places: list[Place] = [_place(passage) for passage in ranking.passages]
        self._reads: dict[Place, list[Read]] = {}  # by place, each of more passages than the one before
        self._unreachable: dict[Place, ClusterUnavailable] = {}
        self._scored: dict[int, list[ScoredSpan]] = {}  # by stage, of what is read so far
        self._merged: MergedCandidates | None = None  # of all that is read so far
        self.last = 0  # passages after the last stage
        self.failed = list(ranking.failed)

    async def upto(self, stage: int) -> None:
        """Reads the best `stage` passages. Raises what a shard's answer raises."""
        counts = {place: reads[-1].passages for place, reads in self._reads.items()}
        await asyncio.gather(
            *(
                self._one(place, count)
                for place, count in sorted(Counter(self._places[:stage]).items())
                if count > counts.get(place, 0) and place not in self._unreachable
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
        reads.append(read)
        self._scored.clear()
        self._merged = None

    def next_stage(self) -> int:
        """The passages to have read after another stage; those read so far where no other is worth it."""
        every = min(self._ranked.question.k, len(self._order))
        stage = self._worth_reading(every) if self.last < every else self.last
        if stage > self.last or not self.last or self._is_answered():
            return stage
        return bisect_right(self._lags, NEAR_LAG, self.last, min(self.last + STEP, len(self._order)))

    def _worth_reading(self, every: int) -> int:
        """The stage that is worth reading, of the best `every` passages."""
        sure = self._ranked.question.sure
        if sure >= 1:
            return every
        reach = next((stage for stage in STAGES if self.last < stage < every), every)
        if not self.last:
            return reach
        best = next(iter(self.scored(self.last)), None)
        if best is None or is_quoted(best.span):  # the newest mail may stand in the next passage
            return reach
        room = log_odds(sure) - log_odds(best.score)
        return bisect_right(self._lags, room / LAG_ODDS, self.last, reach)

    def _is_answered(self) -> bool:
        """Whether what is read gives an answer by default, in the form that the question asks for."""
        reading = self.merged()
        best = reading.composed.get(reading.auto)
        return best is not None and best.score >= best.below.balanced

    def candidates(self, stage: int) -> list[Candidate]:
        return candidates_of(self.scored(stage))

    def scored(self, stage: int) -> list[ScoredSpan]:
        """The spans behind `candidates`, with what each score is made of."""
        if stage not in self._scored:
            self._scored[stage] = scored(self._readings(stage), self._subject, self._ranks)
        return self._scored[stage]

    def _readings(self, stage: int) -> list[ShardReading]:
        """The shards' readings of the best `stage` passages alone."""
        best = set(self._order[:stage])
        return [reading.of_passages(best) for reading in self._latest()]

    def _latest(self) -> list[ShardReading]:
        """Lists every shard's reading that covers most passages, in an order that does not depend on who was fast."""
        return [self._reads[place][-1].reading for place in sorted(self._reads)]

    def merged(self) -> MergedCandidates:
        """The candidates of all that was read."""
        if self._merged is None:
            self._merged = self._merge()
        return self._merged

    def _merge(self) -> MergedCandidates:
        candidates, readings = self.candidates(self.last), self._readings(self.last)
        sentences = [one for one in parts.sentences_of(readings) if not self._subject.is_echoed(one.text)]
        of_question = self._ranked.question.text, self._subject, self._ranks
        answers = forms.answers(candidates, self.scored(self.last), sentences, readings, *of_question)
        return MergedCandidates(
            candidates=candidates,
            below=lines_of(self._latest()),
            shards=[_use(place, reads) for place, reads in sorted(self._reads.items())],
            composed=answers.composed,
            auto=answers.auto,
            likeliest=parts.likeliest(sentences),
            absent=list(self._ranked.absent),
            reader=next((one.model for one in readings if one.model == keys.MANY_READER), ""),
        )


def _place(passage: RankedPassage) -> Place:
    return Place(passage.node, passage.tag, passage.corpus)


def _use(place: Place, reads: Sequence[Read]) -> ShardUse:
    """Adds up what the shard did in all stages."""
    us: Counter[str] = Counter()
    for read in reads:
        us.update({} if read.reading.cached else read.reading.us)  # else those of another request
    return ShardUse(
        node=place.node,
        tag=place.tag,
        passages=reads[-1].passages,
        cached=all(read.reading.cached for read in reads),
        key=reads[-1].key,
        us=dict(us),
    )
