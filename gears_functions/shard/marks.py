"""Corpora that something is off for (vectors, though the cluster has an encoder; the following of titles), or on.

    dense:<corpus>:{b0017}      "off" for this bucket; a mark a bucket, as of dropped corpora, so that it moves along
    bridges:<corpus>:{b0017}    with slots and every shard that holds a part of the corpus has one
    languages:<corpus>:{b0017}  "on": the corpus is read by the pair of many languages

Every shard follows these keys, replicas too. The worker's loop only.
"""

import asyncio
from collections.abc import Callable, Sequence

from shardqa import keys
from shardqa.errors import BadKey
from shardqa.gears_functions import keyspace
from shardqa.gears_functions.shard import slots
from shardqa.gears_functions.writes import write
from shardqa.worker.runtime import Argument, KeyEvent, Runtime

SCAN_COUNT = 10_000  # keys looked at per SCAN


class Marks:
    def __init__(self, runtime: Runtime, word: str, value: str = "off") -> None:
        self._runtime = runtime
        self._word = word
        self.value = value  # of a mark
        self.known = asyncio.Event()  # that all marks were read
        self.changes: Callable[[str], None] = lambda corpus: None  # told of a corpus that is covered now, or no more
        self._marks: dict[str, set[str]] = {}  # corpus -> buckets

    @property
    def prefix(self) -> str:
        return f"{self._word}:"

    def covers(self, corpus: str) -> bool:
        return corpus in self._marks

    async def choose(self, corpus: str, is_marked: bool) -> None:
        """Marks the corpus' buckets on this shard, or not. Raises ShardFailed, or Redis' own passing error."""
        here = await slots.look(self._runtime)
        buckets = [bucket for bucket, slot in slots.OF_BUCKETS.items() if here.serves(slot)]
        names = [keys.mark(self._word, corpus, bucket) for bucket in buckets]
        commands: list[tuple[Argument, ...]] = [
            ("SET", name, self.value) if is_marked else ("UNLINK", name) for name in names
        ]
        await write(self._runtime, commands)
        for bucket in buckets:
            self._mark(corpus, bucket, is_marked)

    def _mark(self, corpus: str, bucket: str, is_marked: bool) -> None:
        before, marks = self.covers(corpus), self._marks.setdefault(corpus, set())
        (marks.add if is_marked else marks.discard)(bucket)
        if not marks:
            del self._marks[corpus]
        if self.covers(corpus) != before:
            self.changes(corpus)

    async def changed(self, events: Sequence[KeyEvent]) -> None:
        for event in events:
            try:
                corpus, bucket = keys.parse_mark(self._word, event.key)
            except BadKey as error:
                self._runtime.log(f"left alone: {error}", "warning")
                continue
            self._mark(corpus, bucket, event.type != "none")

    async def resync(self, reason: str) -> None:
        marks = set[tuple[str, str]]()
        async for page in keyspace.names(self._runtime, self.prefix + "*", SCAN_COUNT):
            for name in page:
                try:
                    marks.add(keys.parse_mark(self._word, name))
                except BadKey as error:
                    self._runtime.log(f"left alone: {error}", "warning")
        for corpus, bucket in {(corpus, bucket) for corpus, of in self._marks.items() for bucket in of} - marks:
            self._mark(corpus, bucket, False)
        for corpus, bucket in marks:
            self._mark(corpus, bucket, True)
        self.known.set()
