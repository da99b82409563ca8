"""Texts with marked sentences, read as shards read a document: cut into passages, each of which is read by itself."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.progress import track

from shardqa import keys
from shardqa.cli.output import err
from shardqa.engine import parts
from shardqa.engine.parts import Excerpt
from shardqa.errors import BadData, QuestionTooLong
from shardqa.gears_functions.passage_reading import Loaded, reading_of
from shardqa.gears_functions.splitting import Passage, split
from shardqa.models import reader
from shardqa.models.reading_record import ShardReading
from shardqa.models.scoring import Scoring
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import evidence_lines
from shardqa_toolchain.evidence_lines import EvidenceRecord

CORPUS, TAG = "eval", "eval"


def spread(file: Path, split_name: str | None, limit: int | None) -> list[EvidenceRecord]:
    """The rows of a split, or ``limit`` of them evenly spread. Raises BadData where there is none."""
    try:
        records = evidence_lines.read(file)
    except OSError as error:
        raise BadData(f"{file} can't be read: {error.strerror}; name a file of marked texts") from None
    records = [one for one in records if split_name in (None, one.split)]
    if not records:
        raise BadData(f"{file} holds no row{f' of the split {split_name}' if split_name else ''}")
    count = min(limit or len(records), len(records))
    return [records[n * len(records) // count] for n in range(count)]


class MarkedTexts:
    """A reader of such texts."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Load a reader's folder; raises BadModel, FileNotFoundError where a file of it is missing."""
        self._tokenizer = Tokenizer.load(folder)
        self._session = ReaderSession(folder, threads)
        self.scoring = Scoring.load(folder)

    def read(self, records: Sequence[EvidenceRecord], name: str) -> Iterator[ShardReading | None]:
        """Yields of each text the reply of a shard that holds it alone; None where the question is too long."""
        for record in track(records, f"Reading {name}", console=err, disable=not err.is_terminal):
            yield self._reply(record)

    def _reply(self, record: EvidenceRecord) -> ShardReading | None:
        try:
            question = self._tokenizer.question(keys.normalise_question(record.question))
        except QuestionTooLong:
            return None
        cut = split(record.context, self._tokenizer)
        rows = [reader.join(question, passage.ids) for passage in cut]
        readings = [
            reading_of(self._loaded(record, number, passage), self._tokenizer.passage(passage.text), row, logits)
            for number, (passage, row, logits) in enumerate(zip(cut, rows, self._session.read_all(rows), strict=True))
        ]
        return ShardReading(
            tag=TAG,
            epoch=0,
            model="",
            question=record.question,
            spans=[span for one in readings for span in one.spans],
            passages={one.passage.key: one.passage for one in readings},
            scores=self.scoring,
            us={},
            batch=len(rows),
        )

    @staticmethod
    def _loaded(record: EvidenceRecord, number: int, passage: Passage) -> Loaded:
        key = keys.passage(CORPUS, record.id, number)
        return Loaded(key, 1.0, passage.text, passage.start, record.title, None, [], "")


def sentences(reply: ShardReading | None) -> list[Excerpt]:
    """All sentences of a text, likeliest first, none twice."""
    return list(parts.distinct(parts.sentences_of([reply]))) if reply else []
