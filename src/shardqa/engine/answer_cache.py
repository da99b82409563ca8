"""Cache of final answers: an LRU bounded by memory in this process, and `ask:` keys in Redis.

One asyncio loop owns an AnswerCache. In Redis the value of an `ask:` key is a MergedCandidates as JSON, with each
passage once, however many candidates it has.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import orjson
from cachetools import LRUCache

from shardqa.question import Question
from shardqa.schema import Answer, MergedCandidates, Timing

UNMEASURED = Timing(cache=-1.0, total=-1.0)  # no time is negative
UNMEASURED_JSON = UNMEASURED.model_dump_json().encode()
TIMES = UNMEASURED_JSON.replace(b"-1.0", b"%.3f")
REPLIES = 8  # finished ones of one answer: the question in other words, with other numbers of candidates
MEMORY_PER_JSON = 6
"""Bytes a MergedCandidates takes for each byte of its JSON: 6.2 with one passage, 5.7 with 5 (tracemalloc)."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A reply's JSON around its times."""

    before: bytes
    after: bytes
    no_answer: bool

    @classmethod
    def of(cls, answer: Answer) -> Self:
        copy = answer.model_copy(update={"timing": UNMEASURED})
        before, _, after = copy.model_dump_json().encode().rpartition(UNMEASURED_JSON)
        return cls(before, after, answer.no_answer)

    def json(self, cache: float, total: float) -> bytes:
        """The reply with these milliseconds; the model would take ten times as long to write it."""
        return self.before + TIMES % (cache, total) + self.after


@dataclass(slots=True)
class _Entry:
    answer: MergedCandidates
    size: int  # bytes, with the finished replies
    finished: dict[Question, Finished]


class AnswerCache:
    def __init__(self, megabytes: int) -> None:
        # by ask: key
        self._entries: LRUCache[str, _Entry] = LRUCache(megabytes * 1_000_000, getsizeof=lambda entry: entry.size)

    def get(self, key: str) -> MergedCandidates | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.answer

    def finished(self, key: str, question: Question) -> Finished | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.finished.get(question)

    def finish(self, key: str, question: Question, answer: Finished) -> None:
        """Stores a finished reply beside its answer, if that is still cached."""
        entry = self._entries.get(key)
        if entry is None or len(entry.finished) >= REPLIES:
            return
        entry.finished[question] = answer
        entry.size += len(answer.before)
        self._keep(key, entry)

    def put(self, key: str, answer: MergedCandidates, json_bytes: int) -> None:
        """`json_bytes` is the length of the answer's JSON, from which its memory is estimated."""
        self._keep(key, _Entry(answer, json_bytes * MEMORY_PER_JSON, {}))

    def _keep(self, key: str, entry: _Entry) -> None:
        """Keeps an answer with its size of now; one that is larger than the cache is not kept."""
        self._entries.pop(key, None)
        with suppress(ValueError):
            self._entries[key] = entry


OF_PASSAGE = ("corpus", "document", "title", "passage", "passage_start", "shard", "rank_score", "metadata")
"""Fields of a Candidate that all those of one passage share."""


def pack(answer: MergedCandidates) -> bytes:
    fields = answer.model_dump()
    numbers: dict[bytes, int] = {}  # passage -> its place
    passages = list[dict[str, Any]]()
    for candidate in fields["candidates"]:
        passage = {name: candidate.pop(name) for name in OF_PASSAGE}
        candidate["of"] = numbers.setdefault(orjson.dumps(passage), len(numbers))
        if candidate["of"] == len(passages):
            passages.append(passage)
    return orjson.dumps({**fields, "passages": passages})


def unpack(value: bytes) -> MergedCandidates | None:
    """Reads a kept answer; None for a value that is not ours, or not of this version."""
    try:
        fields = orjson.loads(value)
        passages = fields["passages"]
        fields["candidates"] = [{**passages[candidate["of"]], **candidate} for candidate in fields["candidates"]]
        return MergedCandidates.model_validate(fields)
    except (LookupError, TypeError, ValueError):  # JSON's and Pydantic's faults are ValueErrors
        return None
