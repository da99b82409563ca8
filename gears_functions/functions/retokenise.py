"""Cuts the documents of a corpus into passages and word pieces anew, across the cluster, while questions go on.

    RG.TRIGGER Retokenise <corpus> begin     starts it from this shard, unless it runs from here already
    RG.TRIGGER Retokenise <corpus> look      how far this shard's part is
    RG.TRIGGERONKEY RetokeniseOne <doc key>  one document

A batch execution: every shard reads the names of its documents and does one after another, each when nobody has asked
anything for a moment. What comes out as it is stored already is left alone, so answers of unchanged documents stay and
a second run is cheap; the rest is swapped in one tick, or as ingest does it where it is big. While slots move each
document is still done once: one that has gone to another shard is done there. The worker's loop only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from redis import RedisError

from shardqa import keys
from shardqa.errors import BadData, ClusterUnavailable, ShardqaError
from shardqa.gears_functions import arguments, document_hash, permissions
from shardqa.gears_functions.shard.document_writer import FRAME
from shardqa.transient import is_transient

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.document_hash import Stored
    from shardqa.gears_functions.runtime import Argument, Runtime
    from shardqa.gears_functions.shard.document_lock import DocumentLock
    from shardqa.gears_functions.shard.document_writer import DocumentWriter
    from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
    from shardqa.gears_functions.shard.questions import ActiveQuestions
    from shardqa.gears_functions.splitting import Passage

QUIET = 0.02  # seconds without a question after which the next document is done
PATIENCE = 0.2  # seconds after which it is done all the same
TRIES, PAUSE = 50, 0.2  # for what Redis refuses for now, and seconds between two
SHOWN = 5  # reasons of failures that a reply names
USAGE = "Retokenise <corpus> <begin or look>"


@dataclass(slots=True)
class RetokenisedPart:
    """A run's progress on this shard."""

    run: str  # its name: where and when it began
    done: int = 0
    changed: int = 0  # of them
    failed: int = 0
    errors: list[str] = field(default_factory=list)  # the first reasons


class Retokenise:
    def __init__(
        self,
        runtime: Runtime,
        sync: KeyspaceSync,
        lock: DocumentLock,
        writer: DocumentWriter,
        questions: ActiveQuestions,
        builder: Callable[..., Any],
    ) -> None:
        self._runtime = runtime
        self._sync = sync
        self._lock = lock
        self._writer = writer
        self._questions = questions
        self._builder = builder
        self._one_at_a_time = asyncio.Lock()  # documents of runs
        self._parts: dict[str, RetokenisedPart] = {}  # by corpus: of its last run
        self._running: dict[str, asyncio.Task[None]] = {}  # by corpus: of runs that began here

    def serve(self) -> None:
        """Makes this the one that `cut_anew` finds on this shard."""
        global _served
        _served = self

    async def retokenise(self, record: Record) -> str:
        corpus, verb = arguments.words(record, USAGE, 2, 2)
        keys.check_corpus(corpus)
        await permissions.to_write(self._runtime, keys.doc(corpus, "document"))
        if verb not in ("begin", "look"):
            raise BadData(f"{verb[:40]!r} is neither begin nor look; the form is RG.TRIGGER {USAGE}")
        await self._sync.synced()
        if verb == "begin" and not self._is_running(corpus):
            self._begin(corpus)
        return self._progress(corpus)

    def _is_running(self, corpus: str) -> bool:
        task = self._running.get(corpus)
        return task is not None and not task.done()

    def _begin(self, corpus: str) -> None:
        run = f"{self._runtime.hashtag()}-{time.time_ns()}"
        self._parts[corpus] = RetokenisedPart(run)
        plan = self._builder("KeysOnlyReader").foreach(partial(cut_anew, corpus, run)).count()
        execution = plan.run(keys.every_doc(corpus), collect=False)
        self._running[corpus] = asyncio.create_task(self._end(corpus, run, execution))

    async def _end(self, corpus: str, run: str, execution: Any) -> None:
        """Counts a shard that was lost as a failure."""
        _, errors = await execution
        part = self._part(corpus, run)
        part.failed += len(errors)
        part.errors += errors[: SHOWN - len(part.errors)]
        self._runtime.log(f"corpus {corpus!r} was cut anew ({run})")

    def _progress(self, corpus: str) -> str:
        part = self._parts.get(corpus, RetokenisedPart(""))
        documents, is_running = self._sync.index(corpus).documents, self._is_running(corpus)
        reply = {"documents": documents, "running": is_running, **asdict(part)}
        return orjson.dumps(reply).decode()

    def _part(self, corpus: str, run: str) -> RetokenisedPart:
        part = self._parts.get(corpus)
        if part is None or part.run != run:
            part = self._parts[corpus] = RetokenisedPart(run)
        return part

    # ---- one document

    async def one(self, record: Record) -> str:
        (key,) = arguments.words(record, "RetokeniseOne <doc key>", 1, 1)
        keys.parse_doc(key)
        await permissions.to_write(self._runtime, key)
        return orjson.dumps({"changed": await self._cut_anew(key)}).decode()

    async def next(self, corpus: str, run: str, key: str | bytes) -> None:
        """Cuts one document of a run anew; faults are counted."""
        async with self._one_at_a_time:
            part = self._part(corpus, run)
            await self._questions.quiet(QUIET, PATIENCE)
            try:
                part.changed += await self._try(key)
            except (RedisError, ShardqaError) as error:
                part.failed += 1
                if len(part.errors) < SHOWN:
                    part.errors.append(f"{str(key)[:120]}: {error}")
            part.done += 1

    async def _try(self, key: str | bytes) -> bool:
        """Tries again while its slot is on its way."""
        if isinstance(key, bytes):
            raise BadData("its name is not UTF-8; it is no document")
        for _ in range(TRIES):
            try:
                return await self._on_its_shard(key)
            except RedisError as error:
                if not is_transient(error):
                    raise
            await asyncio.sleep(PAUSE)
        raise ClusterUnavailable(f"its slot did not settle within {TRIES * PAUSE:.0f} s; run it again")

    async def _on_its_shard(self, key: str) -> bool:
        if self._runtime.owns(key):
            return await self._cut_anew(key)
        reply = await self._runtime.on_owner(key, "RG.TRIGGERONKEY", "RetokeniseOne", key)
        return bool(orjson.loads(reply[0])["changed"])

    async def _cut_anew(self, key: str) -> bool:
        """Returns whether the passages or word pieces were others than are stored."""
        async with self._lock.hold(key) as parsed:
            stored = await self._writer.stored(key)
            if stored is None or stored.text is None or self._sync.dropped.covers(parsed.corpus, parsed.tag):
                return False
            fields = document_hash.from_hash(key, stored.fields)
            if stored.passages is not None:
                passages = await self._writer.split(fields)
                if await self._is_as_stored(parsed, passages, stored):
                    return False
            await self._writer.put(key, parsed, fields, replace(stored, digest=""))
            return True

    async def _is_as_stored(self, parsed: keys.DocKey, passages: Sequence[Passage], stored: Stored) -> bool:
        if not stored.digest or stored.passages != len(passages):
            return False
        for first in range(0, len(passages), FRAME):
            frame = passages[first : first + FRAME]
            names = [(parsed.corpus, parsed.document, n) for n in range(first, first + len(frame))]
            commands: list[tuple[Argument, ...]] = []
            for name in names:
                commands.append(("HMGET", keys.passage(*name), "start", "end", "text"))
                commands.append(("AI.TENSORGET", keys.tokens(*name), "BLOB"))
            replies = await self._runtime.calls(commands)
            for reply in replies:
                if isinstance(reply, Exception) and is_transient(reply):
                    raise reply  # its slot is leaving: what has moved ahead is no difference
            for p, place, blob in zip(frame, replies[::2], replies[1::2], strict=True):
                if place != [str(p.start).encode(), str(p.end).encode(), p.text.encode()] or blob != p.ids.tobytes():
                    return False
        return True


_served: Retokenise | None = None  # of this worker: what a run sends to other shards must find theirs


async def cut_anew(corpus: str, run: str, key: str | bytes) -> None:
    """A step of the run; it travels by its name."""
    if _served is None:
        raise ClusterUnavailable("this shard has no functions yet; run 'shardqa prepare'")
    await _served.next(corpus, run, key)
