"""Documents into the cluster: a bounded stream from files to shards, with retries and an account of every document.

One thread reads files (parsing is CPU work); the loop's tasks put documents. What is in memory at once is bounded by
the queue and the tasks. Running it again resumes: a shard that has the same text already says so and does no work.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from time import monotonic
from typing import Protocol, TypeAlias

from shardqa.engine import Engine
from shardqa.errors import AnswerTimeout, BadDocument, BadDocumentId, DocumentTooLarge, IdTaken
from shardqa.loader.retry import retry
from shardqa.loader.source_file import Item, Lost, Skipped, Textless
from shardqa.loader.tasks import run_all
from shardqa.schema import Document, Ingested

PER_SHARD = 4  # documents in flight for each master: one is indexed, one tokenised, two travel
PATIENCE = 120.0  # seconds for a shard that fails over or whose slots move
# More of it for each 10^6 bytes of a text: a shard splits and indexes that in about 3 s of one core, here with three
# others beside it and half a machine. A shard goes on beyond its own deadline, and one of the retries finds it done.
PATIENCE_PER_MEGABYTE = 20.0
LATE_IN_A_ROW = 16  # documents out of patience with none put in between: then it is the shard that hangs, not they
REASONS_KEPT = 1000  # skipped documents told one by one; beyond, they are only counted
FAULTS_OF_A_DOCUMENT = (BadDocument, BadDocumentId, DocumentTooLarge, IdTaken)


class Source(Protocol):
    """A source of documents; `files.SourceFiles` is one."""

    total: int

    def done(self) -> int: ...

    def __iter__(self) -> Iterator[Item]: ...


@dataclass(slots=True)
class Summary:
    documents: int = 0  # written
    unchanged: int = 0  # there already with the same text
    skipped: int = 0
    removed: int = 0  # documents whose files have gone
    lost: int = 0  # parts of documents that could not be read; the rest of them was taken
    textless: dict[str, int] = field(default_factory=dict)  # files that hold no text to lose, by kind: {"pictures": 12}
    passages: int = 0
    characters: int = 0  # of documents written and unchanged
    bytes: int = 0  # UTF-8 bytes of the same
    bytes_written: int = 0  # of documents written alone
    stored: int = 0  # bytes of the source whose documents are all in: never more than was read
    seconds: float = 0.0
    reasons: list[Skipped] = field(default_factory=list)  # the first REASONS_KEPT skipped
    losses: list[Lost] = field(default_factory=list)  # the first REASONS_KEPT lost

    def skip(self, skipped: Skipped) -> None:
        self.skipped += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(skipped)

    def lose(self, lost: Lost) -> None:
        self.lost += 1
        if len(self.losses) < REASONS_KEPT:
            self.losses.append(lost)

    @property
    def mb_per_minute(self) -> float:
        """Text written, 10^6 bytes per minute; what was there already only had to be compared."""
        return self.bytes_written / 1e6 / (self.seconds / 60) if self.seconds else 0.0


Progress = Callable[[Summary], None]
_Queue: TypeAlias = "asyncio.Queue[tuple[int, Document] | None]"


async def ingest(
    engine: Engine,
    source: Source,
    corpus: str,
    progress: Progress = lambda summary: None,
    replace: bool = False,
    refused: Callable[[str], None] = lambda id_: None,
) -> Summary:
    """Puts every document of `source` into `corpus`; `progress` is called after each, `refused` with ids not taken.

    One of the same id that came from elsewhere stays, and its rival is skipped, unless `replace` is given.

    One that a shard does not finish in time is skipped, too; the shard goes on with what it has begun.

    Raises BadCorpusName, ClusterUnavailable, AnswerTimeout (after LATE_IN_A_ROW such documents) and other faults that
    are not one document's; what was put stays put, and running it again goes on from there.
    """
    run = _Run(engine, corpus, progress, replace, refused)
    tasks = max(len(engine.shards.nodes()), 1) * PER_SHARD
    queue: _Queue = asyncio.Queue(maxsize=tasks)
    await run_all([*(run.put_all(queue, source) for _ in range(tasks)), run.read_all(source, queue, tasks)])
    run.summary.seconds = monotonic() - run.started
    return run.summary


class _Run:
    """One call of `ingest`; all its parts run in one loop."""

    def __init__(
        self, engine: Engine, corpus: str, progress: Progress, replace: bool, refused: Callable[[str], None]
    ) -> None:
        self._refused = refused
        self._engine = engine
        self._corpus = corpus
        self._progress = progress
        self._replace = replace
        self._under_way: dict[int, int] = {}  # number of a document in the source -> bytes of the source before it
        self._sources: dict[bytes, str] = {}  # digest of an id -> where it was met first
        self._late = 0  # documents out of patience since one was put
        self.summary = Summary()
        self.started = monotonic()

    async def read_all(self, source: Source, queue: "_Queue", readers: int) -> None:
        items = iter(source)
        number = before = 0
        while (item := await asyncio.to_thread(next, items, None)) is not None:
            if isinstance(item, Skipped):
                self.summary.skip(item)
            elif isinstance(item, Lost):
                self.summary.lose(item)
            elif isinstance(item, Textless):
                self.summary.textless[item.kind] = self.summary.textless.get(item.kind, 0) + 1
            elif (first := self._met_before(item)) is not None:
                self._refused(item.id)
                self.summary.skip(Skipped(item.source, f"the id {item.id!r} was met before, in {first}"))
            else:
                number += 1
                self._under_way[number] = before
                await queue.put((number, item))
            before = source.done()
            self._tell_stored(before)
        for _ in range(readers):
            await queue.put(None)

    def _tell_stored(self, read: int) -> None:
        """The source is stored up to where the first document under way begins."""
        self.summary.stored = next(iter(self._under_way.values()), read)

    def _met_before(self, document: Document) -> str | None:
        digest = blake2b(document.id.encode(errors="surrogatepass"), digest_size=12).digest()
        if digest in self._sources:
            return self._sources[digest]
        self._sources[digest] = document.source
        return None

    async def put_all(self, queue: "_Queue", source: Source) -> None:
        while (taken := await queue.get()) is not None:
            number, document = taken
            await self._put(document)
            del self._under_way[number]
            self._tell_stored(source.done())
            self.summary.seconds = monotonic() - self.started
            self._progress(self.summary)

    async def _put(self, document: Document) -> None:
        document = document.model_copy(update={"corpus": self._corpus})
        size = len(document.text.encode(errors="surrogatepass"))  # lone surrogates are the engine's to refuse
        patience = PATIENCE + size / 1e6 * PATIENCE_PER_MEGABYTE
        late = False  # a try ran out of time: the shard went on, and what a later try finds there is of this run

        async def put() -> Ingested:
            nonlocal late
            try:
                return await self._engine.documents.put(document, self._replace)
            except AnswerTimeout:
                late = True
                raise

        try:
            done = await retry(put, patience)
        except FAULTS_OF_A_DOCUMENT as fault:
            self._refused(document.id)
            self.summary.skip(Skipped(document.source or document.id, str(fault)))
            return
        except AnswerTimeout as fault:
            self._late += 1
            self._refused(document.id)
            if self._late >= LATE_IN_A_ROW:
                raise
            reason = f"{fault}; what a shard has begun it finishes, so run the ingest again"
            self.summary.skip(Skipped(document.source or document.id, reason))
            return
        self._late = 0
        if done.changed or late:
            self.summary.documents += 1
            self.summary.bytes_written += size
        else:
            self.summary.unchanged += 1
        self.summary.passages += done.passages
        self.summary.characters += done.characters
        self.summary.bytes += size
