"""The keys of a cluster's shard, slot by slot, so that each is read once however slots move meanwhile.

Every shard of an execution reads the slots that it had when that began. A slot is read as a whole, and its records are
passed on only if it was wholly here before and after. One that was not is read later, when it has settled: here, or by
the shard that has it then. So no record is passed on twice, and none before it is sure. Loop's thread only.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

from shardqa import topology
from shardqa.topology import Node
from shardqa.worker.calls import WORKER, Calls

NODES = ("CLUSTER", "NODES")
GROUP = 256  # slots listed at once: one tick of Redis
BATCH = 2000  # keys whose records wait together for the second look, unless one slot has more
MOST = (1 << 31) - 1  # keys of one slot
PAUSE = 0.05  # seconds between two looks at a slot on its way
MOVE_SECONDS = 20.0  # seconds it may be on its way

Read = Callable[[list[bytes]], Awaitable[list[Any]]]  # keys -> records
Elsewhere = Callable[[int, Node], Awaitable[list[Any] | None]]
"""(slot, the shard that has it) -> its records; None: it has not settled there yet"""


class SlotMoving(Exception):
    """A slot is still moving."""


class SlotReader:
    def __init__(self, calls: Calls, matches: Callable[[bytes], bool], read: Read) -> None:
        self._calls = calls
        self._matches = matches
        self._read = read

    async def records(self, slots: Sequence[int], elsewhere: Elsewhere | None) -> AsyncIterator[list[Any]]:
        """Yields the records of slots, through `elsewhere` those that moved to another shard. Raises SlotMoving."""
        left: list[int] = []
        for start in range(0, len(slots), GROUP):
            group = slots[start : start + GROUP]
            keys = await self._listed(group)
            left += [slot for slot in group if slot not in keys]
            for batch in _batches(keys):
                records = await self._sure(batch)
                if records is None:
                    left += batch
                elif records:
                    yield records
        for slot in left:
            yield await self._late(slot, elsewhere)

    async def one(self, slot: int) -> list[Any] | None:
        """Returns the records of one slot; None where it is not wholly here."""
        keys = await self._listed([slot])
        return await self._sure(keys) if keys else None

    async def _late(self, slot: int, elsewhere: Elsewhere | None) -> list[Any]:
        until = asyncio.get_running_loop().time() + MOVE_SECONDS  # its own: a slow machine has hundreds to read here
        while asyncio.get_running_loop().time() < until:
            own, owner = await self._owner(slot)
            records: list[Any] | None = None
            if own:
                records = await self.one(slot)
            elif elsewhere is None:
                return []
            elif owner is not None:
                records = await elsewhere(slot, owner)
            if records is not None:
                return records
            await asyncio.sleep(PAUSE)
        raise SlotMoving(f"slot {slot} was on its way between shards for {MOVE_SECONDS:g} s: its keys were not read")

    async def _listed(self, slots: Sequence[int]) -> dict[int, list[bytes]]:
        """Returns the keys of slots that are wholly here, all of one moment."""
        commands = [NODES, *(("CLUSTER", "GETKEYSINSLOT", slot, MOST) for slot in slots)]
        nodes, *lists = await self._calls.run_async(WORKER, commands)
        here = _settled(nodes)
        pairs = zip(slots, lists, strict=True)
        return {slot: [key for key in keys if self._matches(key)] for slot, keys in pairs if here(slot)}

    async def _sure(self, keys: dict[int, list[bytes]]) -> list[Any] | None:
        """Returns the records of keys; None where one of their slots has begun to move."""
        records = await self._read([key for names in keys.values() for key in names])
        (nodes,) = await self._calls.run_async(WORKER, [NODES])
        here = _settled(nodes)
        return records if all(map(here, keys)) else None

    async def _owner(self, slot: int) -> tuple[bool, Node | None]:
        (reply,) = await self._calls.run_async(WORKER, [NODES])
        nodes = topology.parse(bytes(reply).decode("utf-8", "replace"))
        owner = next((node for node in nodes if node.role == "master" and node.owns(slot)), None)
        return owner is not None and "myself" in owner.flags, owner


def _settled(reply: bytes) -> Callable[[int], bool]:
    own = topology.myself(topology.parse(bytes(reply).decode("utf-8", "replace")))
    return lambda slot: own.owns(slot) and slot not in own.moving


def _batches(keys: dict[int, list[bytes]]) -> Iterable[dict[int, list[bytes]]]:
    batch: dict[int, list[bytes]] = {}
    size = 0
    for slot, names in keys.items():
        if batch and size + len(names) > BATCH:
            yield batch
            batch, size = {}, 0
        batch[slot] = names
        size += len(names)
    if batch:
        yield batch


def glob(pattern: bytes) -> Callable[[bytes], bool]:
    """Returns a test for the keys that SCAN's MATCH lets through."""
    if pattern == b"*":
        return lambda _: True
    expression, at = b"", 0
    while at < len(pattern):
        character = pattern[at : at + 1]
        at += 1
        if character == b"*":
            expression += b".*"
        elif character == b"?":
            expression += b"."
        elif character == b"[":
            members, at = _class(pattern, at)
            expression += members
        else:
            if character == b"\\" and at < len(pattern):
                character, at = pattern[at : at + 1], at + 1
            expression += re.escape(character)
    matcher = re.compile(expression, re.DOTALL)
    return lambda key: matcher.fullmatch(key) is not None


def _class(pattern: bytes, at: int) -> tuple[bytes, int]:
    """Returns the class after a `[` as a regular expression, and its end: the pattern's, without a `]`."""
    is_negated = pattern[at : at + 1] == b"^"
    at += is_negated
    members = b""
    while at < len(pattern) and pattern[at : at + 1] != b"]":
        if pattern[at : at + 1] == b"\\" and at + 1 < len(pattern):
            members += re.escape(pattern[at + 1 : at + 2])
            at += 2
        elif pattern[at + 1 : at + 2] == b"-" and at + 2 < len(pattern):
            low, high = sorted((pattern[at], pattern[at + 2]))
            members += re.escape(bytes([low])) + b"-" + re.escape(bytes([high]))
            at += 3
        else:
            members += re.escape(pattern[at : at + 1])
            at += 1
    if not members:
        return (b"." if is_negated else b"(?!)"), at + 1
    return b"[" + (b"^" if is_negated else b"") + members + b"]", at + 1
