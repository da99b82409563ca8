"""Corpora that something is off for: vectors, though the cluster has an encoder, or the following of titles.

    dense:<corpus>:{b0017}     "off" for this bucket; a mark a bucket, as of dropped corpora, so that it moves along
    bridges:<corpus>:{b0017}   with slots and every shard that holds a part of the corpus has one

Every shard follows these keys, replicas too. The worker's loop only.
"""

from collections.abc import Sequence

from shardqa import keys
from shardqa.errors import BadKey
from shardqa.gears_functions import keyspace
from shardqa.gears_functions.shard import slots
from shardqa.gears_functions.writes import write
from shardqa.worker.runtime import Argument, KeyEvent, Runtime

SCAN_COUNT = 10_000  # keys looked at per SCAN


class Marks:
    def __init__(self, runtime: Runtime, word: str) -> None:
        self._runtime = runtime
        self._word = word
        self._marks: dict[str, set[str]] = {}  # corpus -> buckets

    @property
    def prefix(self) -> str:
        return f"{self._word}:"

    def covers(self, corpus: str) -> bool:
        return corpus in self._marks

    async def choose(self, corpus: str, is_off: bool) -> None:
        """Sets it off or on for the corpus' buckets on this shard. Raises ShardFailed, or Redis' own passing error."""
        here = await slots.look(self._runtime)
        buckets = [bucket for bucket, slot in slots.OF_BUCKETS.items() if here.serves(slot)]
        names = [keys.mark(self._word, corpus, bucket) for bucket in buckets]
        commands: list[tuple[Argument, ...]] = [("SET", name, "off") if is_off else ("UNLINK", name) for name in names]
        await write(self._runtime, commands)
        for bucket in buckets:
            self._mark(corpus, bucket, is_off)

    def _mark(self, corpus: str, bucket: str, is_marked: bool) -> None:
        marks = self._marks.setdefault(corpus, set())
        (marks.add if is_marked else marks.discard)(bucket)
        if not marks:
            del self._marks[corpus]

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
        self._marks = {}
        for corpus, bucket in marks:
            self._mark(corpus, bucket, True)
