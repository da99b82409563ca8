"""Questions with the sentences that answer them, a JSON object a line, gzipped or not.

A line is ``{"id", "question", "title", "context", "spans": [[start, end], ..], "soft": [[start, end], ..], "split"}``:
``spans`` are the characters of ``context`` that answer, end exclusive, none where nothing does; ``soft`` what may.
``title``, ``soft`` and ``split`` may be absent, other fields are passed over.
"""

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardqa.errors import BadData
from shardqa_toolchain import squad

TRAIN, DEV = "train", "dev"

Places = tuple[tuple[int, int], ...]  # characters, half open


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """A question with a text and what of it answers."""

    id: str
    question: str
    title: str
    context: str
    spans: Places  # what answers; none means that the text does not say
    soft: Places = ()  # what may answer
    split: str = TRAIN  # TRAIN, or DEV for what is never learnt from

    def as_json(self) -> dict[str, Any]:
        """The fields of a line."""
        return {
            "id": self.id,
            "question": self.question,
            "title": self.title,
            "context": self.context,
            "spans": [list(place) for place in self.spans],
            "soft": [list(place) for place in self.soft],
            "split": self.split,
        }


def is_lines(path: Path) -> bool:
    """Whether a file holds a JSON object a line, by its name."""
    return path.name.removesuffix(".gz").endswith(".jsonl")


def read(path: Path) -> list[EvidenceRecord]:
    """Read a file, blank lines skipped; raises BadData with the line, OSError as open() does."""
    lines = enumerate(squad.read_text(path).split("\n"), 1)
    return [_record(f"{path}, line {number}", line) for number, line in lines if line.strip()]


def write(path: Path, records: Iterable[EvidenceRecord]) -> None:
    """Write a gzipped file; the same records give the same bytes."""
    text = "".join(json.dumps(record.as_json(), ensure_ascii=False) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _record(where: str, line: str) -> EvidenceRecord:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadData(f"{where}: not JSON: {error.msg} (column {error.colno})") from None
    if not isinstance(entry, dict):
        raise BadData(f"{where}: {type(entry).__name__} found, an object is needed")
    for name in ("id", "question", "context"):
        if not isinstance(entry.get(name), str):
            raise BadData(f'{where}: "{name}" is {entry.get(name)!r}, a string is needed')
    size = len(entry["context"])
    spans, soft = (_places(where, name, entry.get(name, []), size) for name in ("spans", "soft"))
    title, split = entry.get("title", ""), entry.get("split", TRAIN)
    return EvidenceRecord(entry["id"], entry["question"], title, entry["context"], spans, soft, split)


def _places(where: str, name: str, entry: object, size: int) -> Places:
    places = []
    for place in entry if isinstance(entry, list) else [entry]:
        match place:
            case [int(start), int(end)] if 0 <= start < end <= size:
                places.append((start, end))
            case _:
                raise BadData(f'{where}: "{name}" holds {place!r}, [start, end] within {size} characters is needed')
    return tuple(places)
