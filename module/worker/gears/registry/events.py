"""Keyspace events of registrations: one after another, but where they await or `concurrency` allows more, bounded.

Events of a function that takes next to no time run many in one turn: their values are read at once, and one thread is
woken for all. Loop's thread only, but for `_run_all`.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from contextvars import Context
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from shardqa.module.worker.gears.commands.rg_commands import Commands
from shardqa.module.worker.gears.pipeline.execution_list import Execution
from shardqa.module.worker.gears.pipeline.readers import Happened, event_record, event_records
from shardqa.module.worker.gears.pipeline.run import Run, describe, enter
from shardqa.module.worker.gears.pipeline.steps import Suspended
from shardqa.module.worker.gears.registry.plain_run import RunHere, runs_here
from shardqa.module.worker.gears.registry.registrations import Registration
from shardqa.module.worker.shard import Shard

RUNNING = 16  # events of one registration under way at once, where they await
MAX_QUEUED = 1_000_000  # events of one registration that wait; past it they fail
TOGETHER = 64  # events of one turn, where runs are short
SHORT = 0.0002  # seconds of such a run
LATELY = 4  # turns; one that was short tells, as others may have waited for a processor
GAP = 0.01  # seconds between two turns of short runs, in which more events come together


@dataclass(slots=True)
class Line:
    """What waits for one registration."""

    registration: Registration
    plain: bool  # its runs need no loop
    awaits: bool  # some of what its runs do is awaited: others may run meanwhile
    waiting: deque[Happened] = field(default_factory=deque)
    busy: dict[str, deque[Happened]] = field(default_factory=dict)  # key that runs, or will next -> its later events
    ready: deque[Happened] = field(default_factory=deque)  # the next ones of such keys
    turns: int = 0  # under way
    taken: int = 0  # events of turns, until they are done
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=LATELY))  # of a run, in each of the last turns
    woken: bool = False  # `_start` is about to come

    def queued(self) -> int:
        """Events that wait or run: each in one place, from its push until it is done."""
        return len(self.waiting) + len(self.ready) + sum(map(len, self.busy.values())) + self.taken

    def is_short(self) -> bool:
        return self.plain and min(self.seconds, default=1.0) <= SHORT

    def take(self) -> list[Happened]:
        """The events of the next turn: of different keys, whose values are read before any of them runs."""
        short = self.is_short()
        if self.turns >= (1 if short else RUNNING if self.awaits else self.registration.concurrency):
            return []
        taken: list[Happened] = []
        while len(taken) < (TOGETHER if short else 1) and (self.ready or self.waiting):
            if self.ready:
                taken.append(self.ready.popleft())
                continue
            happened = self.waiting.popleft()
            if happened.key in self.busy:
                self.busy[happened.key].append(happened)
            else:
                self.busy[happened.key] = deque()
                taken.append(happened)
        self.taken += len(taken)
        return taken

    def rest(self, events: int, seconds: float) -> float:
        """Seconds until the next turn, when one of so many events took so long: half of the time is Redis' clients'."""
        if not self.is_short() or events == 1:
            return 0.0
        return GAP if len(self.waiting) < TOGETHER else min(GAP, seconds)

    def done(self, key: str) -> None:
        """One that was taken."""
        self.taken -= 1
        later = self.busy[key]
        if later:
            self.ready.append(later.popleft())
        else:
            del self.busy[key]


@dataclass(slots=True)
class Begun:
    """One event of a turn."""

    here: RunHere
    execution: Execution
    met: list[Any] | Suspended | BaseException | None = None


class Events:
    def __init__(self, shard: Shard, commands: Commands) -> None:
        self._shard = shard
        self._commands = commands
        self._lines: dict[str, Line] = {}
        shard.registrations.count_queue(self._waiting)
        shard.registrations.listen(lambda _: None, self._forget)

    def _waiting(self, registration: Registration) -> int:
        line = self._lines.get(registration.id)
        return 0 if line is None else line.queued()

    def _forget(self, registration: Registration) -> None:
        self._lines.pop(registration.id, None)

    def push(self, registration: Registration, happened: Happened) -> None:
        if registration.reader == "StreamReader":
            self._commands.streams.notify(registration, happened.key)
            return
        line = self._lines.get(registration.id)
        if line is None:
            awaits = any(step.is_async for step in registration.steps)
            line = self._lines[registration.id] = Line(registration, self._is_plain(registration), awaits)
        if len(line.waiting) >= MAX_QUEUED:
            registration.statistics.trigger()
            registration.statistics.drop(f"ERR an event of {happened.key!r} was dropped: {MAX_QUEUED} wait already")
            return
        line.waiting.append(happened)
        self._wake(line)

    def queued(self) -> int:
        return sum(line.queued() for line in self._lines.values())

    def _is_plain(self, registration: Registration) -> bool:
        return runs_here(registration) and (registration.plan([]).local or not self._shard.cluster.enabled)

    def _wake(self, line: Line, after: float = 0.0) -> None:
        """Once for all that come together."""
        if not line.woken:
            line.woken = True
            self._shard.threads.loop.call_later(after, self._start, line)

    def _start(self, line: Line) -> None:
        line.woken = False
        while self._is_current(line) and (events := line.take()):
            line.turns += 1
            self._shard.threads.task(self._turn(line, events))

    def _is_current(self, line: Line) -> bool:
        """Its registration is still there."""
        return self._lines.get(line.registration.id) is line

    async def _turn(self, line: Line, events: list[Happened]) -> None:
        started = perf_counter()
        try:
            if line.plain:
                await self._run_together(line, events)
            else:
                for happened in events:
                    await self._run(line.registration, happened)
                    line.done(happened.key)
        except BaseException as error:  # noqa: BLE001 - nobody waits for it: the statistics tell
            line.registration.statistics.last_error = describe(error)
        finally:
            line.turns -= 1
            self._wake(line, line.rest(len(events), perf_counter() - started))

    async def _run(self, registration: Registration, happened: Happened) -> None:
        run = Run(self._shard.threads, registration.rights)
        enter(run)
        try:
            record = await event_record(self._shard, registration.rights, happened, registration.read_value)
            await self._commands.run_registration(run, registration, [record], kept=True, in_queue=True)
        except BaseException as error:  # noqa: BLE001 - as above
            registration.statistics.last_error = describe(error)

    async def _run_together(self, line: Line, events: list[Happened]) -> None:
        """Plain steps of events of different keys, one after another in one thread of the pool."""
        registration, begun = line.registration, list[Begun | None]([None] * len(events))
        try:
            records = await event_records(self._shard, registration.rights, events, registration.read_value)
            turn = [self._begun(registration, record) for record in records]
            begun = list(turn)
            async with self._shard.registrations.turns_of(registration) or nullcontext():
                seconds = await self._shard.threads.in_turn(registration.rights.context, _run_all, turn)
            line.seconds.append(seconds / len(turn))
        finally:
            for happened, one in zip(events, begun, strict=True):
                self._end(line, happened.key, one)

    def _begun(self, registration: Registration, record: Any) -> Begun:
        executions = self._shard.executions
        run = Run(self._shard.threads, registration.rights)
        here = RunHere(self._shard, registration, run, record)
        execution = executions.begin(registration.session, run, here.plan, kept=True, registration=registration.id)
        return Begun(here, execution)

    def _end(self, line: Line, key: str, begun: Begun | None) -> None:
        """Of one event whose turn is over; what it has to await is a turn of its own."""
        if begun is not None and isinstance(begun.met, Suspended):
            line.plain, line.awaits = False, True  # the next ones go over the loop at once
            line.turns += 1
            self._shard.threads.task(self._rest(line, key, begun, begun.met))
            return
        if begun is not None:
            results = begun.met if isinstance(begun.met, list) else []
            self._shard.executions.finished(begun.execution, results)
        line.done(key)

    async def _rest(self, line: Line, key: str, begun: Begun, met: Suspended) -> None:
        run, results = begun.here.run, None
        enter(run)
        try:
            results = await begun.here.rest(self._commands, met, in_queue=True)
        except BaseException as error:  # noqa: BLE001 - as above
            line.registration.statistics.last_error = describe(error)
        finally:
            self._shard.executions.finished(begun.execution, results or [])
            line.done(key)
            line.turns -= 1
            self._wake(line)


def _run_all(turn: list[Begun]) -> float:
    """In the pool. Seconds that it took."""
    started = perf_counter()
    for begun in turn:
        try:
            begun.met = Context().run(begun.here.begin)
        except BaseException as error:  # noqa: BLE001 - of this event alone
            begun.met = error
            begun.here.registration.statistics.last_error = describe(error)
    return perf_counter() - started
