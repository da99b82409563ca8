"""The state of one shard that its functions share. A map of this folder:

    document_lock   one function at a time changes a document
    dropped         corpora on their way out, a slice at a time
    epochs          a number of each corpus that rises with every change: no cached answer outlives its text
    keyspace_sync   an index per corpus, kept equal to the `passage:` keys, whoever writes them
    retries         what Redis refuses while slots move, tried again until it is done
    slots           which slots are this shard's, and which are on their way
    model_sync      the shard's own copy of each model
    encoder         the shard's encoder: vectors of questions and passages
    marks           corpora that are ranked by their words alone, or whose titles are not followed
    questions       whether the shard is answering
    timings         how long answers take, told to INFO

Lives on masters and replicas, so that a failover finds a warm index; only masters write. All of it runs in the
worker's loop. A function puts what it wrote into the index itself; the watch brings in what came any other way
(replication, resharding, other writers), and then the master raises the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from shardqa import keys
from shardqa.bridges import NamedTitles
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.runtime import refusal, write
from shardqa.gears_functions.shard import slots
from shardqa.gears_functions.shard.document_lock import DocumentLock, HeldDocuments
from shardqa.gears_functions.shard.dropped import Dropped
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.marks import Marks
from shardqa.gears_functions.shard.questions import ActiveQuestions

if TYPE_CHECKING:
    from shardqa.analysis import Query
    from shardqa.gears_functions.runtime import Argument, Reply, Runtime
    from shardqa.models.tokenizer import Tokenizer
    from shardqa.statistics import CorpusStatistics


class ShardState:
    def __init__(self, runtime: Runtime, tokenizer: Tokenizer) -> None:
        self.runtime = runtime
        self.tokenizer = tokenizer
        self.epochs = ShardEpochs(runtime)
        self._held = HeldDocuments()
        self._sync = KeyspaceSync(runtime, self.epochs, self._held)
        self._lock = DocumentLock(self._held, self.epochs, self._sync)
        self.questions = ActiveQuestions()
        self.lexical = Marks(runtime, keys.DENSE)
        self.unbridged = Marks(runtime, keys.BRIDGES)

    @property
    def dropped(self) -> Dropped:
        return self._sync.dropped

    async def settled(self) -> frozenset[str]:
        """The buckets that this shard vouches for: their slots are here and stay, and the index holds all of them."""
        here = await slots.look(self.runtime)
        await self._sync.caught_up()
        return frozenset(
            bucket
            for bucket, slot in slots.OF_BUCKETS.items()
            if here.serves(slot) and slot not in here.moving and not self._sync.retries.waits_for(slot)
        )

    async def changed(self, corpus: str) -> None:
        """Raises the epoch of a corpus after a change that no document's function made."""
        await self._sync.retries.raise_epochs([corpus])

    @property
    def corpora(self) -> dict[str, Index]:
        return self._sync.corpora

    def index(self, corpus: str) -> Index:
        """The index of a corpus to ask; an empty one if the shard holds none of it."""
        return self._sync.index(corpus)

    def index_to_change(self, corpus: str) -> Index:
        return self._sync.index_to_change(corpus)

    def follow(self, settle_all: Callable[[], Coroutine[None, None, None]]) -> None:
        """Starts to keep the index equal to the keyspace; after each scan a master's documents are settled."""
        self._sync.follow(settle_all)
        for marks in (self.lexical, self.unbridged):
            self.runtime.watch(marks.prefix, marks.changed, marks.resync)

    async def synced(self) -> None:
        """Waits until the index is whole; raises Indexing where that takes long."""
        await self._sync.synced()

    def document(self, key: str) -> AbstractAsyncContextManager[keys.DocKey]:
        """Holds a document against other functions while it is changed. Raises BadKey."""
        return self._lock.hold(key)

    def indexed(self, parsed: keys.DocKey) -> None:
        """The holder has put into the index what it wrote: the events of that tell nothing new."""
        self._held.indexed(parsed)
        self._sync.show_size()

    def statistics(self, corpus: str, query: Query, view: str = "") -> CorpusStatistics:
        """This shard's numbers; of vectors none where the corpus is ranked by its words alone."""
        found = self.index(corpus).statistics(query, view)
        found = replace(found, vectors={}) if self.lexical.covers(corpus) else found
        return replace(found, titles=0) if self.unbridged.covers(corpus) else found

    def named(self, corpus: str, words: Sequence[Sequence[str]], view: str = "") -> NamedTitles:
        """What these texts name here; no title where the corpus' titles are not followed."""
        found = self.index(corpus).named(words, view)
        return NamedTitles({}, found.words) if self.unbridged.covers(corpus) else found

    async def look_again(self, names: Iterable[str]) -> None:
        """Reads passages anew that were not found where the index had them. Raises ResponseError."""
        await self._sync.bring_in(set(names))

    async def epoch(self, corpus: str) -> int:
        """The epoch of this shard's part of a corpus; 0 if it never held any of it."""
        epoch = await self.epochs.stored(corpus)
        if epoch == 0 and len(self.index(corpus)) and self.runtime.role() == "master":
            return await self._sync.retries.first_epoch(corpus)  # slots moved here, and with them the tag
        return epoch

    async def write(self, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
        """Runs commands in one tick. Raises ShardFailed for the first that failed; Redis' own error if it will pass."""
        return await write(self.runtime, commands)

    async def refuses(self) -> str | None:
        """Why Redis stores nothing now, in its own words; None where it does. Changes nothing."""
        reply = await refusal(self.runtime)
        return None if reply is None else str(reply)
