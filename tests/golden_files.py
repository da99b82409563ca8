"""The golden folder: small files of each format, and beside it `golden.jsonl`, a line each, what must come out of them.

A line names a file and `words` of a document, by default the one of the file's name, with their `place`; or why it is
refused (`reason`), what is `lost`, or what it is that has no text. `ferry` and `passengers` are in no other file.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden"
LIST = FOLDER.with_suffix(".jsonl")


@dataclass(frozen=True, slots=True)
class Line:
    file: str
    words: str = ""
    document: str = ""
    place: dict[str, Any] = field(default_factory=dict)
    ferry: str = ""
    passengers: int = 0
    reason: str = ""
    lost: str = ""
    textless: str = ""

    @property
    def id(self) -> str:
        return self.document or self.file

    @property
    def question(self) -> str:
        return f"How many passengers does the ferry {self.ferry} carry?"


def lines() -> list[Line]:
    return [Line(**json.loads(line)) for line in LIST.read_text(encoding="utf-8").splitlines()]


def files() -> list[Path]:
    return sorted(path for path in FOLDER.rglob("*") if path.is_file())
