"""Keyspace events of registrations: one after another, but where they await or `concurrency` allows more, bounded.

Events of a function that takes next to no time run many in one turn: their values are read at once, and one thread is
woken for all. Loop's thread only, but for `_run_all`.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from contextvars import Context
from dataclasses import dataclass, field
from itertools import chain, islice
from time import perf_counter
from typing import Any

from shardqa.worker.frames import Type
from shardqa.worker.gears.pipeline.execution_list import Execution
from shardqa.worker.gears.pipeline.readers import event_records
from shardqa.worker.gears.pipeline.run import Run, describe, enter
from shardqa.worker.gears.pipeline.suspension import Suspended
from shardqa.worker.gears.registrations.plain_run import PlainRun
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.registrations.registry import Registry
from shardqa.worker.gears.sources.registration_runs import RegistrationRuns
from shardqa.worker.gears.sources.streams import Streams
from shardqa.worker.io import Io
from shardqa.worker.runtime import KeyEvent

RUNNING = 16  # events of one registration under way at once, where they await
MAX_QUEUED = 1_000_000  # events of one registration that wait; past it they fail
TURN_EVENTS = 64  # events of one turn, where runs are short
SHORT_RUN = 0.0002  # seconds of such a run
TURNS_KEPT = 4  # turns; one that was short tells, as others may have waited for a processor
LISTED = 100  # waiting events of one registration that RG.DUMPEXECUTIONS shows
TURN_GAP = 0.01  # seconds between two turns of short runs, in which more events come together


@dataclass(slots=True)
class Line:
    """The events of one registration."""

    registration: Registration
    plain: bool  # its runs need no loop
    awaits: bool  # some of what its runs do is awaited: others may run meanwhile
    waiting: deque[KeyEvent] = field(default_factory=deque)
    busy: dict[str, deque[KeyEvent]] = field(default_factory=dict)  # key that runs, or will next -> its later events
    ready: deque[KeyEvent] = field(default_factory=deque)  # the next ones of such keys
    turns: int = 0  # under way
    in_turns: int = 0  # events, until they are done
    writers: dict[int, asyncio.Future[None]] = field(default_factory=dict)  # id of an event -> who waits for its end
    listed: dict[int, Execution] = field(default_factory=dict)  # id of an event -> as which it waits or waited
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=TURNS_KEPT))  # of a run, in each last turn
    woken: bool = False  # `_start` is about to come

    def queued(self) -> int:
        """Returns how many events wait or run; each counts from its push until it is done."""
        return len(self.waiting) + len(self.ready) + sum(map(len, self.busy.values())) + self.in_turns

    def is_short(self) -> bool:
        return self.plain and min(self.seconds, default=1.0) <= SHORT_RUN

    def take(self) -> list[KeyEvent]:
        """Returns the events of the next turn, of different keys: their values are read before any of them runs."""
        short = self.is_short()
        if self.turns >= (1 if short else RUNNING if self.awaits else self.registration.concurrency):
            return []
        events: list[KeyEvent] = []
        while len(events) < (TURN_EVENTS if short else 1) and (self.ready or self.waiting):
            if self.ready:
                events.append(self.ready.popleft())
                continue
            event = self.waiting.popleft()
            if event.key in self.busy:
                self.busy[event.key].append(event)
            else:
                self.busy[event.key] = deque()
                events.append(event)
        self.in_turns += len(events)
        return events

    def rest(self, events: int, seconds: float) -> float:
        """Returns the seconds of rest after a turn of so many events and seconds: half of the time is for clients."""
        if not self.is_short() or events == 1:
            return 0.0
        return TURN_GAP if len(self.waiting) < TURN_EVENTS else min(TURN_GAP, seconds)

    def done(self, event: KeyEvent) -> None:
        """Ends an event of a turn; the next one of its key may run."""
        self.in_turns -= 1
        later = self.busy[event.key]
        if later:
            self.ready.append(later.popleft())
        else:
            del self.busy[event.key]
        self.release(self.writers.pop(id(event), None))
        self.listed.pop(id(event), None)

    def next_ones(self) -> Iterator[KeyEvent]:
        return chain(self.ready, *self.busy.values(), self.waiting)

    def drop_waiting(self) -> list[KeyEvent]:
        """Returns the events that wait, which it has no more."""
        events = list(self.next_ones())
        for event in self.ready:
            del self.busy[event.key]
        for waiting in (self.ready, self.waiting, *self.busy.values()):
            waiting.clear()
        return events

    @staticmethod
    def release(writer: asyncio.Future[None] | None) -> None:
        if writer is not None and not writer.done():
            writer.set_result(None)


@dataclass(slots=True)
class Begun:
    """An event of a turn."""

    plain: PlainRun
    execution: Execution
    outcome: list[Any] | Suspended | BaseException | None = None


class Events:
    def __init__(self, io: Io, registry: Registry, runs: RegistrationRuns, streams: Streams) -> None:
        self._link = io.link
        self._calls = io.calls
        self._threads = io.threads
        self._registrations = registry.registrations
        self._executions = registry.executions
        self._runs = runs
        self._streams = streams
        self._lines: dict[int, Line] = {}  # by identity of the registration: one that goes may come again
        self._settled: list[bytes] = []  # numbers that the module is not told of yet
        self._executions.list_waiting = self._list_waiting
        self._registrations.count_queue(self._waiting)
        self._registrations.listen(lambda _: None, self._forget)

    def _waiting(self, registration: Registration) -> int:
        line = self._lines.get(id(registration))
        return 0 if line is None else line.queued()

    def _forget(self, registration: Registration) -> None:
        line = self._lines.get(id(registration))
        if line is None or not registration.is_dropped:
            return
        for event in line.drop_waiting():
            Line.release(line.writers.pop(id(event), None))
            if (execution := line.listed.pop(id(event), None)) is not None and not execution.is_done():
                self._executions.abort(execution)
            self.settle(event)

    def _list_waiting(self) -> None:
        for line in self._lines.values():
            registration = line.registration
            for event in islice(line.next_ones(), LISTED):
                if id(event) not in line.listed:
                    run, plan = Run(self._threads, registration.rights), registration.plan([])
                    line.listed[id(event)] = self._executions.wait(registration.session, run, plan, registration.id)

    def settle(self, event: KeyEvent) -> None:
        """Tells the module to forget an event, in one frame for all that end together."""
        if event.number and not self._settled:
            self._threads.loop.call_soon(self._tell)
        if event.number:
            self._settled.append(event.number.to_bytes(8, "little"))

    def _tell(self) -> None:
        ids, self._settled = self._settled, []
        self._link.send_list(Type.DONE, 0, ids)

    def lost(self, registration: Registration, event: KeyEvent, why: str) -> None:
        registration.statistics.trigger()
        registration.statistics.drop(f"ERR {event.event} of {event.key!r} was dropped: {why}")
        self.settle(event)

    def _done(self, line: Line, event: KeyEvent) -> None:
        if (execution := line.listed.get(id(event))) is not None and not execution.is_done():
            self._executions.finished(execution, [])  # it never began
        line.done(event)
        self.settle(event)

    async def run(self, registration: Registration, event: KeyEvent) -> None:
        """Returns when the event's function has ended or was dropped: for mode='sync', whose writers wait.

        It has the rights of who registered it and goes on where its writer leaves, as any event's.
        """
        if registration.reader == "StreamReader":
            await self._streams.settle(registration, event.key)
            return
        end = self._threads.loop.create_future()
        if self.push(registration, event):
            self._lines[id(registration)].writers[id(event)] = end
            await end

    def push(self, registration: Registration, event: KeyEvent) -> bool:
        """Queues an event; False for one that is dropped, and for a stream's, which is read in its order."""
        if registration.reader == "StreamReader":
            self._streams.notify(registration, event.key)
            self.settle(event)
            return False
        registration.statistics.trigger()
        line = self._lines.get(id(registration))
        if line is None:
            awaits = any(step.is_async for step in registration.steps)
            line = self._lines[id(registration)] = Line(registration, self._runs.is_plain(registration), awaits)
        if len(line.waiting) >= MAX_QUEUED:
            registration.statistics.drop(f"ERR an event of {event.key!r} was dropped: {MAX_QUEUED} wait already")
            self.settle(event)
            return False
        line.waiting.append(event)
        self._wake(line)
        return True

    def queued(self) -> int:
        return sum(line.queued() for line in self._lines.values())

    def _wake(self, line: Line, after: float = 0.0) -> None:
        """Wakes a line's coroutine, once for all events that come together."""
        if not line.woken:
            line.woken = True
            self._threads.loop.call_later(after, self._start, line)

    def _start(self, line: Line) -> None:
        line.woken = False
        if self._is_current(line) and (events := line.take()):  # others of the loop come between: it may hold the loop
            line.turns += 1
            self._threads.task(self._turn(line, events))
            self._wake(line)
        if not line.queued() and not self._registrations.has(line.registration):
            self._lines.pop(id(line.registration), None)

    def _is_current(self, line: Line) -> bool:
        """Returns whether the line's registration still exists, or has work that is left to finish."""
        return self._lines.get(id(line.registration)) is line

    async def _turn(self, line: Line, events: list[KeyEvent]) -> None:
        start = perf_counter()
        for event in [event for event in events if id(event) in line.listed and line.listed[id(event)].is_done()]:
            events.remove(event)
            line.registration.statistics.abort()
            self._done(line, event)
        try:
            if line.plain and events:
                await self._run_together(line, events)
            else:
                for event in events:
                    await self._run(line, event)
                    self._done(line, event)
        except BaseException as error:  # noqa: BLE001 - nobody waits for it: the statistics tell
            line.registration.statistics.last_error = describe(error)
        finally:
            line.turns -= 1
            self._wake(line, line.rest(len(events), perf_counter() - start))

    def _run_of(self, line: Line, event: KeyEvent) -> Run:
        run_there = line.listed.get(id(event))
        return Run(self._threads, line.registration.rights) if run_there is None else run_there.run

    async def _run(self, line: Line, event: KeyEvent) -> None:
        run, registration = self._run_of(line, event), line.registration
        run.task = asyncio.current_task()
        enter(run)
        try:
            (record,) = await event_records(self._calls, registration.rights, [event], registration.read_value)
            await self._runs.run(run, registration, [record], listed=True, in_queue=True)
        except BaseException as error:  # noqa: BLE001 - as above
            registration.statistics.last_error = describe(error)

    async def _run_together(self, line: Line, events: list[KeyEvent]) -> None:
        """Runs plain steps of events of different keys, one after another in one thread of the pool."""
        registration, begins = line.registration, list[Begun | None]([None] * len(events))
        try:
            records = await event_records(self._calls, registration.rights, events, registration.read_value)
            turn = [self._begun(line, event, record) for event, record in zip(events, records, strict=True)]
            begins = list(turn)
            async with self._registrations.turns_of(registration) or nullcontext():
                seconds = await self._threads.in_turn(registration.rights.context, _run_all, turn)
            line.seconds.append(seconds / len(turn))
        finally:
            for event, one in zip(events, begins, strict=True):
                self._end(line, event, one)

    def _begun(self, line: Line, event: KeyEvent, record: Any) -> Begun:
        executions, registration, run = self._executions, line.registration, self._run_of(line, event)
        plain = self._runs.plain_run(registration, run, record)
        execution = executions.begin(
            registration.session,
            run,
            plain.plan,
            keeps_results=self._registrations.has(registration),
            registration=registration.id,
        )
        return Begun(plain, execution)

    def _end(self, line: Line, event: KeyEvent, start: Begun | None) -> None:
        """Ends an event whose turn is over; an awaitable in it has a turn of its own."""
        if start is not None and isinstance(start.outcome, Suspended):
            line.plain, line.awaits = False, True  # the next ones go over the loop at once
            line.turns += 1
            self._threads.task(self._rest(line, event, start, start.outcome))
            return
        if start is not None:
            results = start.outcome if isinstance(start.outcome, list) else []
            self._executions.finished(start.execution, results)
        self._done(line, event)

    async def _rest(self, line: Line, event: KeyEvent, start: Begun, suspension: Suspended) -> None:
        run, results = start.plain.run, None
        run.task = asyncio.current_task()
        enter(run)
        try:
            results = await self._runs.finish(start.plain, suspension, in_queue=True)
        except BaseException as error:  # noqa: BLE001 - as above
            line.registration.statistics.last_error = describe(error)
        finally:
            self._executions.finished(start.execution, results or [])
            self._done(line, event)
            line.turns -= 1
            self._wake(line)


def _run_all(turn: list[Begun]) -> float:
    """Runs all events in a thread of the pool; returns the seconds that they took."""
    start = perf_counter()
    for event in turn:
        try:
            event.outcome = Context().run(event.plain.begin)
        except BaseException as error:  # noqa: BLE001 - of this event alone
            event.outcome = error
            event.plain.registration.statistics.last_error = describe(error)
    return perf_counter() - start
