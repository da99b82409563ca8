"""Dropped corpora: what a `drop:` key covers is unsearchable at once, and is removed slice by slice.

    drop:<corpus>:{b0017}   everything of this bucket goes; the key lies in the bucket's slot, and goes last

So the removal survives restarts and failovers, and moves along with slots. Every shard follows these keys; masters
remove. The worker's loop only; at most one task removes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from time import monotonic

from redis import ResponseError

from shardqa import keys, transient
from shardqa.errors import BadKey
from shardqa.gears_functions import keyspace
from shardqa.gears_functions.shard import slots
from shardqa.worker.runtime import Argument, KeyEvent, Runtime

PREFIX = "drop:"
WORDS = ("doc", "file", "passage", "tokens")
SCAN_COUNT = 500  # keys looked at in one tick
SLICE = 100  # keys unlinked in one tick: a fraction of a millisecond of Redis' time, and as much of this loop's
SCAN_MARKS = 10_000  # keys looked at per SCAN for marks alone
TICK_SECONDS = 0.001  # seconds after each tick, so that others go ahead
REST = 4.0  # times what a tick took, where that is longer: four fifths of the time are others', however busy it is
RETRY_SECONDS = 0.5  # until the next attempt, where a slot was moving or Redis refused


@dataclass(slots=True)
class DropProgress:
    """Documents of a corpus that this worker removes."""

    documents: int = 0
    removed: int = 0


class Dropped:
    def __init__(self, runtime: Runtime, hide: Callable[[str, set[str]], None]) -> None:
        """`hide` takes a corpus and its marked buckets out of the index."""
        self._runtime = runtime
        self._hide = hide
        self._marks: dict[str, set[str]] = {}  # corpus -> buckets
        self._progress: dict[str, DropProgress] = {}
        self._task: asyncio.Task[None] | None = None

    def covers(self, corpus: str, bucket: str) -> bool:
        marks = self._marks.get(corpus)
        return marks is not None and bucket in marks

    def progress(self, corpus: str) -> DropProgress | None:
        """Returns how far the drop is; None where nothing is left to remove."""
        return self._progress.setdefault(corpus, DropProgress()) if corpus in self._marks else None

    def corpora(self) -> list[str]:
        return sorted(self._marks)

    async def mark(self, corpus: str, buckets: Sequence[str], documents: dict[str, int]) -> None:
        """Hides the buckets for good; returns once that outlives this process. `documents` are counts by bucket.

        Where memory is full this process alone holds the marks: removing is what helps. Raises ResponseError where
        Redis removes nothing either (the disk fails, replicas are missing): then nothing is hidden.
        """
        new = [bucket for bucket in buckets if not self.covers(corpus, bucket)]
        commands = [("SET", keys.drop(corpus, bucket), documents.get(bucket, 0)) for bucket in new]
        replies = await self._runtime.calls(commands)
        for reply in replies:
            if transient.is_write_refusal(reply) and not str(reply).startswith("OOM"):
                raise reply
        self._cover(corpus, new)
        self._progress.setdefault(corpus, DropProgress()).documents += sum(documents.get(bucket, 0) for bucket in new)
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(reply, Exception) and not transient.is_write_refusal(reply):
                self._runtime.log(f"{command[1]!r} is not stored, and a restart forgets it: {reply}", "warning")
        self.go_on()

    def _cover(self, corpus: str, buckets: Iterable[str]) -> None:
        new = set(buckets) - self._marks.get(corpus, set())
        if new:
            self._marks.setdefault(corpus, set()).update(new)
            self._hide(corpus, self._marks[corpus])

    def _uncover(self, corpus: str, buckets: Iterable[str]) -> None:
        marks = self._marks.get(corpus, set())
        marks.difference_update(buckets)
        if not marks:
            self._marks.pop(corpus, None)
            self._progress.pop(corpus, None)

    # ---- following the keys

    async def changed(self, events: Sequence[KeyEvent]) -> None:
        for event in events:
            try:
                corpus, bucket = keys.parse_mark("drop", event.key)
            except BadKey as error:
                self._runtime.log(f"left alone: {error}", "warning")
                continue
            if event.type == "none":
                self._uncover(corpus, [bucket])
            else:
                self._cover(corpus, [bucket])
        self.go_on()

    async def load(self) -> None:
        """Reads all marks of the keyspace. Raises ResponseError."""
        marks: dict[str, set[str]] = {}
        async for page in keyspace.names(self._runtime, PREFIX + "*", SCAN_MARKS):
            for name in page:
                with suppress(BadKey):
                    corpus, bucket = keys.parse_mark("drop", name)
                    marks.setdefault(corpus, set()).add(bucket)
        for corpus in [corpus for corpus in self._marks if corpus not in marks]:
            self._uncover(corpus, set(self._marks[corpus]))
        for corpus, buckets in marks.items():
            self._cover(corpus, buckets)

    # ---- removing

    def go_on(self) -> None:
        """Removes what is marked, on a master."""
        if self._marks and self._runtime.role() == "master" and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._remove_all())

    async def _remove_all(self) -> None:
        while self._marks and self._runtime.role() == "master":
            is_done = True
            for corpus in self.corpora():
                try:
                    is_done &= await self._remove(corpus, set(self._marks.get(corpus, ())))
                except ResponseError as error:
                    self._runtime.log(f"corpus {corpus!r} can't be removed yet: {error}", "verbose")
                    is_done = False
            if not is_done:
                await asyncio.sleep(RETRY_SECONDS)

    async def _remove(self, corpus: str, buckets: set[str]) -> bool:
        """Walks over the keyspace once; returns whether all keys of the buckets are gone, and then their marks.

        Raises ResponseError.
        """
        cursor, is_complete = b"0", True
        while True:
            async with _rest():
                cursor, names = await self._runtime.call("SCAN", cursor, "MATCH", f"*:{corpus}:*", "COUNT", SCAN_COUNT)
            for first in range(0, len(names), SLICE):
                async with _rest():
                    is_complete &= await self._unlink(corpus, buckets, names[first : first + SLICE])
            if cursor == b"0":
                break
        here = await slots.look(self._runtime)
        empty = [bucket for bucket in sorted(buckets) if here.holds(keys.drop(corpus, bucket))]
        if not is_complete or not empty:
            return False
        await self._runtime.calls([("UNLINK", keys.drop(corpus, bucket)) for bucket in empty])
        self._uncover(corpus, empty)
        return len(empty) == len(buckets)

    async def _unlink(self, corpus: str, buckets: set[str], names: Sequence[bytes]) -> bool:
        """Removes these keys; returns whether Redis took all commands."""
        by_bucket: dict[str, list[bytes]] = {}
        documents = 0
        for name in names:
            word, of, rest = (*name.split(b":", 2), b"", b"")[:3]
            bucket = rest[1:6].decode("ascii", "replace")
            if word.decode("ascii", "replace") in WORDS and of == corpus.encode() and bucket in buckets:
                by_bucket.setdefault(bucket, []).append(name)
                documents += word == b"doc"
        commands: list[tuple[Argument, ...]] = [("UNLINK", *names) for names in by_bucket.values()]
        replies = await self._runtime.calls(commands) if commands else []
        if (progress := self._progress.get(corpus)) is not None:
            progress.removed += documents
        return not any(isinstance(reply, Exception) for reply in replies)


@asynccontextmanager
async def _rest() -> AsyncIterator[None]:
    """Lets others go ahead after each piece of work that is done inside."""
    start = monotonic()
    yield
    await asyncio.sleep(max(TICK_SECONDS, REST * (monotonic() - start)))
