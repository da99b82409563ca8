"""An index per corpus, kept equal to its `passage:` keys by a watch of the keyspace and by scans.

Everything here runs in the worker's loop. Where events were lost the keyspace is scanned. Events of a document that a
function holds are left to it; passages that Redis does not let be read now are left to `retries`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from redis import ResponseError

from shardqa import keys, transient
from shardqa.errors import BadKey, Indexing, ShardFailed
from shardqa.gears_functions import documents
from shardqa.gears_functions.index.catalogue import OfDocument
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.runtime import write
from shardqa.gears_functions.shard import dropped, slots
from shardqa.gears_functions.shard.dropped import Dropped
from shardqa.gears_functions.shard.retries import ShardRetries
from shardqa.models.embedding import StoredVector

if TYPE_CHECKING:
    from shardqa.gears_functions.runtime import KeyEvent, Reply, Runtime
    from shardqa.gears_functions.shard.document_lock import HeldDocuments
    from shardqa.gears_functions.shard.epochs import ShardEpochs

PREFIX = "passage:"
DIGITS = 9  # of a size in bytes: any client may write the field
FIELDS = ("title", "text", "end", "bytes", "metadata", "vector")  # of a passage; size and metadata of its first only
AT_START = "start"  # reason of the resync that begins a session: epochs outlive the worker
PROMOTED = "promoted"  # reason of the resync of a replica that became master
PAGE = 64  # passages read in one tick and indexed before the loop serves others: about 10 ms
SCAN_COUNT = 1_000  # keys looked at per SCAN
CAUGHT_UP, CAUGHT_UP_PAUSE = 40, 0.005  # looks, and seconds between them: 0.2 s at most
RETRY_SECONDS = 0.5  # between attempts to read the keyspace while Redis refuses (loading, a failover)
WAIT_SECONDS = 2.0  # from the beginning of a scan that questions wait for its end: enough for 15,000 passages or so


class KeyspaceSync:
    def __init__(self, runtime: Runtime, epochs: ShardEpochs, held: HeldDocuments) -> None:
        self.corpora: dict[str, Index] = {}
        self._runtime = runtime
        self._epochs = epochs
        self._held = held
        self.retries = ShardRetries(runtime, epochs, self)
        self._synced = asyncio.Event()  # set while the index holds all that the keyspace does
        # The last scan's start; where Redis refuses it, it begins anew soon. None before the first.
        self._scanning_since: float | None = None
        self._settling: asyncio.Task[None] | None = None  # looks at all documents after a scan
        self._is_changing = False  # events are being brought in
        self.dropped = Dropped(runtime, self._hide)

    def follow(self, settle_all: Callable[[], Coroutine[None, None, None]]) -> None:
        """Starts to keep the index equal to the keyspace; after each scan a master's documents are settled."""
        self._settle_all = settle_all
        self._runtime.watch(PREFIX, self._changed, self._resync)
        self._runtime.watch(dropped.PREFIX, self.dropped.changed, self._pass_over)

    async def _pass_over(self, reason: str) -> None:
        """Marks of dropped corpora are read before the passages that they cover, in one order with them."""

    async def synced(self) -> None:
        """Waits until the index is whole: after a start, and after events were lost.

        Raises Indexing where that takes long: what is known of the other shards is worth more than waiting.
        """
        while not self._synced.is_set():
            scanning = 0.0 if self._scanning_since is None else time.monotonic() - self._scanning_since
            if scanning >= WAIT_SECONDS:
                raise Indexing(
                    f"this shard reads its passages into its index, {self._size():,} so far; ask again in a moment"
                )
            with suppress(TimeoutError):  # the scan may have begun anew meanwhile
                async with asyncio.timeout(WAIT_SECONDS - scanning):
                    await self._synced.wait()

    def index(self, corpus: str) -> Index:
        """The index of a corpus to ask; an empty one if the shard holds none of it."""
        found = self.corpora.get(corpus)
        return Index() if found is None else found

    def index_to_change(self, corpus: str) -> Index:
        return self.corpora.setdefault(corpus, Index())

    async def bring_in(self, names: set[str]) -> None:
        await self.retries.raise_epochs(await self.refresh(names))

    async def read_back(self, key: str, parsed: keys.DocKey, passed_over: set[str]) -> None:
        names = passed_over.union(self.index(parsed.corpus).passages_of(parsed.document))
        try:
            count = documents.count_of_passages(await self._runtime.call("HGET", key, "passages"))
            names |= {keys.passage(parsed.corpus, parsed.document, n) for n in range(count or 0)}
            await self.bring_in(names)
        except (ResponseError, ShardFailed) as error:
            self._runtime.log(f"passages of {key!r} can't be read back yet: {error}", "verbose")
            for name in names:
                self.retries.wait_for_slot(name)

    # ---- following the keyspace

    async def _changed(self, events: Sequence[KeyEvent]) -> None:
        self._is_changing = True
        try:
            changed = await self.refresh(dict.fromkeys(event.key for event in events))
        except ResponseError:
            await self._resync("overflow")  # the keyspace can't be read now: all of it is, once it can
            return
        finally:
            self._is_changing = False
        self.show_size()
        if self._runtime.role() != "master":
            self._epochs.forget()  # the master raises them, unseen here
        await self.retries.raise_epochs(changed)

    async def _resync(self, reason: str) -> None:
        if reason != PROMOTED:  # a replica's index is warm
            self._synced.clear()
        self._epochs.forget()
        before = set(self.corpora)
        start = time.perf_counter()
        while True:
            self._scanning_since = time.monotonic()
            try:
                self.retries.scan_begins((await slots.look(self._runtime)).moving)
                await self.dropped.load()
                changed = await self.scan()
                break
            except ResponseError as error:
                self._runtime.log(f"the index waits, the keyspace can't be read: {error}")
                await asyncio.sleep(RETRY_SECONDS)
        self._synced.set()
        self.retries.scan_ended()
        self.corpora = {corpus: index for corpus, index in self.corpora.items() if len(index)}
        passages = self.show_size()
        self._runtime.log(f"index: {passages} passages after '{reason}', {time.perf_counter() - start:.1f} s")
        if self._runtime.role() != "master":
            return
        if self._settling is not None:
            self._settling.cancel()
        self._settling = asyncio.create_task(self._settle_all())
        self.dropped.go_on()
        if reason != AT_START:
            await self._tell_changes(changed if reason == PROMOTED else set(self.corpora), before)

    def _size(self) -> int:
        """Passages in the index, of all corpora."""
        return sum(map(len, self.corpora.values()))

    def show_size(self) -> int:
        """The same, told to INFO: on a replica nothing else tells it."""
        passages = self._size()
        self._runtime.stat("passages", passages)
        return passages

    async def _tell_changes(self, changed: set[str], before: set[str]) -> None:
        """A corpus that is gone since `before` leaves no key, but is announced too: answers of it are remembered."""
        await self.retries.raise_epochs(changed.intersection(self.corpora))
        if gone := sorted(before.difference(self.corpora)):
            await write(self._runtime, [self._epochs.next(corpus)[2][-1] for corpus in gone])

    async def scan(self) -> set[str]:
        """Makes the index equal to the keyspace; returns the corpora this changed."""
        seen, changed, cursor = set[str](), set[str](), b"0"
        while True:
            cursor, found = await self._runtime.call("SCAN", cursor, "MATCH", PREFIX + "*", "COUNT", SCAN_COUNT)
            names = [name.decode("utf-8", "surrogateescape") for name in found]
            changed |= await self.refresh(names, held_too=True)
            seen.update(names)
            if cursor == b"0":
                break
        gone = [key for index in self.corpora.values() for key in index if key not in seen]
        return changed | await self.refresh(gone, held_too=True)

    async def refresh(self, names: Iterable[str], held_too: bool = False) -> set[str]:
        """Reads passages and makes the index hold just what is there; returns the corpora this changed.

        With `held_too` those of documents that a function holds as well: until it has written, what it replaces counts.
        Raises ResponseError where nothing can be read now; the index keeps what it had of the rest.
        """
        todo = [(name, corpus) for name in names if (corpus := self._corpus_of(name, held_too)) is not None]
        changed = set[str]()
        for first in range(0, len(todo), PAGE):
            page = todo[first : first + PAGE]
            replies = await self._runtime.calls([("HMGET", _raw(name), *FIELDS) for name, _ in page])
            _raise_what_passes(replies)
            # Nothing is awaited between the replies and the index: a later write's replies come later.
            changed.update(c for (n, c), reply in zip(page, replies, strict=True) if self._apply(n, c, reply))
        return changed

    def _corpus_of(self, name: str, held_too: bool) -> str | None:
        """The corpus of a passage's key; None when a function that holds its document sees to it, or it is not ours."""
        try:
            parsed = keys.parse_passage(name)
        except BadKey as error:
            self._runtime.log(str(error), "verbose")
            return None
        if self.dropped.covers(parsed.corpus, parsed.tag):
            return None
        is_held = self._held.passes_over(parsed, name)
        return None if is_held and not held_too else parsed.corpus

    def _apply(self, name: str, corpus: str, reply: Reply | Exception) -> bool:
        """Whether the index changed."""
        if isinstance(reply, Exception):
            if transient.is_between_shards(reply):
                self.retries.wait_for_slot(name)
            else:
                self._runtime.log(f"{name!r} can't be indexed: {reply}", "warning")
            return self.index(corpus).remove(name)
        if reply[1] is None:
            return self.index(corpus).remove(name)
        title, text = ((field or b"").decode("utf-8", "replace") for field in reply[:2])
        index = self.index_to_change(corpus)
        is_changed = index.put(name, title, text, int(reply[2] or 0), _of_document(*reply[3:5]))
        if reply[5] is not None and (vector := StoredVector.unpack(reply[5])) is not None:
            index.put_vector(name, vector)  # no change that answers are kept by: whoever encodes tells when it is done
        return is_changed

    async def caught_up(self) -> None:
        """Waits a moment for events that came before: they are queued, and brought in one batch after another."""
        for _ in range(CAUGHT_UP):
            await asyncio.sleep(0)
            if not self._is_changing:
                return
            await asyncio.sleep(CAUGHT_UP_PAUSE)

    def _hide(self, corpus: str, buckets: set[str]) -> None:
        """Takes these buckets out of the index, and with them the whole corpus where they are all it has."""
        index = self.index(corpus)
        if index.catalogue.buckets() <= buckets:
            self.corpora.pop(corpus, None)
        else:
            for name in index:
                if keys.parse_passage(name).tag in buckets:
                    index.remove(name)
        self.show_size()

    def forget(self, names: Iterable[str]) -> set[str]:
        """Passages whose slots went to another shard; returns the corpora that had any."""
        corpora = {name: keys.parse_passage(name).corpus for name in names}
        return {corpus for name, corpus in corpora.items() if self.index(corpus).remove(name)}


def _raise_what_passes(replies: Sequence[Reply | Exception]) -> None:
    """A refusal that has nothing to do with the key must not look like a missing passage."""
    for reply in replies:
        is_refused = isinstance(reply, ResponseError) and not transient.is_between_shards(reply)
        if is_refused and transient.is_transient(reply):
            raise reply


def _of_document(size: bytes | None, metadata: bytes | None) -> OfDocument | None:
    if size is None or not size.isdigit() or len(size) > DIGITS:
        return None
    return OfDocument(int(size), (metadata or b"").decode("utf-8", "replace"))


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
