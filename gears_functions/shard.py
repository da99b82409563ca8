"""What a shard knows: an index per corpus, kept equal to its `passage:` keys, and the epoch of its part of each corpus.

Lives on masters and replicas, so that a failover finds a warm index; only masters write. Everything here runs in the
worker's loop. Ingest puts what it wrote into the index itself; the watch brings in what came any other way
(replication, resharding, other writers), and then the master raises the epoch: no cached answer outlives its text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from redis import ResponseError

from shardqa import keys
from shardqa.errors import BadKey, Indexing, ShardFailed
from shardqa.gears_functions import documents, slots
from shardqa.gears_functions.index import Index
from shardqa.gears_functions.slots import Slots

if TYPE_CHECKING:
    from shardqa.gears_functions.runtime import Argument, KeyEvent, Reply, Runtime
    from shardqa.models.tokenizer import Tokenizer

PREFIX = "passage:"
AT_START = "start"  # reason of the resync that begins a session: epochs outlive the worker
PROMOTED = "promoted"  # reason of the resync of a replica that became master
PAGE = 64  # passages read in one tick and indexed before the loop serves others: about 10 ms
SCAN_COUNT = 1_000  # keys looked at per SCAN
RETRY_SECONDS = 0.5  # between attempts to read the keyspace while Redis refuses (loading, a failover)
PASSING = ("TRYAGAIN", "MOVED", "ASK", "READONLY", "OOM", "CLUSTERDOWN", "LOADING", "MASTERDOWN")
DOWN = "while the cluster is down"  # how Redis refuses a module's call in the first seconds of a cluster node
MOVING_SECONDS = 0.2  # between looks at slots that are on their way here or away
WAIT_SECONDS = 2.0  # from the beginning of a scan that questions wait for its end: enough for 15,000 passages or so


class Shard:
    def __init__(self, runtime: Runtime, tokenizer: Tokenizer) -> None:
        self.runtime = runtime
        self.tokenizer = tokenizer
        self.corpora: dict[str, Index] = {}
        self._synced = asyncio.Event()  # set while the index holds all that the keyspace does
        # The last scan's start; where Redis refuses it, it begins anew soon. None before the first.
        self._scanning_since: float | None = None
        self._epochs: dict[tuple[str, str], int] = {}  # (tag, corpus) -> epoch; masters only: they alone change it
        self._issued: dict[str, int] = {}  # corpus -> the highest epoch sent to Redis, confirmed or not
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by doc key
        self._moving: dict[int, set[str]] = {}  # slot between shards -> passages of it that could not be read
        self._unraised: set[str] = set()  # corpora that changed, and whose epoch Redis did not let us raise
        self._unseen = frozenset[int]()  # slots on their way when a scan began: it may have missed their keys
        self._retrying: asyncio.Task[None] | None = None  # sees to these three once slots have settled
        self._settling: asyncio.Task[None] | None = None  # looks at all documents after a scan
        # (corpus, document) that a function is changing -> its passages that the watch passed over meanwhile
        self._held: dict[tuple[str, str], set[str]] = {}

    def follow(self, settle_all: Callable[[], Coroutine[None, None, None]]) -> None:
        """Starts to keep the index equal to the keyspace; after each scan a master's documents are settled."""
        self._settle_all = settle_all
        self.runtime.watch(PREFIX, self._changed, self._resync)

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

    # ---- one document at a time

    @asynccontextmanager
    async def document(self, key: str) -> AsyncIterator[keys.DocKey]:
        """Holds a document against other functions; the watch leaves its passages alone until the end.

        Where the change fails, its part of the index is read back from the keyspace. Raises BadKey.
        """
        parsed = keys.parse_doc(key)
        name = (parsed.corpus, parsed.document)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            self._held[name] = set()
            try:
                yield parsed
            except BaseException:
                self._doubt_epoch(parsed.corpus)
                await self._read_back(key, parsed, self._held.pop(name))
                raise
            await self._bring_in(self._held.pop(name))

    def indexed(self, parsed: keys.DocKey) -> None:
        """The holder has put into the index what it wrote: the events of that tell nothing new."""
        self._held[parsed.corpus, parsed.document].clear()
        self._show_size()

    async def look_again(self, names: Iterable[str]) -> None:
        """Reads passages anew that were not found where the index had them. Raises ResponseError as `_refresh`."""
        await self._bring_in(set(names))

    async def _bring_in(self, names: set[str]) -> None:
        await self._raise_epochs(await self._refresh(names))

    async def _read_back(self, key: str, parsed: keys.DocKey, passed_over: set[str]) -> None:
        names = passed_over.union(self.index(parsed.corpus).passages_of(parsed.document))
        try:
            count = documents.count_of_passages(await self.runtime.call("HGET", key, "passages"))
            names |= {keys.passage(parsed.corpus, parsed.document, n) for n in range(count or 0)}
            await self._bring_in(names)
        except (ResponseError, ShardFailed) as error:
            self.runtime.log(f"passages of {key!r} can't be read back yet: {error}", "verbose")
            for name in names:
                self._wait_for_slot(name)

    async def write(self, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
        """Runs commands in one tick. Raises ShardFailed for the first that failed; Redis' own error if it will pass."""
        replies = await self.runtime.calls(commands)
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(reply, Exception):
                if str(reply).startswith(PASSING):
                    raise reply
                raise ShardFailed(f"{command[0]!s} {str(command[1])[:120]!r} failed: {reply}; see the shard's log")
        return replies

    # ---- epochs

    async def epoch(self, corpus: str) -> int:
        """The epoch of this shard's part of a corpus; 0 if it never held any of it."""
        epoch = await self._stored_epoch(corpus)
        if epoch == 0 and len(self.index(corpus)) and self.runtime.role() == "master":
            return await self.raise_epoch(corpus)  # slots moved here, and with them the tag
        return epoch

    def is_current(self, corpus: str, tag: str, epoch: int) -> bool:
        """Whether this is the shard's tag and its epoch now; False where Redis would have to be asked."""
        return tag == self.runtime.hashtag() and self._epochs.get((tag, corpus)) == epoch

    async def _stored_epoch(self, corpus: str) -> int:
        tag = self.runtime.hashtag()
        known = self._epochs.get((tag, corpus))
        if known is not None:
            return known
        epoch = int(await self.runtime.call("GET", keys.epoch(corpus, tag)) or 0)
        if self.runtime.role() == "master" and epoch:  # 0 is not kept: anybody may ask for any corpus
            self.epoch_written(corpus, tag, epoch)
        return epoch

    def _doubt_epoch(self, corpus: str) -> None:
        """A change failed, and its epoch may have been written or not: Redis is asked next time."""
        self._epochs = {name: epoch for name, epoch in self._epochs.items() if name[1] != corpus}

    async def raise_epoch(self, corpus: str) -> int:
        await self._stored_epoch(corpus)
        tag, epoch, commands = self.next_epoch(corpus)
        await self.write(commands)
        self.epoch_written(corpus, tag, epoch)
        return epoch

    async def _raise_epochs(self, corpora: set[str]) -> None:
        """After a change; where Redis refuses for now, as it does while the tag's slot is leaving, once more soon."""
        self._unraised |= corpora
        if self.runtime.role() != "master":
            self._unraised.clear()
        try:
            for corpus in sorted(self._unraised):
                await self.raise_epoch(corpus)
                self._unraised.discard(corpus)
        except (ResponseError, ShardFailed) as error:
            self.runtime.log(f"epochs can't be raised yet: {error}", "verbose")
            self._try_again_soon()

    def next_epoch(self, corpus: str) -> tuple[str, int, list[tuple[Argument, ...]]]:
        """(tag, epoch, the commands that end a change); call `epoch_written` once they have run.

        The commands must be sent before anything else is awaited: epochs reach Redis in the order they are made.
        """
        tag = self.runtime.hashtag()
        last = max(self._epochs.get((tag, corpus), 0), self._issued.get(corpus, 0))
        epoch = self._issued[corpus] = keys.next_epoch(last, time.time_ns() // 1_000_000)
        announcement = f"{corpus} {tag} {epoch}"
        return tag, epoch, [("SET", keys.epoch(corpus, tag), epoch), ("PUBLISH", keys.EPOCH_CHANNEL, announcement)]

    def epoch_written(self, corpus: str, tag: str, epoch: int) -> None:
        self._epochs[tag, corpus] = max(epoch, self._epochs.get((tag, corpus), 0))

    # ---- following the keyspace

    async def _changed(self, events: Sequence[KeyEvent]) -> None:
        try:
            changed = await self._refresh(dict.fromkeys(event.key for event in events))
        except ResponseError:
            await self._resync("overflow")  # the keyspace can't be read now: all of it is, once it can
            return
        self._show_size()
        if self.runtime.role() != "master":
            self._epochs.clear()  # the master raises them, unseen here
        await self._raise_epochs(changed)

    async def _resync(self, reason: str) -> None:
        if reason != PROMOTED:  # a replica's index is warm
            self._synced.clear()
        self._epochs.clear()
        before = set(self.corpora)
        start = time.perf_counter()
        while True:
            self._scanning_since = time.monotonic()
            try:
                self._unseen = (await slots.look(self.runtime)).moving
                changed = await self._scan()
                break
            except ResponseError as error:
                self.runtime.log(f"the index waits, the keyspace can't be read: {error}")
                await asyncio.sleep(RETRY_SECONDS)
        self._synced.set()
        if self._unseen:
            self._try_again_soon()
        self.corpora = {corpus: index for corpus, index in self.corpora.items() if len(index)}
        passages = self._show_size()
        self.runtime.log(f"index: {passages} passages after '{reason}', {time.perf_counter() - start:.1f} s")
        if self.runtime.role() != "master":
            return
        if self._settling is not None:
            self._settling.cancel()
        self._settling = asyncio.create_task(self._settle_all())
        if reason != AT_START:
            await self._tell_changes(changed if reason == PROMOTED else set(self.corpora), before)

    def _size(self) -> int:
        """Passages in the index, of all corpora."""
        return sum(map(len, self.corpora.values()))

    def _show_size(self) -> int:
        """The same, told to INFO: on a replica nothing else tells it."""
        passages = self._size()
        self.runtime.stat("passages", passages)
        return passages

    async def _tell_changes(self, changed: set[str], before: set[str]) -> None:
        """A corpus that is gone since `before` leaves no key, but is announced too: answers of it are remembered."""
        await self._raise_epochs(changed.intersection(self.corpora))
        if gone := sorted(before.difference(self.corpora)):
            await self.write([self.next_epoch(corpus)[2][-1] for corpus in gone])

    async def _scan(self) -> set[str]:
        """Makes the index equal to the keyspace; returns the corpora this changed."""
        seen, changed, cursor = set[str](), set[str](), b"0"
        while True:
            cursor, found = await self.runtime.call("SCAN", cursor, "MATCH", PREFIX + "*", "COUNT", SCAN_COUNT)
            names = [name.decode("utf-8", "surrogateescape") for name in found]
            changed |= await self._refresh(names)
            seen.update(names)
            if cursor == b"0":
                break
        gone = [key for index in self.corpora.values() for key in index if key not in seen]
        return changed | await self._refresh(gone)

    async def _refresh(self, names: Iterable[str]) -> set[str]:
        """Reads passages and makes the index hold just what is there; returns the corpora this changed.

        Raises ResponseError where nothing can be read now; the index keeps what it had of the rest.
        """
        todo = [(name, corpus) for name in names if (corpus := self._corpus_of(name)) is not None]
        changed = set[str]()
        for first in range(0, len(todo), PAGE):
            page = todo[first : first + PAGE]
            replies = await self.runtime.calls([("HMGET", _raw(name), "title", "text", "end") for name, _ in page])
            _raise_what_passes(replies)
            # Nothing is awaited between the replies and the index: a later write's replies come later.
            changed.update(c for (n, c), reply in zip(page, replies, strict=True) if self._apply(n, c, reply))
        return changed

    def _corpus_of(self, name: str) -> str | None:
        """The corpus of a passage's key; None when a function that holds its document sees to it, or it is not ours."""
        try:
            parsed = keys.parse_passage(name)
        except BadKey as error:
            self.runtime.log(str(error), "verbose")
            return None
        held = self._held.get((parsed.corpus, parsed.document))
        if held is None:
            return parsed.corpus
        held.add(name)
        return None

    def _apply(self, name: str, corpus: str, reply: Reply | Exception) -> bool:
        """Whether the index changed."""
        if isinstance(reply, Exception):
            if str(reply).startswith(slots.BETWEEN):
                self._wait_for_slot(name)
            else:
                self.runtime.log(f"{name!r} can't be indexed: {reply}", "warning")
            return self.index(corpus).remove(name)
        if reply[1] is None:
            return self.index(corpus).remove(name)
        title, text = ((field or b"").decode("utf-8", "replace") for field in reply[:2])
        return self.index_to_change(corpus).put(name, title, text, int(reply[2] or 0))

    # ---- slots between shards

    def _wait_for_slot(self, name: str) -> None:
        """A restored key shows before its slot is this shard's, and until then Redis does not let it be read."""
        self._moving.setdefault(slots.slot_of(name), set()).add(name)
        self._try_again_soon()

    def _try_again_soon(self) -> None:
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.create_task(self._try_again())

    async def _try_again(self) -> None:
        while self._moving or self._unraised or self._unseen:
            await asyncio.sleep(MOVING_SECONDS)
            settled = dict[int, set[str]]()
            try:
                now = await slots.look(self.runtime)
                settled = {slot: self._moving.pop(slot) for slot in set(self._moving) - now.moving}
                changed = self._forget(_names(settled, now, served=False))
                changed |= await self._refresh(_names(settled, now, served=True))
                if self._unseen and not self._unseen & now.moving:
                    changed |= await self._scan()
                    self._unseen = frozenset()
                if not now.ranges:
                    self._unraised.clear()  # without slots there is no tag to have epochs under
                await self._raise_epochs(changed)
            except (ResponseError, ShardFailed) as error:
                for slot, names in settled.items():
                    self._moving.setdefault(slot, set()).update(names)
                    self._unraised.update(keys.parse_passage(name).corpus for name in names)  # some were read
                if self._unseen:
                    self._unraised.update(self.corpora)  # a scan that broke off may have changed any
                self.runtime.log(f"passages that arrived can't be read yet: {error}", "verbose")

    def _forget(self, names: Iterable[str]) -> set[str]:
        """Passages whose slots went to another shard; returns the corpora that had any."""
        corpora = {name: keys.parse_passage(name).corpus for name in names}
        return {corpus for name, corpus in corpora.items() if self.index(corpus).remove(name)}


def _names(by_slot: Mapping[int, set[str]], now: Slots, served: bool) -> list[str]:
    """Passages of the slots that this shard serves now, or of those that it does not."""
    return [name for slot, names in by_slot.items() if now.serves(slot) == served for name in names]


def _raise_what_passes(replies: Sequence[Reply | Exception]) -> None:
    """A refusal that has nothing to do with the key must not look like a missing passage."""
    for reply in replies:
        is_refused = isinstance(reply, ResponseError) and not str(reply).startswith(slots.BETWEEN)
        if is_refused and (str(reply).startswith(PASSING) or DOWN in str(reply)):
            raise reply


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
