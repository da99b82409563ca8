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
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from redis import RedisError

from shardqa import keys
from shardqa.errors import BadData, ClusterUnavailable, ShardqaError
from shardqa.gears_functions import arguments, permissions
from shardqa.transient import is_transient

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.ingest import Ingest
    from shardqa.gears_functions.shard.state import ShardState

QUIET = 0.02  # seconds without a question after which the next document is done
PATIENCE = 0.2  # seconds after which it is done all the same
TRIES, PAUSE = 50, 0.2  # for what Redis refuses for now, and seconds between two
SHOWN = 5  # reasons of failures that are told
USAGE = "Retokenise <corpus> <begin or look>"


@dataclass(slots=True)
class RetokenisedPart:
    """What this shard has done of a run."""

    run: str  # its name: where and when it began
    done: int = 0
    changed: int = 0  # of them
    failed: int = 0
    errors: list[str] = field(default_factory=list)  # the first reasons


class Retokenise:
    def __init__(self, shard: ShardState, ingest: Ingest, builder: Callable[..., Any]) -> None:
        self._shard = shard
        self._ingest = ingest
        self._builder = builder
        self._parts: dict[str, RetokenisedPart] = {}  # by corpus: of its last run
        self._running: dict[str, asyncio.Task[None]] = {}  # by corpus: of runs that began here

    def serve(self) -> None:
        """From now on this is what `again` finds on this shard."""
        global _here
        _here = self

    async def retokenise(self, record: Record) -> str:
        corpus, wanted = arguments.words(record, USAGE, 2, 2)
        keys.check_corpus(corpus)
        await permissions.to_write(self._shard.runtime, keys.doc(corpus, "document"))
        if wanted not in ("begin", "look"):
            raise BadData(f"{wanted[:40]!r} is neither begin nor look; the form is RG.TRIGGER {USAGE}")
        await self._shard.synced()
        if wanted == "begin" and not self._is_running(corpus):
            self._begin(corpus)
        return self._told(corpus)

    def _is_running(self, corpus: str) -> bool:
        task = self._running.get(corpus)
        return task is not None and not task.done()

    def _begin(self, corpus: str) -> None:
        run = f"{self._shard.runtime.hashtag()}-{time.time_ns()}"
        self._parts[corpus] = RetokenisedPart(run)
        plan = self._builder("KeysOnlyReader").foreach(partial(again, corpus, run)).count()
        going = plan.run(keys.every_doc(corpus), collect=False)
        self._running[corpus] = asyncio.create_task(self._end(corpus, run, going))

    async def _end(self, corpus: str, run: str, going: Any) -> None:
        """A shard that was lost is an error of the run, and a failure here."""
        _, errors = await going
        part = self._part(corpus, run)
        part.failed += len(errors)
        part.errors += errors[: SHOWN - len(part.errors)]
        self._shard.runtime.log(f"corpus {corpus!r} was cut anew ({run})")

    def _told(self, corpus: str) -> str:
        part = self._parts.get(corpus, RetokenisedPart(""))
        told = {"documents": self._shard.index(corpus).documents, "running": self._is_running(corpus), **asdict(part)}
        return orjson.dumps({"tag": self._shard.runtime.hashtag(), **told}).decode()

    def _part(self, corpus: str, run: str) -> RetokenisedPart:
        part = self._parts.get(corpus)
        if part is None or part.run != run:
            part = self._parts[corpus] = RetokenisedPart(run)
        return part

    # ---- one document

    async def one(self, record: Record) -> str:
        (key,) = arguments.words(record, "RetokeniseOne <doc key>", 1, 1)
        keys.parse_doc(key)
        await permissions.to_write(self._shard.runtime, key)
        return orjson.dumps({"changed": await self._ingest.again(key)}).decode()

    async def next(self, corpus: str, run: str, key: str | bytes) -> None:
        """One of a run; whatever it meets is told by the part."""
        part = self._part(corpus, run)
        await self._shard.questions.quiet(QUIET, PATIENCE)
        try:
            part.changed += await self._sure(key)
        except (RedisError, ShardqaError) as error:
            part.failed += 1
            if len(part.errors) < SHOWN:
                part.errors.append(f"{str(key)[:120]}: {error}")
        part.done += 1

    async def _sure(self, key: str | bytes) -> bool:
        """Tried again while its slot is on its way."""
        if isinstance(key, bytes):
            raise BadData("its name is not UTF-8; it is no document")
        for _ in range(TRIES):
            try:
                return await self._where_it_is(key)
            except RedisError as error:
                if not is_transient(error):
                    raise
            await asyncio.sleep(PAUSE)
        raise ClusterUnavailable(f"its slot did not settle within {TRIES * PAUSE:.0f} s; run it again")

    async def _where_it_is(self, key: str) -> bool:
        if self._shard.runtime.owns(key):
            return await self._ingest.again(key)
        reply = await self._shard.runtime.on_owner(key, "RG.TRIGGERONKEY", "RetokeniseOne", key)
        return bool(orjson.loads(reply[0])["changed"])


_here: Retokenise | None = None  # of this worker: what a run sends to other shards must find theirs


async def again(corpus: str, run: str, key: str | bytes) -> None:
    """A step of the run; it travels by its name."""
    if _here is None:
        raise ClusterUnavailable("this shard has no functions yet; run 'shardqa prepare'")
    await _here.next(corpus, run, key)
