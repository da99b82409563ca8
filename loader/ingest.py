"""Documents into the cluster: a bounded stream from files to shards, with retries and an account of every document.

One thread reads files (parsing is CPU work); the loop's tasks put documents. What is in memory at once is bounded by
the queue and the tasks. Running it again resumes: a shard that has the same text already says so and does no work.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from time import monotonic
from typing import Protocol

from shardqa.answer import Document
from shardqa.engine import Engine
from shardqa.errors import BadDocument, BadDocumentId, DocumentTooLarge
from shardqa.loader.opened import Item, Skipped
from shardqa.loader.patience import patiently
from shardqa.loader.together import together

PER_SHARD = 4  # documents in flight for each master: one is indexed, one tokenised, two travel
PATIENCE = 120.0  # seconds for a shard that fails over or whose slots move
REASONS_KEPT = 1000  # skipped documents told one by one; beyond, they are only counted
FAULTS_OF_A_DOCUMENT = (BadDocument, BadDocumentId, DocumentTooLarge)


class Source(Protocol):
    """Where documents come from; `files.Reading` is one."""

    total: int

    def done(self) -> int: ...

    def __iter__(self) -> Iterator[Item]: ...


@dataclass(slots=True)
class Summary:
    documents: int = 0  # written
    unchanged: int = 0  # there already with the same text
    skipped: int = 0
    passages: int = 0
    characters: int = 0  # of documents written and unchanged
    bytes: int = 0  # UTF-8 bytes of the same
    seconds: float = 0.0
    reasons: list[Skipped] = field(default_factory=list)  # the first REASONS_KEPT skipped

    def skip(self, skipped: Skipped) -> None:
        self.skipped += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(skipped)

    @property
    def mb_per_minute(self) -> float:
        """Text taken in, 10^6 bytes per minute."""
        return self.bytes / 1e6 / (self.seconds / 60) if self.seconds else 0.0


Progress = Callable[[Summary], None]


async def ingest(engine: Engine, source: Source, corpus: str, progress: Progress = lambda summary: None) -> Summary:
    """Puts every document of `source` into `corpus`; `progress` is called after each.

    Raises BadCorpusName, ClusterUnavailable and other faults that are not one document's; what was put stays put,
    and running it again goes on from there.
    """
    run = _Run(engine, corpus, progress)
    tasks = max(len(engine.masters.nodes()), 1) * PER_SHARD
    queue: asyncio.Queue[Document | None] = asyncio.Queue(maxsize=tasks)
    await together([*(run.put_all(queue) for _ in range(tasks)), run.read_all(source, queue, tasks)])
    run.summary.seconds = monotonic() - run.started
    return run.summary


class _Run:
    """One call of `ingest`; all its parts run in one loop."""

    def __init__(self, engine: Engine, corpus: str, progress: Progress) -> None:
        self._engine = engine
        self._corpus = corpus
        self._progress = progress
        self._met: dict[bytes, str] = {}  # digest of an id -> where it was met first
        self.summary = Summary()
        self.started = monotonic()

    async def read_all(self, source: Source, queue: "asyncio.Queue[Document | None]", readers: int) -> None:
        items = iter(source)
        while (item := await asyncio.to_thread(next, items, None)) is not None:
            if isinstance(item, Skipped):
                self.summary.skip(item)
            elif (first := self._met_before(item)) is not None:
                self.summary.skip(Skipped(item.source, f"the id {item.id!r} was met before, in {first}"))
            else:
                await queue.put(item)
        for _ in range(readers):
            await queue.put(None)

    def _met_before(self, document: Document) -> str | None:
        digest = blake2b(document.id.encode(errors="surrogatepass"), digest_size=12).digest()
        if digest in self._met:
            return self._met[digest]
        self._met[digest] = document.source
        return None

    async def put_all(self, queue: "asyncio.Queue[Document | None]") -> None:
        while (document := await queue.get()) is not None:
            await self._put(document)
            self.summary.seconds = monotonic() - self.started
            self._progress(self.summary)

    async def _put(self, document: Document) -> None:
        document = document.model_copy(update={"corpus": self._corpus})
        try:
            done = await patiently(lambda: self._engine.put(document), PATIENCE)
        except FAULTS_OF_A_DOCUMENT as fault:
            self.summary.skip(Skipped(document.source or document.id, str(fault)))
            return
        if done.changed:
            self.summary.documents += 1
        else:
            self.summary.unchanged += 1
        self.summary.passages += done.passages
        self.summary.characters += done.characters
        self.summary.bytes += len(document.text.encode())
