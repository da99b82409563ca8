"""The rounds in which shards rank a question: what they are asked, and what they reply.

    Terms   each shard's numbers of the question's words; scores are made of their sum
    Spelling  words that are nearly those of the question that no passage has
    Embed   the question's vector, from one shard, where passages have some
    Rank    each shard's best passages by that sum; where titles are to be followed, with the first ones' words
    Bridge  titles that stand in these words; shards that they lead to rank once more

An engine asks (engine/rank.py), or a shard that nobody sent the sum to (shard/rankings.py); functions/rank.py answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from shardqa import request
from shardqa.bridges import FirstPassage, NamedTitles
from shardqa.description import record_of
from shardqa.errors import BadData
from shardqa.statistics import CorpusStatistics

Command: TypeAlias = tuple[str | bytes | int, ...]
AMONG = "among"  # field of the statistics: see StatisticsArgument
ASIDE = "aside"  # field of the statistics: the list is for another shard's use, and no GET goes by it


@dataclass(frozen=True, slots=True)
class StatisticsArgument:
    """The sum of all shards' Terms as an argument of a function."""

    statistics: CorpusStatistics
    request: str = ""  # id of the request, for the log
    is_aside: bool = False
    among: str = ""  # the corpora that it is the sum of, with commas, where they are several

    def json(self) -> bytes:
        others = {request.FIELD: self.request, ASIDE: self.is_aside, AMONG: self.among}
        return orjson.dumps({**self.statistics.record(), **others})

    @classmethod
    def parse(cls, raw: str | bytes) -> StatisticsArgument:
        """Raises BadData."""
        try:
            record = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise BadData(f"the statistics are not JSON: {error}; send the sum of all shards' Terms") from None
        statistics, among = CorpusStatistics.parse(record), record.get(AMONG, "")
        if not isinstance(among, str):
            raise BadData(f"statistics have {AMONG}={str(among)[:80]!r}, names of corpora with commas are needed")
        return cls(statistics, request.checked(record.get(request.FIELD)), bool(record.get(ASIDE)), among)


def terms(corpus: str, question: str, view: str) -> Command:
    return ("RG.TRIGGER", "Terms", corpus, question, *([view] if view else []))


def spelling(corpus: str, words: Sequence[str]) -> Command:
    return ("RG.TRIGGER", "Spelling", corpus, *words)


def embed(corpus: str, question: str) -> Command:
    return "RG.TRIGGER", "Embed", corpus, question


def rank(corpus: str, question: str, limit: int, argument: StatisticsArgument, filter_: str) -> Command:
    return ("RG.TRIGGER", "Rank", corpus, question, limit, argument.json(), *([filter_] if filter_ else []))


def bridge(corpus: str, first: Sequence[FirstPassage], view: str) -> Command:
    words = orjson.dumps([passage.words for passage in first])
    return ("RG.TRIGGER", "Bridge", corpus, words, *([view] if view else []))


@dataclass(frozen=True, slots=True)
class TermsReply:
    tag: str
    epoch: int
    statistics: CorpusStatistics
    titled: Mapping[str, int]  # passages by term that their title holds

    def json(self) -> str:
        return _json(self, titled=self.titled, **self.statistics.record())

    @classmethod
    def parse(cls, reply: Any) -> TermsReply:
        record = record_of(reply)
        return cls(str(record["tag"]), int(record["epoch"]), CorpusStatistics.parse(record), record["titled"])

    @property
    def has_none(self) -> bool:
        """Whether no passage of the shard can rank by words: none holds one of the question's, in text or title."""
        return not any(self.statistics.df.values()) and not any(self.titled.values())


@dataclass(frozen=True, slots=True)
class RankReply:
    tag: str
    epoch: int
    passages: Sequence[tuple[str, float]]  # key and score, best first
    words: Sequence[Sequence[str]] = ()  # of the first passages
    us: int = 0  # microseconds that it took

    def json(self) -> str:
        words = {"words": self.words} if self.words else {}
        return _json(self, passages=self.passages, us=self.us, **words)

    @classmethod
    def parse(cls, reply: Any) -> RankReply:
        record = record_of(reply)
        return cls(str(record["tag"]), int(record["epoch"]), record["passages"], record.get("words", []))


@dataclass(frozen=True, slots=True)
class BridgeReply:
    tag: str
    epoch: int
    named: NamedTitles

    def json(self) -> str:
        return _json(self, **self.named.record())

    @classmethod
    def parse(cls, reply: Any) -> BridgeReply:
        record = record_of(reply)
        return cls(str(record["tag"]), int(record["epoch"]), NamedTitles.parse(record))


def _json(reply: TermsReply | RankReply | BridgeReply, **fields: Any) -> str:
    return orjson.dumps({"tag": reply.tag, "epoch": reply.epoch, **fields}).decode()
