"""Kept answers quote documents: those that a change has made useless are removed within seconds.

A shard knows its own `answer:` keys by their epoch. Final ones (`ask:`) lie on any shard and quote documents of all:
the shard that changed tells the others, and each compares the epochs in those it has with the epochs of all shards.

RG.TRIGGER Changed <corpus> …
RG.TRIGGER Epochs <corpus> …

Every shard follows these keys, replicas too; masters remove. The worker's loop only; at most one task removes.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TypeAlias

import orjson
from redis import ResponseError

from shardqa import keys
from shardqa.errors import BadKey, ShardFailed
from shardqa.gears_functions import arguments, keyspace, permissions
from shardqa.gears_functions.arguments import Record
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.transient import is_between_shards
from shardqa.worker.runtime import KeyEvent, Runtime

ANSWER, ASK = "answer", "ask"
PAUSE_SECONDS = 0.5  # from a change until it is seen to, with those that follow it
RETRY_SECONDS = 2.0  # until shards that did not answer are asked again
SCAN_COUNT = 10_000  # keys looked at per SCAN
SLICE = 100  # keys unlinked in one tick
MOST = 100_000  # corpora in one command

Group: TypeAlias = tuple[str, str]  # word that the keys begin with; corpus, or corpora with commas
PartEpochs: TypeAlias = dict[tuple[str, str], int]  # by corpus and tag


class KeptAnswers:
    def __init__(self, runtime: Runtime, epochs: ShardEpochs, sync: KeyspaceSync) -> None:
        self._runtime = runtime
        self._epochs = epochs
        self._sync = sync
        self._names: dict[Group, dict[str, str]] = {}  # name -> the epoch in it
        self._current: dict[Group, str] = {}  # epochs that were found to be those of now
        self._doubtful: dict[Group, bool] = {}  # to be looked at; whether a corpus changed
        self._untold = set[str]()  # corpora that changed here, and some shard may not know it
        self._task: asyncio.Task[None] | None = None

    def follow(self) -> None:
        for word in (ANSWER, ASK):
            self._runtime.watch(f"{word}:", self._heard, partial(self._load, word))
        self._epochs.on_change = self._changed_here

    async def changed(self, record: Record) -> str:
        self._doubt(await self._corpora(record, "Changed"))
        return "OK"

    async def epochs(self, record: Record) -> str:
        own = await self._own_epochs(await self._corpora(record, "Epochs"))
        return orjson.dumps([[*part, epoch] for part, epoch in own.items()]).decode()

    async def _corpora(self, record: Record, name: str) -> list[str]:
        corpora = arguments.words(record, f"{name} <corpus> …", 1, MOST)
        await permissions.of_shards(self._runtime)
        return corpora

    async def _own_epochs(self, corpora: Iterable[str]) -> PartEpochs:
        return {(corpus, self._runtime.hashtag()): await self._sync.epoch(corpus) for corpus in corpora}

    # ---- following

    def _changed_here(self, corpus: str) -> None:
        self._untold.add(corpus)
        self._doubt([corpus])

    def _doubt(self, corpora: Iterable[str]) -> None:
        changed = set(corpora)
        self._doubtful |= {group: True for group in self._names if changed.intersection(group[1].split(","))}
        self._look_soon()

    async def _heard(self, events: Sequence[KeyEvent]) -> None:
        for event in events:
            (self._forget if event.type == "none" else self._note)(event.key)
        self._look_soon()

    async def _load(self, word: str, reason: str) -> None:
        self._names = {group: names for group, names in self._names.items() if group[0] != word}
        self._current.clear()
        async for page in keyspace.names(self._runtime, f"{word}:*", SCAN_COUNT):
            for name in page:
                self._note(name)
        self._look_soon()

    def _note(self, name: str) -> None:
        try:
            word, corpora, epoch = keys.parse_kept(name)
        except BadKey:
            return  # scores, words or the secret of a corpus
        self._names.setdefault((word, corpora), {})[name] = epoch
        if self._current.get((word, corpora)) != epoch:
            self._doubtful.setdefault((word, corpora), False)

    def _forget(self, name: str) -> None:
        word, corpora = (*name.split(":", 2), "")[:2]
        names = self._names.get((word, corpora), {})
        names.pop(name, None)
        if not names:
            self._names.pop((word, corpora), None)
            self._current.pop((word, corpora), None)
            self._doubtful.pop((word, corpora), None)

    # ---- removing

    def _look_soon(self) -> None:
        if (self._doubtful or self._untold) and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._tidy())

    async def _tidy(self) -> None:
        while self._doubtful or self._untold:
            await asyncio.sleep(PAUSE_SECONDS)
            if self._runtime.role() != "master":  # its master sees to it
                self._doubtful.clear()
                self._untold.clear()
                return
            try:
                is_done = await self._tell()
                is_done &= await self._look()
            except (ResponseError, ShardFailed) as error:
                self._runtime.log(f"kept answers can't be looked at yet: {error}", "verbose")
                is_done = False
            if not is_done:
                await asyncio.sleep(RETRY_SECONDS)

    async def _tell(self) -> bool:
        """Tells the other shards what changed here; returns whether all know it."""
        untold, self._untold = self._untold, set()
        replies = await self._runtime.peers("RG.TRIGGER", "Changed", *sorted(untold)) if untold else []
        is_known = not any(isinstance(reply, Exception) for reply in replies)
        self._untold |= set() if is_known else untold
        return is_known

    async def _look(self) -> bool:
        """Removes what is of no use; returns whether all could be looked at. Raises ResponseError, ShardFailed."""
        left, self._doubtful = self._doubtful, {}
        try:
            own, every = await self._known_epochs(left)
            for (word, corpora), is_changed in list(left.items()):
                epochs = own if word == ANSWER else every
                if epochs is None and not is_changed:
                    continue  # of the change that made it useless the shards tell
                current = "" if epochs is None else _epoch_in_keys(word, corpora, epochs)
                self._current[word, corpora] = current
                kept = self._names.get((word, corpora), {})
                await self._remove([name for name, epoch in kept.items() if epoch != current])
                del left[word, corpora]
        finally:
            for group, is_changed in left.items():
                self._doubtful[group] = is_changed or self._doubtful.get(group, False)
        return not left

    async def _known_epochs(self, groups: Collection[Group]) -> tuple[PartEpochs, PartEpochs | None]:
        """Returns this shard's epochs and those of all shards; None for these where one does not say."""
        own = await self._own_epochs({corpus for _, corpora in groups for corpus in corpora.split(",")})
        names = sorted({corpus for word, corpora in groups if word == ASK for corpus in corpora.split(",")})
        replies = await self._runtime.peers("RG.TRIGGER", "Epochs", *names) if names else []
        every = dict(own)
        for reply in replies:
            if isinstance(reply, Exception):
                return own, None
            every |= {(corpus, tag): epoch for corpus, tag, epoch in orjson.loads(reply[0])}
        return own, every

    async def _remove(self, names: Sequence[str]) -> None:
        """Raises ResponseError where Redis refuses for now."""
        for first in range(0, len(names), SLICE):
            some = names[first : first + SLICE]
            for name, reply in zip(some, await self._runtime.calls([("UNLINK", name) for name in some]), strict=True):
                if isinstance(reply, Exception) and not is_between_shards(reply):
                    raise reply
                self._forget(name)


def _epoch_in_keys(word: str, corpora: str, epochs: PartEpochs) -> str:
    """Returns what stands in keys that are stored now."""
    names = corpora.split(",")
    if word == ANSWER:
        return next(f"{{{tag}}}:{epoch}" for (corpus, tag), epoch in epochs.items() if corpus == corpora)
    return keys.ask_epoch({part: epoch for part, epoch in epochs.items() if part[0] in names})
