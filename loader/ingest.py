"""Documents into the cluster: a bounded stream from files to shards, with retries and an account of every document.

One thread reads files (parsing is CPU work); the loop's tasks put documents. What is in memory at once is bounded by
the queue and the tasks. Running it again resumes: a shard that has the same text already says so and does no work.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from time import monotonic
from typing import Any, Protocol, TypeAlias

from shardqa.engine import Engine
from shardqa.engine.together import SMALL_DOCUMENT
from shardqa.errors import AnswerTimeout, BadDocument, BadDocumentId, DocumentTooLarge, IdTaken, ShardqaError
from shardqa.files.source_file import Item, Skipped
from shardqa.loader.summary import Summary, bytes_of
from shardqa.loader.tasks import run_all
from shardqa.retry import retry
from shardqa.schema import Document, Ingested

PER_SHARD = 4  # documents in flight for each master: one is indexed, one tokenised, two travel
FAILOVER_SECONDS = 120.0  # seconds for a shard that fails over or whose slots move
# More of it for each 10^6 bytes of a text: a shard splits and indexes that in about 3 s of one core, here with three
# others beside it and half a machine. A shard goes on beyond its own deadline, and one of the retries finds it done.
SECONDS_PER_MEGABYTE = 20.0
LATE_IN_A_ROW = 16  # documents out of patience with none put in between: then it is the shard that hangs, not they
ENDING_SECONDS = 30.0  # for what is on its way when the run ends
MOMENT_ITEMS = 512  # items that go on together
MOMENT_CHARACTERS = 262_144  # of their texts, or one document's more
MOMENT_SECONDS = 0.1  # seconds after which what is read goes on
FAULTS_OF_A_DOCUMENT = (BadDocument, BadDocumentId, DocumentTooLarge, IdTaken)

Progress = Callable[[Summary], None]
_Numbered: TypeAlias = tuple[int, Document]
_Queue: TypeAlias = asyncio.Queue[list[_Numbered] | None]


class Source(Protocol):
    """A source of documents; `files.SourceFiles` is one."""

    total: int

    def done(self) -> int: ...

    def __iter__(self) -> Iterator[Item]: ...


class Moments:
    """The items of a source, those of a moment at a time: a turn of a thread for each row would cost more than the row.

    Each call may be made by another thread.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._items = iter(source)
        self._fault: Exception | None = None  # of the source, told once the items before it are

    def next(self) -> list[tuple[Item, int]]:
        """Returns a moment's items, each with the bytes read so far; none at the end. Raises what the source raises."""
        if self._fault is not None:
            raise self._fault
        some, size, end = list[tuple[Item, int]](), 0, monotonic() + MOMENT_SECONDS
        try:
            for item in self._items:
                some.append((item, self._source.done()))
                size += len(item.text) if isinstance(item, Document) else 0
                if len(some) == MOMENT_ITEMS or size > MOMENT_CHARACTERS or monotonic() > end:
                    break
        except Exception as fault:
            if not some:
                raise
            self._fault = fault
        return some


async def ingest(
    engine: Engine,
    source: Source,
    corpus: str,
    progress: Progress = lambda summary: None,
    replace: bool = False,
    tell: Callable[[Document, bool], None] = lambda document, is_in: None,
) -> Summary:
    """Puts every document of `source` into `corpus`; calls `progress` after each, `tell` with each and if it is in.

    One of the same id that came from elsewhere stays, and its rival is skipped, unless `replace` is given.

    One that a shard does not finish in time is skipped, too; the shard goes on with what it has begun.

    Raises BadCorpusName, ClusterUnavailable, AnswerTimeout (after LATE_IN_A_ROW such documents) and other faults that
    are not one document's; what was put stays put, and running it again goes on from there.
    """
    run = _Run(engine, corpus, progress, replace, tell)
    tasks = max(len(engine.shards.nodes()), 1) * PER_SHARD
    queue: _Queue = asyncio.Queue(maxsize=tasks)
    await run_all([*(run.put_all(queue, source) for _ in range(tasks)), run.read_all(source, queue, tasks)])
    run.summary.seconds = monotonic() - run.started
    return run.summary


@dataclass
class _Run:
    """One call of `ingest`; all its parts run in one loop."""

    _engine: Engine
    _corpus: str
    _progress: Progress
    _replace: bool
    _tell: Callable[[Document, bool], None]
    _under_way: dict[int, int] = field(default_factory=dict)  # number of a document -> bytes of the source before it
    _sources: dict[bytes, str] = field(default_factory=dict)  # digest of an id -> where it was met first
    _late = 0  # documents out of patience since one was put
    summary: Summary = field(default_factory=Summary)
    started: float = field(default_factory=monotonic)

    async def read_all(self, source: Source, queue: _Queue, readers: int) -> None:
        """Reads the files: small documents that come within a moment go on together, a large one alone."""
        items = Moments(source)
        number = before = 0
        while some := await asyncio.to_thread(items.next):
            small = list[_Numbered]()
            for item, read in some:
                if isinstance(item, Document) and self._is_new(item):
                    number += 1
                    self._under_way[number] = before
                    if len(item.text) <= SMALL_DOCUMENT:
                        small.append((number, item.model_copy(update={"corpus": self._corpus})))
                    else:
                        await queue.put([(number, item.model_copy(update={"corpus": self._corpus}))])
                elif not isinstance(item, Document):
                    self.summary.note(item)
                before = read
            if small:
                await queue.put(small)
            self._tell_stored(before)
        for _ in range(readers):
            await queue.put(None)

    def _is_new(self, document: Document) -> bool:
        digest = blake2b(document.id.encode(errors="surrogatepass"), digest_size=12).digest()
        if digest in self._sources:
            self._tell(document, False)
            reason = f"the id {document.id!r} was met before, in {self._sources[digest]}"
            self.summary.note(Skipped(document.source, reason))
            return False
        self._sources[digest] = document.source
        return True

    def _tell_stored(self, read: int) -> None:
        """Tells the source how far it is stored: to the beginning of the first document under way."""
        self.summary.stored = next(iter(self._under_way.values()), read)

    async def put_all(self, queue: _Queue, source: Source) -> None:
        while (batch := await queue.get()) is not None:
            await _to_its_end(self._put_some(batch, source))

    async def _put_some(self, batch: list[_Numbered], source: Source) -> None:
        documents = [document for _, document in batch]
        outcomes: list[Ingested | ShardqaError | None] = [None]
        if len(documents) > 1:
            outcomes = await self._engine.together.put_together(documents, self._replace)
        for document, outcome in zip(documents, outcomes, strict=True):
            if isinstance(outcome, Ingested):
                self._count(document, outcome)
        self._progress(self.summary)  # one of the others may end the run
        for document, outcome in zip(documents, outcomes, strict=True):
            if not isinstance(outcome, Ingested):
                await self._put(document, late=isinstance(outcome, AnswerTimeout))
        for number, _ in batch:
            del self._under_way[number]
        self._tell_stored(source.done())
        self.summary.seconds = monotonic() - self.started
        self._progress(self.summary)

    async def _put(self, document: Document, late: bool) -> None:
        """Puts a document. After a try that ran out of time (`late`) what a next one finds there is of this run."""
        patience = FAILOVER_SECONDS + bytes_of(document) / 1e6 * SECONDS_PER_MEGABYTE

        async def put() -> Ingested:
            nonlocal late
            try:
                return await self._engine.documents.put(document, self._replace)
            except AnswerTimeout:
                late = True
                raise

        try:
            outcome = await retry(put, patience)
        except FAULTS_OF_A_DOCUMENT as fault:
            self._tell(document, False)
            self.summary.note(Skipped(document.source or document.id, str(fault)))
            return
        except AnswerTimeout as fault:
            self._late += 1
            self._tell(document, False)
            if self._late >= LATE_IN_A_ROW:
                raise
            reason = f"{fault}; what a shard has begun it finishes, so run the ingest again"
            self.summary.note(Skipped(document.source or document.id, reason))
            return
        self._count(document, outcome, late)

    def _count(self, document: Document, outcome: Ingested, late: bool = False) -> None:
        self._late = 0
        self.summary.count(document, outcome, late)
        self._tell(document, True)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Awaits it, also where the run ends meanwhile: what is on its way to a shard arrives, and is to be counted."""
    task, end = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancelled:
            asyncio.get_running_loop().call_later(ENDING_SECONDS, task.cancel)
            end = cancelled
    if end is not None:
        if not task.cancelled():
            task.exception()  # the run ends by another's
        raise end
    task.result()
