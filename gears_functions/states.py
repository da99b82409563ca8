"""Passages' lower states are computed before a question asks for them, while this shard neither answers nor ingests.

Where a reader is split, its worker keeps what the lower layers say of a passage (models.md). After ingest, and after
the worker's start, this walks the passages of all corpora, newest first, and has the worker keep the states of each
while there is room (STATES_BYTES); what questions used is never put out for that. Nothing waits for it, and all that it
does a question would do as well: what it passes over is computed when it is read.

Masters only; the worker's loop. The network runs in the worker's background thread, a passage at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shardqa import keys
from shardqa.gears_functions.index.walk import Walk
from shardqa.gears_functions.runtime import ToEncode
from shardqa.gears_functions.shard import background
from shardqa.models import reader
from shardqa.transient import is_between_shards

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardqa.gears_functions.index.corpus_index import Index
    from shardqa.gears_functions.runtime import Reply
    from shardqa.gears_functions.shard.state import ShardState

PAGE = 16  # passages handed to the background thread at once; a question ends that between two of them
QUIET = 0.05  # seconds without a question after which there is time
IDLE = 0.5  # seconds between looks for something to do
TO_DO = "states_to_do"  # in INFO


class KnownStates:
    """Which states the worker was asked to keep, so that those of texts that are gone can make room."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str], tuple[bytes, bytes]] = {}  # (corpus, passage) -> digest of text, states

    def add(self, corpus: str, passage: str, digest: bytes | None, states: bytes) -> None:
        if digest is not None:
            self._keys[corpus, passage] = digest, states

    def gone(self, corpora: dict[str, Index]) -> list[bytes]:
        """Those of texts that no passage has now, which are forgotten here."""
        here = {
            name: (digest, states)
            for name, (digest, states) in self._keys.items()
            if name[0] in corpora and corpora[name[0]].digest(name[1]) == digest
        }
        wanted = {states for _, states in here.values()}
        found = [states for _, states in self._keys.values() if states not in wanted]
        self._keys = here
        return found


class StatesAhead:
    def __init__(self, shard: ShardState) -> None:
        self._shard = shard
        self._models: dict[str, str] = {}  # keys of this shard's split readers, and what each was known by
        self._walks: dict[tuple[str, str], Walk] = {}  # by model's key and corpus
        self._known = KnownStates()
        self._full: object = None  # what the corpora were like when there was no room any more

    def follow(self) -> None:
        """Begins with the session, and ends with it."""
        background.go_on(self._shard, keys.NEVER, self._work, "passages' states can't be computed ahead yet")

    async def _work(self) -> float:
        """Does a page of each corpus with each split reader; seconds until the next."""
        self._look()
        if self._models:
            await self._shard.stored_states.renew()
        if not self._walks or self._full == self._corpora_now():
            return IDLE
        if not self._shard.questions.is_quiet(QUIET):
            return QUIET
        self._full = None
        did = 0
        for (model, corpus), walk in list(self._walks.items()):
            did += await self._page(model, corpus, walk)
        self._shard.runtime.stat(TO_DO, sum(walk.left() for walk in self._walks.values()))
        return 0.0 if did else IDLE

    def _look(self) -> None:
        """Which readers are split now, and a walk over each corpus for each."""
        runtime, corpora = self._shard.runtime, self._shard.corpora
        own = runtime.hashtag()
        split = runtime.split_models() if runtime.role() == "master" else {}
        models = {key: id for key, id in split.items() if key == keys.model(keys.name_of_model(key) or "", own)}
        if self._models and not models:
            runtime.stat(TO_DO, "")
        self._walks = {
            (model, corpus): walk
            for (model, corpus), walk in self._walks.items()
            if models.get(model) == self._models.get(model, "") and corpus in corpora and walk.is_of(corpora[corpus])
        }
        self._models = models
        for model in models:
            for corpus, index in corpora.items():
                self._walks.setdefault((model, corpus), Walk(index))

    def _corpora_now(self) -> object:
        """Equal while no passage came, changed or went, and the readers are the same."""
        of = {corpus: (len(index), index.slots, index.compactions) for corpus, index in self._shard.corpora.items()}
        return of, self._models

    async def _page(self, model: str, corpus: str, walk: Walk) -> int:
        """How many passages the walk has put behind itself."""
        page = walk.page(PAGE)
        if page is None:
            return 0
        names = [name for _, name in page.passages]
        parts = await self._parts(names)
        found = await self._shard.runtime.encode(
            model, await self._to_encode(model, names, parts), self._shard.questions.is_quiet
        )
        encoded = [name for name, part in zip(names, parts, strict=True) if part is not None][: len(found.keys)]
        for name, states in zip(encoded, found.keys, strict=True):
            self._known.add(corpus, name, self._shard.index(corpus).digest(name), states)
        values = dict(zip(encoded, found.to_store, strict=True))
        await self._shard.stored_states.write({name: value for name, value in values.items() if value})
        done = _done(parts, len(encoded))
        walk.walked(page, done)
        if found.is_full and not self._make_room():
            self._full = self._corpora_now()
            return 0
        return done

    async def _to_encode(
        self, model: str, names: Sequence[str], parts: Sequence[NDArray[np.int64] | None]
    ) -> list[ToEncode]:
        """Of several split readers the first one has the keys: two would write over one another."""
        there = [(name, part) for name, part in zip(names, parts, strict=True) if part is not None]
        values: list[bytes | None] = [None] * len(there)
        if model == min(self._models):
            values = await self._shard.stored_states.read([name for name, _ in there])
        return [ToEncode(part, value) for (_, part), value in zip(there, values, strict=True)]

    def _make_room(self) -> bool:
        gone = self._known.gone(self._shard.corpora)
        self._shard.runtime.forget_states(gone)
        return bool(gone)

    async def _parts(self, names: Sequence[str]) -> list[NDArray[np.int64] | None]:
        """Of each passage what stands of it in a row; None where its word pieces are not there."""
        commands = [("AI.TENSORGET", keys.tokens_of_passage(name), "BLOB") for name in names]
        return [_part(reply) for reply in await self._shard.runtime.calls(commands)]


def _done(parts: Sequence[NDArray[np.int64] | None], encoded: int) -> int:
    """How many of a page are done, where so many are encoded: those without word pieces among them count."""
    for number, part in enumerate(parts):
        if part is not None and encoded == 0:
            return number
        encoded -= part is not None
    return len(parts)


def _part(reply: Reply | Exception) -> NDArray[np.int64] | None:
    """Raises what will pass."""
    if isinstance(reply, Exception) and is_between_shards(reply):
        raise reply
    if not isinstance(reply, bytes) or not reply or len(reply) % 4:
        return None
    return reader.passage_part(np.frombuffer(reply, dtype=np.int32))
