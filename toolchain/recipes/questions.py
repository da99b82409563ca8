"""Questions as people ask them, for the other recipes: which are learnt from, and of what.

Two files of one form (`../shared/data/asked/README.md`): those given, and `asked-more.jsonl.gz` beside this file, whose
records name a passage of the given pool by its document and number instead of holding its text, where it is one.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any

GIVEN = Path("../shared/data/asked")
MORE = Path(__file__).with_name("asked-more.jsonl.gz")
# Sources that are never learnt from: figures and scores come of them.
HELD_OUT = ("pi-hole/docs", "nhsuk/nhsuk-service-manual", "MedQuAD", "artsy/README")
TWIN = 0.8  # share of words from which two passages say the same: one answers the other's questions

Record = dict[str, Any]


def read(path: Path) -> list[Record]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def pool() -> list[Record]:
    """All passages of the given sources."""
    return read(GIVEN / "passages.jsonl.gz")


def records() -> list[Record]:
    """Passages with their questions, all sources."""
    places = {(one["source"], one["document"], one.get("n")): one["text"] for one in pool()}
    more = [{"text": places.get((one["source"], one["document"], one.get("n"))), **one} for one in read(MORE)]
    return [*read(GIVEN / "asked.jsonl.gz"), *more]


def is_held_out(record: Record) -> bool:
    return str(record["source"]).startswith(HELD_OUT)


def are_twins(first: str, second: str) -> bool:
    words = [set(re.findall(r"[a-z0-9]+", text.lower())) for text in (first, second)]
    return len(words[0] & words[1]) > TWIN * max(1, min(map(len, words)))
