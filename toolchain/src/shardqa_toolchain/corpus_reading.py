"""Reads what a corpus's own scores are fitted on: the passages of a question with every span in them."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace

from shardqa.engine import Engine
from shardqa.errors import AnswerTimeout, ClusterUnavailable
from shardqa.models.scoring import Scoring, Spanned, shipped_scoring
from shardqa.question import Question


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A passage found for a question, with all that the reader found in it."""

    document: str
    rank_score: float
    spans: tuple[Spanned, ...]


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    passages: tuple[ReadPassage, ...]  # best first
    readers: Scoring  # of the reader, whatever the corpus has
    size: int  # passages of the corpus


async def read_all(engine: Engine, question: Question) -> ReadQuestion:
    """Reads all of a question's best `k` passages. Raises as `ask`, and ClusterUnavailable where a shard is missing."""
    try:
        async with asyncio.timeout(engine.settings.timeout):
            ranks = await engine.ranking.rank(replace(question, sure=1.0), question.k)
            reading = await engine.readers.staged(ranks)
    except TimeoutError:
        raise AnswerTimeout(f"reading {question.k} passages took more than {engine.settings.timeout:g} s") from None
    if reading.failed:
        raise ClusterUnavailable(f"{', '.join(reading.failed)} did not answer; see 'shardqa status'")
    spans = reading.scored(len(ranks.passages))
    every = defaultdict[str, list[Spanned]](list)
    for one in spans:
        every[one.span.passage.key].append(one.span)
    passages = (ReadPassage(one.document, one.score, tuple(every[one.key])) for one in ranks.passages)
    return ReadQuestion(tuple(passages), spans[0].scoring if spans else shipped_scoring(), ranks.size)
