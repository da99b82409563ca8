"""Passages get their vectors in the background, a passage at a time, while this shard neither answers nor ingests.

A passage is found by its words as soon as it is ingested; its vector comes later, into a field of its own hash. So it
moves, is replicated, backed up and deleted with the passage, and every index gets it by the watch of the keyspace. The
hash is written by nothing else than ingest, which overwrites the text and leaves the field: a vector holds a digest of
its text, and one of another text counts as none. `Encoding` never remembers what it has done; it looks in the index for
passages without a vector of this shard's encoder, so it goes on after a restart or a failover where it stood.

Masters write; the worker's loop only.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redis import ResponseError

from shardqa import keys
from shardqa.errors import ShardqaError
from shardqa.gears_functions.shard.encoder import ShardEncoder
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.marks import Marks
from shardqa.gears_functions.shard.pairs import Pairs
from shardqa.gears_functions.shard.questions import ActiveQuestions
from shardqa.models.embedding import StoredVectors
from shardqa.worker.runtime import Argument, KeyEvent, Runtime

PASSAGES_PER_TICK = 8  # passages read in one tick, and written in one: at most so many are encoded again after a crash
QUIET = 0.2  # seconds without a question after which the next passage is encoded
MAX_WAIT = 5.0  # seconds after which one is encoded all the same, so that a busy shard gets done one day
IDLE = 0.5  # seconds between looks for something to do
FAILED = 5.0  # seconds after a fault: an index that is being read, a model or slot on its way, memory that is full


@dataclass(eq=False)
class Encoding:
    _runtime: Runtime
    _sync: KeyspaceSync
    _lexical: Marks
    _questions: ActiveQuestions
    _encoder: ShardEncoder
    _pairs: Pairs
    _worked: set[str] = field(default_factory=set)  # corpora that got vectors since their epochs were raised last

    def follow(self) -> None:
        """Starts with the session and ends with it: what a watch awaits is cancelled then."""
        self._runtime.watch(keys.ENCODERS, self._pass_over, self._live)

    async def _pass_over(self, events: Sequence[KeyEvent]) -> None:
        """Does nothing: `_work` looks for itself."""

    async def _live(self, reason: str) -> None:
        while True:
            try:
                await self._sync.synced()
                pause = await self._work()
            except (ResponseError, ShardqaError) as error:
                self._runtime.log(f"passages can't be encoded yet: {error}", "verbose")
                pause = FAILED
            await asyncio.sleep(pause)

    async def _work(self) -> float:
        """Encodes a page of passages without vectors, of the corpus asked last; returns the seconds until the next."""
        if self._runtime.role() != "master":
            return IDLE
        encoders = await self._encoder.ids()
        await self._heal(encoders)
        own = {corpus: encoders[self._pairs.encoder_of(corpus)] for corpus in self._sync.corpora}
        pages = {
            corpus: self._sync.index(corpus).without_vector(encoder, PASSAGES_PER_TICK)
            for corpus, encoder in own.items()
            if encoder is not None and not self._lexical.covers(corpus)
        }
        lacking = (corpus for corpus, names in pages.items() if names)
        corpus = max(lacking, key=lambda corpus: self._sync.index(corpus).last_question, default=None)
        count = 0 if corpus is None else await self._encode(corpus, own[corpus] or "", pages[corpus])
        sizes = (index.vectors().get(own.get(corpus) or "", 0) for corpus, index in self._sync.corpora.items())
        self._runtime.stat("encoded", sum(sizes))
        await self._announce([corpus for corpus in self._worked if not pages.get(corpus)])
        return 0.0 if count else IDLE

    async def _heal(self, encoders: Mapping[str, str | None]) -> None:
        """Obtains an encoder where passages have vectors: a shard whose tag changed has lost its copy."""
        used = {self._pairs.encoder_of(corpus) for corpus, index in self._sync.corpora.items() if index.vectors()}
        for name in used:
            if encoders[name] is None:
                await self._encoder.obtain(name)

    async def _announce(self, corpora: Sequence[str]) -> None:
        """Raises the epochs of corpora whose vectors are all there: answers in caches were ranked without these."""
        for corpus in corpora:
            await self._sync.changed(corpus)
            self._worked.discard(corpus)

    async def _encode(self, corpus: str, encoder: str, names: Sequence[str]) -> int:
        """Encodes these passages; returns how many have their vectors now, without those that changed meanwhile."""
        fields = [("HGET", key, field) for n in names for key, field in ((keys.first_passage(n), "title"), (n, "text"))]
        replies, pair = await self._runtime.calls(fields), await self._pairs.of(corpus)
        vectors = dict[str, StoredVectors]()
        for name, reply in zip(names, zip(replies[::2], replies[1::2], strict=True), strict=True):
            texts = [part for part in reply if not isinstance(part, Exception)]
            for refusal in (part for part in reply if isinstance(part, Exception)):
                raise refusal
            if reply[1] is not None:
                await self._questions.quiet(QUIET, MAX_WAIT)
                title, text = ((part or b"").decode("utf-8", "replace") for part in texts)
                vectors[name] = await self._encoder.passage(pair, encoder, title, text)
        return await self._store(corpus, vectors) if await self._encoder.id(pair.encoder) == encoder else 0

    async def _store(self, corpus: str, vectors: dict[str, StoredVectors]) -> int:
        index = self._sync.index(corpus)
        present = {name: vector for name, vector in vectors.items() if name in index}
        commands: list[tuple[Argument, ...]] = []
        for name, vector in present.items():
            commands += [("HSET", name, "vector", vector.packed()), ("HEXISTS", name, "text")]
        replies = await self._runtime.calls(commands) if commands else []
        count = 0
        for (name, vector), reply, has_text in zip(present.items(), replies[::2], replies[1::2], strict=True):
            if isinstance(reply, Exception):
                raise reply
            if has_text:
                count += self._sync.index(corpus).put_vectors(name, vector)
                self._worked.add(corpus)
            else:  # it was deleted just before: the field alone would be a hash of its own
                await self._runtime.call("HDEL", name, "vector")
        return count
