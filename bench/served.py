"""Answers as a cluster of one shard gives them, in one process: the engine's stages and forms, the shard's reading.

Without Redis, so a corpus of ten thousand passages whose vectors are in a file is asked at once.
"""

import asyncio
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine.merging import conclude
from shardqa.engine.rank import RankedList, RankedPassage
from shardqa.engine.reading import Read, Readers, reach
from shardqa.gears_functions import named_rows
from shardqa.gears_functions.functions.answer import HEADING, NO_HEADING
from shardqa.gears_functions.passage_reading import Loaded, PassageReading, reading_of
from shardqa.models import reader, shipped
from shardqa.models.reading_record import ShardReading
from shardqa.models.scoring import Scoring
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer
from shardqa.question import Question
from shardqa.schema import Answer, Timing

CORPUS, SHARD = "bench", "here"
SETTINGS = Settings(corpus=CORPUS)
REACH = reach(Question.of("which", SETTINGS))  # passages that a question may have read


class Served(Readers):
    """Stands in for the shards: `one` reads the passages itself."""

    def __init__(self) -> None:
        self._settings = SETTINGS
        self._tokenizer = Tokenizer.load(shipped.folder())
        self._session = ReaderSession(shipped.folder(), 1)
        self._scoring = Scoring.load(shipped.folder())
        self._read: dict[str, PassageReading] = {}

    def answer(self, wording: str, passages: Mapping[str, Loaded], size: int) -> Answer:
        """`passages` by key, best first; `size` is the corpus'."""
        question = Question.of(wording, SETTINGS)
        places = [
            RankedPassage(key, CORPUS, keys.parse_passage(key).document, one.score, SHARD, SHARD)
            for key, one in passages.items()
        ]
        ranked = RankedList(question, places, {(CORPUS, SHARD): 0}, size=size)
        self._passages, self._read = passages, {}
        reading = asyncio.run(self.staged(ranked))
        return conclude(reading.merged(), question, "", None, [], Timing())

    async def one(self, question: Question, name: str, passages: int, key: str) -> Read:
        ids = self._tokenizer.question(question.text)
        best = list(self._passages)[:passages]
        loaded = [self._passages[one] for one in best if one not in self._read]
        pieces = [named_rows.read_of(one, self._tokenizer.passage(one.text), question.text) for one in loaded]
        rows = [reader.join(ids, own.ids, self._heading(one.heading)) for one, own in zip(loaded, pieces, strict=True)]
        for one, own, row, logits in zip(loaded, pieces, rows, self._session.read_all(rows), strict=True):
            self._read[one.key] = reading_of(one, own, row, logits)
        spans = [span for one in best for span in self._read[one].spans]
        records = {one: self._read[one].passage for one in best}
        return Read(
            passages, key, ShardReading(SHARD, 0, "", question.text, spans, records, self._scoring, {}, len(rows))
        )

    def _heading(self, heading: str) -> NDArray[np.int32]:
        return self._tokenizer.passage(f"{heading}:").ids[:HEADING] if heading else NO_HEADING
