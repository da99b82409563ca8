"""Passages get their vectors in the background, a passage at a time, while this shard neither answers nor ingests.

A passage is found by its words as soon as it is ingested; its vector comes later, into a field of its own hash. So it
moves, is replicated, backed up and deleted with the passage, and every index gets it by the watch of the keyspace. The
hash is written by nothing else than ingest, which overwrites the text and leaves the field: a vector holds a digest of
its text, and one of another text counts as none. `Encoding` never remembers what it has done; it looks in the index for
passages without a vector of this shard's encoder, so it goes on after a restart or a failover where it stood.

    RG.TRIGGER Embed <corpus> <question>       the question's vector; encoder null without one

Masters write; the worker's loop only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import orjson

from shardqa import checks, keys
from shardqa.errors import NoEncoder
from shardqa.gears_functions import arguments, permissions
from shardqa.gears_functions.shard import background
from shardqa.models.embedding import StoredVector

if TYPE_CHECKING:
    from shardqa.gears_functions.arguments import Record
    from shardqa.gears_functions.runtime import Argument
    from shardqa.gears_functions.shard.encoder import ShardEncoder
    from shardqa.gears_functions.shard.state import ShardState

PAGE = 8  # passages read in one tick, and written in one: at most so many are encoded again after a crash
QUIET = 0.2  # seconds without a question after which the next passage is encoded
PATIENCE = 5.0  # seconds after which one is encoded all the same, so that a busy shard gets done one day
IDLE = 0.5  # seconds between looks for something to do


class Encoding:
    def __init__(self, shard: ShardState, encoder: ShardEncoder) -> None:
        self._shard = shard
        self._encoder = encoder
        self._worked = set[str]()  # corpora that got vectors since their epochs were raised last

    # ---- functions

    async def embed(self, record: Record) -> str:
        corpus, asked = arguments.words(record, "Embed <corpus> <question>", 2, 2)
        keys.check_corpus(corpus)
        await permissions.to_ask(self._shard.runtime, corpus)
        told: Mapping[str, str | None]
        try:
            told = (await self._encoder.question(checks.question(asked))).record()
        except NoEncoder:  # no fault: vectors outlive the encoder that 'shardqa dense rm' removed
            told = {"encoder": None}
        return orjson.dumps({"tag": self._shard.runtime.hashtag(), **told}).decode()

    # ---- in the background

    def follow(self) -> None:
        """Begins with the session, and ends with it."""
        background.go_on(self._shard, keys.ENCODERS, self._work, "passages can't be encoded yet")

    async def _work(self) -> float:
        """Encodes a page of each corpus; seconds until the next."""
        if self._shard.runtime.role() != "master":
            return IDLE
        encoder = await self._encoder.id()
        if encoder is None:
            await self._heal()
            return IDLE
        pages = {
            corpus: self._shard.index(corpus).without_vector(encoder, PAGE)
            for corpus in list(self._shard.corpora)
            if not self._shard.lexical.covers(corpus)
        }
        kept = 0
        for corpus, names in pages.items():
            if names:
                kept += await self._encode(corpus, encoder, names)
        self._shard.runtime.stat("encoded", sum(i.vectors().get(encoder, 0) for i in self._shard.corpora.values()))
        await self._tell([corpus for corpus in self._worked if not pages.get(corpus)])
        return 0.0 if kept else IDLE

    async def _heal(self) -> None:
        """Where passages have vectors, the cluster had an encoder: a shard whose tag changed has lost its copy."""
        if any(index.vectors() for index in self._shard.corpora.values()):
            await self._encoder.obtain()

    async def _tell(self, corpora: Sequence[str]) -> None:
        """Raises the epochs of those that are done: answers that were kept were ranked without these vectors."""
        for corpus in corpora:
            await self._shard.changed(corpus)
            self._worked.discard(corpus)

    async def _encode(self, corpus: str, encoder: str, names: Sequence[str]) -> int:
        """Returns how many have their vectors now: none of what changed meanwhile."""
        replies = await self._shard.runtime.calls([("HMGET", name, "title", "text") for name in names])
        found = dict[str, StoredVector]()
        for name, reply in zip(names, replies, strict=True):
            if isinstance(reply, Exception):
                raise reply
            if reply[1] is not None:
                await self._shard.questions.quiet(QUIET, PATIENCE)
                title, text = ((part or b"").decode("utf-8", "replace") for part in reply)
                found[name] = await self._encoder.passage(encoder, title, text)
        return await self._keep(corpus, found) if await self._encoder.id() == encoder else 0

    async def _keep(self, corpus: str, found: dict[str, StoredVector]) -> int:
        index = self._shard.index(corpus)
        here = {name: vector for name, vector in found.items() if name in index}
        commands: list[tuple[Argument, ...]] = []
        for name, vector in here.items():
            commands += [("HSET", name, "vector", vector.packed()), ("HEXISTS", name, "text")]
        replies = await self._shard.runtime.calls(commands) if commands else []
        kept = 0
        for (name, vector), stored, there in zip(here.items(), replies[::2], replies[1::2], strict=True):
            if isinstance(stored, Exception):
                raise stored
            if there:
                kept += self._shard.index(corpus).put_vector(name, vector)
                self._worked.add(corpus)
            else:  # it was deleted just before: the field alone would be a hash of its own
                await self._shard.runtime.call("HDEL", name, "vector")
        return kept
