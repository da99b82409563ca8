"""The epochs of this shard's part of each corpus: they rise with every change, so no cached answer outlives its text.

Only masters raise them. The worker's loop only.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redis import ResponseError

from shardqa import keys
from shardqa.gears_functions.writes import raise_first, write
from shardqa.transient import is_write_refusal
from shardqa.worker.runtime import Argument, Runtime


@dataclass(frozen=True, slots=True)
class NextEpoch:
    """An epoch that a change ends with; call `ShardEpochs.written` once its commands have run."""

    corpus: str
    tag: str
    epoch: int

    @property
    def store(self) -> tuple[Argument, ...]:
        return ("SET", keys.epoch(self.corpus, self.tag), self.epoch)

    @property
    def announcement(self) -> tuple[Argument, ...]:
        return ("PUBLISH", keys.EPOCH_CHANNEL, f"{self.corpus} {self.tag} {self.epoch}")

    @property
    def commands(self) -> list[tuple[Argument, ...]]:
        return [self.store, self.announcement]

    @property
    def removal(self) -> tuple[Argument, ...]:
        return ("UNLINK", keys.epoch(self.corpus, self.tag))


class ShardEpochs:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._known: dict[tuple[str, str], int] = {}  # (tag, corpus) -> epoch; masters only: they alone change it
        self.on_change: Callable[[str], None] = lambda corpus: None
        self._issued: dict[str, int] = {}  # corpus -> the highest epoch sent to Redis, confirmed or not

    async def stored(self, corpus: str) -> int:
        """Returns the epoch in Redis; 0 where there is none. Raises where this node is a replica.

        It can't know what it lacks, and a node that was the master a moment ago must not speak for the shard.
        """
        tag = self._runtime.hashtag()
        last = self._known.get((tag, corpus))
        if last is not None and self._runtime.role() == "master":
            return last
        epoch = int(await self._runtime.call("GET", keys.epoch(corpus, tag)) or 0)
        if self._runtime.role() == "master" and epoch:  # 0 is not kept: anybody may ask for any corpus
            self._know(corpus, tag, epoch)
        return epoch

    def is_current(self, corpus: str, tag: str, epoch: int) -> bool:
        """Returns whether tag and epoch are the shard's now; False where only Redis could tell."""
        is_master = self._runtime.role() == "master"
        return is_master and tag == self._runtime.hashtag() and self._known.get((tag, corpus)) == epoch

    def known(self, corpus: str) -> int | None:
        """Returns the epoch that this process knows, whether or not it is in Redis; None: it knows none."""
        return self._known.get((self._runtime.hashtag(), corpus))

    async def raise_epoch(self, corpus: str) -> int:
        """Raises the epoch; where memory is full, this process alone holds it (see `remove`).

        Raises as `write`: where Redis does not even remove, the epoch is held all the same, and has to be raised again.
        """
        await self.stored(corpus)
        step = self.next(corpus)
        try:
            await write(self._runtime, step.commands)
        except ResponseError as error:
            if not is_write_refusal(error):
                raise
            self.written(step)
            await write(self._runtime, [step.removal])
        self.written(step)
        return step.epoch

    async def remove(self, corpus: str, commands: Sequence[Sequence[Argument]]) -> NextEpoch:
        """Runs commands that only remove, in one tick, and returns the epoch; the caller calls `written` afterwards.

        Memory may be full, and removing is what helps: an epoch that has no room is held by this process alone. Its key
        goes, so that no older one comes back. Raises as `write`.
        """
        step = self.next(corpus)
        frame = [step.removal, *step.commands, *commands]
        replies = await self._runtime.calls(frame)
        if is_write_refusal(replies[1]):
            replies[1] = None
        raise_first(frame, replies)
        return step

    def next(self, corpus: str) -> NextEpoch:
        """Returns the epoch that a change ends with.

        Its commands must be sent before anything else is awaited: epochs reach Redis in the order they are made.
        """
        tag = self._runtime.hashtag()
        last = max(self._known.get((tag, corpus), 0), self._issued.get(corpus, 0))
        epoch = self._issued[corpus] = keys.next_epoch(last, time.time_ns() // 1_000_000)
        return NextEpoch(corpus, tag, epoch)

    def written(self, step: NextEpoch) -> None:
        self._know(step.corpus, step.tag, step.epoch)
        self.on_change(step.corpus)

    def _know(self, corpus: str, tag: str, epoch: int) -> None:
        self._known[tag, corpus] = max(epoch, self._known.get((tag, corpus), 0))

    def doubt(self, corpus: str) -> None:
        """Has Redis asked for the epoch next time: a change failed, which may have written it or not."""
        self._known = {name: epoch for name, epoch in self._known.items() if name[1] != corpus}

    def forget(self) -> None:
        """Forgets all epochs, since another node may have raised any, unseen here: Redis is asked next time."""
        self._known.clear()
