"""An index per corpus, kept equal to its `passage:` keys by a watch of the keyspace and by scans.

Lives on masters and replicas, so that a failover finds a warm index; only masters write. Everything here runs in the
worker's loop. Where events were lost the keyspace is scanned. A function puts what it wrote into the index itself, and
events of a document that it holds are left to it; the watch brings in what came any other way (replication,
resharding, other writers), and then the master raises the epoch. Passages that Redis does not let be read now are left
to `retries`.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress

from redis import ResponseError

from shardqa import checks, keys, transient
from shardqa.errors import BadKey, Indexing, ShardFailed
from shardqa.gears_functions import document_hash, keyspace
from shardqa.gears_functions.index.catalogue import DocumentInfo
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.shard import dropped, slots
from shardqa.gears_functions.shard.dropped import Dropped
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.open_changes import OpenChanges
from shardqa.gears_functions.shard.retries import Settlement, ShardRetries
from shardqa.gears_functions.writes import write
from shardqa.models.embedding import StoredVectors
from shardqa.worker.runtime import KeyEvent, Reply, Runtime

PREFIX = "passage:"
DIGITS = 9  # of a size in bytes: any client may write the field
FIELDS = ("text", "end", "bytes", "metadata", "source", "vector", "path")  # bytes to source of a first passage only
MAX_TITLE = checks.BOUNDS["title"]  # characters that are read of what an older version stored
AT_START = "start"  # reason of the resync that begins a session: epochs outlive the worker
PROMOTED = "promoted"  # reason of the resync of a replica that became master
PASSAGES_PER_TICK = 64  # passages read in one tick and indexed before the loop serves others: about 10 ms
SCAN_COUNT = 1_000  # keys looked at per SCAN
CAUGHT_UP, CAUGHT_UP_PAUSE = 40, 0.005  # looks, and seconds between them: 0.2 s at most
RETRY_SECONDS = 0.5  # between attempts to read the keyspace while Redis refuses (loading, a failover)
WAIT_SECONDS = 2.0  # from the beginning of a scan that questions wait for its end: enough for 15,000 passages or so


class KeyspaceSync:
    def __init__(self, runtime: Runtime, epochs: ShardEpochs, changes: OpenChanges) -> None:
        self.corpora: dict[str, Index] = {}
        self._nothing = Index()
        self._runtime = runtime
        self._epochs = epochs
        self._changes = changes
        self._retries = ShardRetries(runtime, epochs, self._on_settlement, lambda: self.corpora)
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
        """Does nothing: marks of dropped corpora are read in one order with passages, before those they cover."""

    async def synced(self) -> None:
        """Waits until the index is whole: after a start, and after events were lost.

        Raises Indexing where that takes long: what is known of the other shards is worth more than waiting.
        """
        while not self._synced.is_set():
            scanning = 0.0 if self._scanning_since is None else time.monotonic() - self._scanning_since
            if scanning >= WAIT_SECONDS:
                raise Indexing(f"this shard reads its passages into its index, {self._size():,} so far; ask again soon")
            with suppress(TimeoutError):  # the scan may have begun anew meanwhile
                async with asyncio.timeout(WAIT_SECONDS - scanning):
                    await self._synced.wait()

    def index(self, corpus: str) -> Index:
        """Returns the index of a corpus; an empty one where the shard holds none of it."""
        return self.corpora.get(corpus, self._nothing)

    def index_to_change(self, corpus: str) -> Index:
        if corpus not in self.corpora:
            self.corpora[corpus] = Index()
        return self.corpora[corpus]

    async def epoch(self, corpus: str) -> int:
        """Returns the epoch of this shard's part of a corpus; 0 if it never held any of it."""
        epoch = await self._epochs.stored(corpus)
        if epoch == 0 and len(self.index(corpus)) and self._runtime.role() == "master":
            return await self._retries.first_epoch(corpus)  # slots moved here, and with them the tag
        return epoch

    async def changed(self, corpus: str) -> None:
        """Raises the epoch of a corpus after a change that no document's function made."""
        await self._retries.raise_epochs([corpus])

    async def settled(self) -> frozenset[str]:
        """Returns the buckets that this shard vouches for: their slots stay here, and the index holds all of them."""
        view = await slots.look(self._runtime)
        await self._caught_up()
        return frozenset(
            bucket
            for bucket, slot in slots.OF_BUCKETS.items()
            if view.serves(slot) and slot not in view.moving and not self._retries.waits_for(slot)
        )

    async def bring_in(self, names: set[str]) -> None:
        """Reads these passages, also of documents that a function holds; raises the epochs of corpora that changed.

        Raises ResponseError.
        """
        await self._retries.raise_epochs(await self._refresh(names))

    async def read_back(self, key: str, doc: keys.DocKey, passed_over: set[str]) -> None:
        """Makes the index hold what there is of a document whose change failed."""
        names = passed_over.union(self.index(doc.corpus).table.keys_of(doc.document))
        try:
            count = document_hash.count_of_passages(await self._runtime.call("HGET", key, "passages"))
            names |= {keys.passage(doc.corpus, doc.document, n) for n in range(count or 0)}
            await self.bring_in(names)
        except (ResponseError, ShardFailed) as error:
            self._runtime.log(f"passages of {key!r} can't be read back yet: {error}", "verbose")
            for name in names:
                self._retries.wait_for_slot(name)

    # ---- following the keyspace

    async def _changed(self, events: Sequence[KeyEvent]) -> None:
        self._is_changing = True
        try:
            corpora = await self._refresh(self._concerned(events), is_lock_heeded=True)
        except ResponseError:
            await self._resync("overflow")  # the keyspace can't be read now: all of it is, once it can
            return
        finally:
            self._is_changing = False
        self.show_size()
        if self._runtime.role() != "master":
            self._epochs.forget()  # the master raises them, unseen here
        await self._retries.raise_epochs(corpora)

    def _concerned(self, events: Sequence[KeyEvent]) -> dict[str, None]:
        """Returns the passages of these events; with a first one all of its document, which have its title."""
        names = dict.fromkeys(event.key for event in events)
        for name in [name for name in names if name.endswith(":0")]:
            with suppress(BadKey):
                passage = keys.parse_passage(name)
                names.update(dict.fromkeys(self.index(passage.corpus).table.keys_of(passage.document)))
        return names

    async def _resync(self, reason: str) -> None:
        if reason != PROMOTED:  # a replica's index is warm
            self._synced.clear()
        self._epochs.forget()
        before = set(self.corpora)
        start = time.perf_counter()
        while True:
            self._scanning_since = time.monotonic()
            try:
                self._retries.scan_begins((await slots.look(self._runtime)).moving)
                await self.dropped.load()
                corpora = await self.scan()
                break
            except ResponseError as error:
                self._runtime.log(f"the index waits, the keyspace can't be read: {error}")
                await asyncio.sleep(RETRY_SECONDS)
        self._synced.set()
        self._retries.scan_ended()
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
            await self._announce(corpora if reason == PROMOTED else set(self.corpora), before)

    def _size(self) -> int:
        return sum(map(len, self.corpora.values()))

    def show_size(self) -> int:
        """Shows in INFO how many passages the index holds, and returns it: on a replica nothing else tells."""
        passages = self._size()
        self._runtime.stat("passages", passages)
        return passages

    async def _announce(self, corpora: set[str], before: set[str]) -> None:
        """Raises the epochs of these corpora, also of those gone since `before`: their answers are in caches."""
        await self._retries.raise_epochs(corpora.intersection(self.corpora))
        if gone_corpora := sorted(before.difference(self.corpora)):
            await write(self._runtime, [self._epochs.next(corpus).announcement for corpus in gone_corpora])

    async def scan(self) -> set[str]:
        """Makes the index equal to the keyspace; returns the corpora this changed."""
        present, corpora = set[str](), set[str]()
        async for names in keyspace.names(self._runtime, PREFIX + "*", SCAN_COUNT):
            corpora |= await self._refresh(names)
            present.update(names)
        missing = [key for index in self.corpora.values() for key in index if key not in present]
        return corpora | await self._refresh(missing)

    async def _refresh(self, names: Iterable[str], is_lock_heeded: bool = False) -> set[str]:
        """Reads passages and makes the index hold just those that are there; returns the corpora that this changed.

        Those of documents that a function holds, too, unless `is_lock_heeded`: until it has written, the old ones
        count. Raises ResponseError where nothing can be read now; the index keeps what it had of the rest.
        """
        todo = [(name, corpus) for name in names if (corpus := self._corpus_of(name, is_lock_heeded)) is not None]
        corpora = set[str]()
        for first in range(0, len(todo), PASSAGES_PER_TICK):
            page = todo[first : first + PASSAGES_PER_TICK]
            firsts = list(dict.fromkeys(keys.first_passage(name) for name, _ in page))
            commands = [("HMGET", _raw(name), *FIELDS) for name, _ in page]
            of_titles = [("HMGET", _raw(first), "title") for first in firsts]  # a replica reads by HMGET alone
            replies = await self._runtime.calls([*commands, *of_titles])
            _raise_what_passes(replies)
            titles = {key: _title(reply) for key, reply in zip(firsts, replies[len(page) :], strict=True)}
            # Nothing is awaited between the replies and the index: a later write's replies come later.
            for (name, corpus), reply in zip(page, replies, strict=False):
                if self._apply(name, corpus, reply, titles[keys.first_passage(name)]):
                    corpora.add(corpus)
        return corpora

    def _corpus_of(self, name: str, is_lock_heeded: bool) -> str | None:
        """Returns the corpus of a passage's key; None where a function sees to its document, or the key is not ours."""
        try:
            passage = keys.parse_passage(name)
        except BadKey as error:
            self._runtime.log(str(error), "verbose")
            return None
        if self.dropped.covers(passage.corpus, passage.tag):
            return None
        is_locked = self._changes.passes_over(passage, name)
        return None if is_locked and is_lock_heeded else passage.corpus

    def _apply(self, name: str, corpus: str, reply: Reply | Exception, title: str) -> bool:
        """Brings one passage into the index, or out of it; returns whether that changed it."""
        if isinstance(reply, Exception):
            if transient.is_between_shards(reply):
                self._retries.wait_for_slot(name)
            else:
                self._runtime.log(f"{name!r} can't be indexed: {reply}", "warning")
            return self.index(corpus).remove(name)
        text, end, *of_document, vector_bytes, path = reply
        if text is None:
            return self.index(corpus).remove(name)
        index = self.index_to_change(corpus)
        is_changed = index.put(name, title, _text(text), int(end or 0), _of_document(*of_document), _text(path))
        if vector_bytes is not None and (vectors := StoredVectors.unpack(vector_bytes)) is not None:
            # no change that answers are kept by: whoever encodes tells when it is done
            index.put_vectors(name, vectors)
        return is_changed

    async def _caught_up(self) -> None:
        """Waits a moment for earlier events: they are queued, and brought in one batch after another."""
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

    async def _on_settlement(self, settlement: Settlement) -> set[str]:
        """Brings the index up to date once slots have settled; returns the corpora that changed."""
        corpora = {name: keys.parse_passage(name).corpus for name in settlement.departures}
        corpora_changed = {corpus for name, corpus in corpora.items() if self.index(corpus).remove(name)}
        corpora_changed |= await self._refresh(settlement.arrivals)
        return corpora_changed | await self.scan() if settlement.is_scan_due else corpora_changed


def _title(reply: Reply | Exception) -> str:
    """Returns the title in the reply of a first passage; empty where that can't be read.

    Then the other passages of the document can't either: all lie in one slot.
    """
    return _text(reply[0])[:MAX_TITLE] if isinstance(reply, list) else ""


def _text(field: Reply | Exception) -> str:
    return field.decode("utf-8", "replace") if isinstance(field, bytes) else ""


def _raise_what_passes(replies: Sequence[Reply | Exception]) -> None:
    """Raises a refusal that has nothing to do with the key: it must not look like a missing passage."""
    for reply in replies:
        is_refused = isinstance(reply, ResponseError) and not transient.is_between_shards(reply)
        if is_refused and transient.is_transient(reply):
            raise reply


def _of_document(size: bytes | None, metadata: bytes | None, source: bytes | None) -> DocumentInfo | None:
    if size is None or not size.isdigit() or len(size) > DIGITS:
        return None
    return DocumentInfo(int(size), _text(metadata), _text(source))


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
