"""Retries of what Redis refuses for now: passages whose slot is moving, epochs that can't be raised.

Whoever owns the index gives the callback that reads passages. The worker's loop only; at most one task tries at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from redis import ResponseError

from shardqa import keys
from shardqa.errors import ShardFailed
from shardqa.gears_functions.shard import slots
from shardqa.gears_functions.shard.epochs import ShardEpochs
from shardqa.gears_functions.shard.slots import Slots
from shardqa.transient import is_write_refusal
from shardqa.worker.runtime import Runtime

MOVING_SECONDS = 0.2  # between looks at slots that are on their way here or away


@dataclass(frozen=True, slots=True)
class Settlement:
    """Slots have settled: what the index must forget, and what it must read."""

    departures: Collection[str]  # passages whose slots went to another shard
    arrivals: Collection[str]  # passages whose slots are this shard's now
    is_scan_due: bool  # a scan began while slots were on their way, and may have missed their keys


@dataclass(eq=False)
class ShardRetries:
    """`on_settlement` brings the index up to date and returns the corpora that changed; `corpora` are all in it."""

    _runtime: Runtime
    _epochs: ShardEpochs
    _on_settlement: Callable[[Settlement], Awaitable[set[str]]]
    _corpora: Callable[[], Iterable[str]]
    _moving: dict[int, set[str]] = field(default_factory=dict)  # slot between shards -> its passages not read yet
    _unraised: set[str] = field(default_factory=set)  # corpora that changed, and whose epoch Redis did not let us raise
    _unseen: frozenset[int] = frozenset()  # slots on their way when a scan began: it may have missed their keys
    _task: asyncio.Task[None] | None = None  # sees to these three once slots have settled

    def wait_for_slot(self, name: str) -> None:
        """Has a passage read once its slot is this shard's: a restored key shows before that, and can't be read yet."""
        self._moving.setdefault(slots.slot_of(name), set()).add(name)
        self._try_again_soon()

    def waits_for(self, slot: int) -> bool:
        """Returns whether the slot may have passages that the index does not hold yet."""
        return slot in self._moving or slot in self._unseen

    def scan_begins(self, moving: frozenset[int]) -> None:
        """Notes the slots that are on their way now: a scan may miss their keys."""
        self._unseen = moving

    def scan_ended(self) -> None:
        if self._unseen:
            self._try_again_soon()

    async def raise_epochs(self, corpora: Iterable[str]) -> None:
        """Raises epochs after a change; once more soon where Redis refuses, as while the tag's slot is leaving."""
        self._unraised.update(corpora)
        if self._runtime.role() != "master":
            self._unraised.clear()
        try:
            for corpus in sorted(self._unraised):
                await self._epochs.raise_epoch(corpus)
                self._unraised.discard(corpus)
        except (ResponseError, ShardFailed) as error:
            self._runtime.log(f"epochs can't be raised yet: {error}", "verbose")
            self._try_again_soon()

    async def first_epoch(self, corpus: str) -> int:
        """Makes an epoch where there is none; where Redis stores nothing, it is held here and stored soon."""
        try:
            return await self._epochs.raise_epoch(corpus)
        except ResponseError as error:
            epoch = self._epochs.known(corpus)
            if epoch is None or not is_write_refusal(error):
                raise
            self._unraised.add(corpus)
            self._try_again_soon()
            return epoch

    def _try_again_soon(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._try_again())

    async def _try_again(self) -> None:
        while self._moving or self._unraised or self._unseen:
            await asyncio.sleep(MOVING_SECONDS)
            names_by_slot = dict[int, set[str]]()
            try:
                now = await slots.look(self._runtime)
                names_by_slot = {slot: self._moving.pop(slot) for slot in set(self._moving) - now.moving}
                is_scan_due = bool(self._unseen) and not self._unseen & now.moving
                departures, arrivals = _names(names_by_slot, now, served=False), _names(names_by_slot, now, served=True)
                corpora = await self._on_settlement(Settlement(departures, arrivals, is_scan_due))
                if is_scan_due:
                    self._unseen = frozenset()
                if not now.ranges:
                    self._unraised.clear()  # without slots there is no tag to have epochs under
                await self.raise_epochs(corpora)
            except (ResponseError, ShardFailed) as error:
                for slot, names in names_by_slot.items():
                    self._moving.setdefault(slot, set()).update(names)
                    self._unraised.update(keys.parse_passage(name).corpus for name in names)  # some were read
                if self._unseen:
                    self._unraised.update(self._corpora())  # a scan that broke off may have changed any
                self._runtime.log(f"passages that arrived can't be read yet: {error}", "verbose")


def _names(by_slot: Mapping[int, set[str]], now: Slots, served: bool) -> list[str]:
    """Returns the passages of the slots that this shard serves now, or of those that it does not."""
    return [name for slot, names in by_slot.items() if now.serves(slot) == served for name in names]
