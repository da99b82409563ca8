"""`states:` keys: passages' lower states beside their word pieces, so that the next worker need not compute them anew.

    states:<corpus>:{b0017}:<id>:<n>     a string (ai/stored_states.py), which expires: volatile policies may evict it

A new worker reads them back, also one whose shard got the slot or was promoted. They are worth nothing but time: each
refusal is passed over. A text that goes takes its key along; of one that changed it is ignored, then written over. How
much all of them take is counted by following the keys. The worker's loop only; nothing where STORED_STATES is 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from redis import ResponseError

from shardqa import keys

if TYPE_CHECKING:
    from shardqa.gears_functions.runtime import Argument, KeyEvent, Runtime

LIFE = 86_400  # seconds
RENEWED = LIFE / 2  # seconds between two times that all of them begin their life anew
REFUSED = 60.0  # seconds after a refusal in which nothing is written
SCAN_COUNT = 1_000  # keys looked at per SCAN
AT_ONCE = 500  # keys asked about in one tick
RETRY = 0.5  # seconds until the next attempt, where the keyspace can't be read


class StoredStates:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._budget = runtime.stored_states()
        self._sizes: dict[str, int] = {}  # bytes by key
        self._bytes = 0
        self._known = asyncio.Event()  # set once all keys were looked at
        self._not_before = 0.0  # monotonic, of the next write
        self._renewed = monotonic()

    @property
    def is_on(self) -> bool:
        return self._budget > 0

    def follow(self) -> None:
        if self.is_on:
            self._runtime.watch(keys.STATES, self._changed, self._resync)

    def keys_of(self, passages: Iterable[str]) -> list[str]:
        """Those that there are."""
        return [name for passage in passages if (name := keys.states_of_passage(passage)) in self._sizes]

    async def read(self, passages: Sequence[str]) -> list[bytes | None]:
        """Their values, whatever they are; b"" for one that has none, None where nothing is to be stored at all."""
        if not self.is_on:
            return [None] * len(passages)
        await self._known.wait()
        names = [keys.states_of_passage(passage) for passage in passages]
        there = [name for name in names if name in self._sizes]
        replies = await self._runtime.calls([("GETEX", name, "EX", LIFE) for name in there]) if there else []
        found = dict(zip(there, replies, strict=True))
        return [value if isinstance(value := found.get(name), bytes) else b"" for name in names]

    async def write(self, values: dict[str, bytes]) -> None:
        """Values by passage, as far as the budget goes."""
        if not values or monotonic() < self._not_before:
            return
        commands: list[tuple[Argument, ...]] = []
        for passage, value in values.items():
            name = keys.states_of_passage(passage)
            if self._bytes - self._sizes.get(name, 0) + len(value) > self._budget:
                break
            self._put(name, len(value))
            commands += [("SET", name, value, "EX", LIFE), ("EXISTS", keys.tokens_of_passage(passage))]
        replies = await self._runtime.calls(commands) if commands else []
        gone = list[str]()
        for command, stored, there in zip(commands[::2], replies[::2], replies[1::2], strict=True):
            if isinstance(stored, Exception):
                self._refused(str(command[1]), stored)
            elif there == 0:  # it was deleted just before
                gone.append(str(command[1]))
        if gone:
            await self._runtime.calls([("UNLINK", *gone)])
        self._tell()

    async def renew(self) -> None:
        """Now and then: those of passages that are still here begin their life anew."""
        if monotonic() - self._renewed < RENEWED:
            return
        self._renewed, names = monotonic(), list(self._sizes)
        for first in range(0, len(names), AT_ONCE):
            page = names[first : first + AT_ONCE]
            await self._runtime.calls([("EXPIRE", name, LIFE) for name in page])

    def _refused(self, name: str, error: Exception) -> None:
        self._put(name, 0)
        self._not_before = monotonic() + REFUSED
        self._runtime.log(f"{name!r} is not stored, and nothing is lost: {error}", "verbose")

    def _put(self, name: str, size: int) -> None:
        """0: there is none."""
        self._bytes += size - self._sizes.pop(name, 0)
        if size:
            self._sizes[name] = size

    def _tell(self) -> None:
        self._runtime.stat("states_stored", len(self._sizes))
        self._runtime.stat("states_stored_bytes", self._bytes)

    # ---- following the keys

    async def _changed(self, events: Sequence[KeyEvent]) -> None:
        if not self._known.is_set():
            return
        last = {event.key: event for event in events}
        for name, event in last.items():
            if event.type == "none":
                self._put(name, 0)
        await self._measure([name for name, event in last.items() if event.type != "none" and name not in self._sizes])
        self._tell()

    async def _resync(self, reason: str) -> None:
        """On a replica, which may not read them, they stay unknown until it is promoted."""
        self._known.clear()
        while self._runtime.role() == "master" and not self._known.is_set():
            try:
                await self._scan()
                self._known.set()
            except ResponseError as error:
                self._runtime.log(f"states: keys can't be looked at yet: {error}", "verbose")
                await asyncio.sleep(RETRY)
        self._tell()

    async def _scan(self) -> None:
        self._sizes, self._bytes, cursor = {}, 0, b"0"
        while True:
            cursor, found = await self._runtime.call("SCAN", cursor, "MATCH", keys.STATES + "*", "COUNT", SCAN_COUNT)
            await self._measure([name.decode("utf-8", "surrogateescape") for name in found])
            if cursor == b"0":
                return

    async def _measure(self, names: Sequence[str]) -> None:
        for first in range(0, len(names), AT_ONCE):
            page = names[first : first + AT_ONCE]
            replies = await self._runtime.calls([("STRLEN", name.encode("utf-8", "surrogateescape")) for name in page])
            for name, size in zip(page, replies, strict=True):
                self._put(name, size if isinstance(size, int) else 0)
