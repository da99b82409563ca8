"""The registrations of this shard, and the statistics of each.

Owned by the event loop's thread: changed and read there only, but for the statistics.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from shardqa.worker import resp
from shardqa.worker.calls import Command, Rights, follow
from shardqa.worker.gears.histogram import RunHistogram
from shardqa.worker.gears.pipeline.plan import GIVEN, GIVEN_TO_ALL, RunPlan
from shardqa.worker.gears.pipeline.run import Run, describe
from shardqa.worker.gears.pipeline.steps import GLOBAL, GearsStep
from shardqa.worker.gears.pipeline.turns import Turns
from shardqa.worker.gears.registrations.hooked_commands import HookedCommand
from shardqa.worker.gears.settings import WorkerSettings

TIMER = "TimeEvent"  # the reader of what registerTE registers
FIRST_RUN = 6.0  # times as long as others may a function's first run take: it loads its model, or imports a package
_counting = threading.Lock()  # of all of them: misses are counted by the thread that answers them


@dataclass(slots=True)
class RegistrationStatistics:
    """The statistics of a registration; times in milliseconds. Any thread may count."""

    triggered: int = 0
    success: int = 0
    failures: int = 0
    aborted: int = 0
    last: float = 0.0
    total: float = 0.0
    last_error: str | None = None
    last_lag: float = 0.0  # of a stream's message until it was done
    total_lag: float = 0.0
    lags: int = 0
    runs: RunHistogram = field(default_factory=RunHistogram)

    def lagged(self, milliseconds: float) -> None:
        self.last_lag = milliseconds
        self.total_lag += milliseconds
        self.lags += 1

    def trigger(self) -> None:
        with _counting:
            self.triggered += 1

    def abort(self) -> None:
        """Counts a run that somebody stopped: its client left, or by RG.ABORTEXECUTION."""
        with _counting:
            self.aborted += 1

    def drop(self, reason: str) -> None:
        """Counts an event that did not run to its end though nobody stopped it."""
        with _counting:
            self.failures += 1
            self.last_error = reason

    def broken(self, run: Run, error: BaseException) -> None:
        """Counts a run that was broken off."""
        if run.stopped:
            self.abort()
        else:
            self.drop(describe(error))

    def done(self, start: float, error: str | None) -> None:
        """Counts a whole run: its trigger, and its end."""
        self.trigger()
        self.finished(start, error)

    def finished(self, start: float, error: str | None) -> None:
        """Counts the end of a run; `start` is a time of time.perf_counter()."""
        with _counting:
            self.last = (time.perf_counter() - start) * 1000
            self.total += self.last
            self.runs.add(self.last * 1000)
            if error is None:
                self.success += 1
            else:
                self.failures += 1
                self.last_error = error


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of StreamReader's register."""

    batch: int = 1  # messages that start an execution
    duration: int = 0  # milliseconds after which fewer do; 0: none
    policy: str = "continue"  # onFailedPolicy
    retry: float = 1.0  # seconds between two tries
    trim: bool = True


@dataclass(slots=True)
class Registration:
    """A registration: the fields of its REGISTER frame, and its steps."""

    id: str
    session: str  # id
    user: str  # who registered it
    reader: str  # 'KeysReader', 'StreamReader', 'CommandReader' or TIMER
    mode: str
    description: str | None
    steps: tuple[GearsStep, ...]
    convert: bool  # convertToStr
    collect: bool = True
    prefix: str = ""  # KeysReader; of the first key of a hooked command
    trigger: str = ""  # CommandReader; empty: it hooks a command
    events: tuple[str, ...] | None = None  # None: all
    types: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None  # that it hooks
    read_value: bool = True
    in_order: bool = False  # CommandReader: one trigger after another
    privileged: bool = False  # runs with the rights of who registered it also for a client that has less
    stream: StreamOptions = field(default_factory=StreamOptions)
    stream_group: str = ""  # its consumer group in each stream
    status: str = "OK"  # of a StreamReader, else PAUSED; or ABORTED, by its policy
    concurrency: int = 1  # pieces of its plain code that may run at once; a CommandReader's are not counted
    period: float = 0.0  # seconds between two runs of a TIMER
    idle: float = 0.0  # seconds that a run may take; 0: as all may
    is_dropped: bool = False  # what waits goes with it; else it is finished, by a registration that goes
    statistics: RegistrationStatistics = field(default_factory=RegistrationStatistics)
    hooked: tuple[HookedCommand, ...] = ()  # the same as `commands`, with what the module must know of each

    def title(self) -> bytes:
        """Returns the name for the log of a worker that is killed for this registration."""
        what = f"trigger {self.trigger!r}" if self.trigger else f"keys {self.prefix!r}"
        if self.commands:
            what = f"commands {' '.join(self.commands)}, {what}"
        return f"registration {self.id} ({what}) of session {self.session}".encode("utf-8", "replace")

    def name(self) -> str:
        """Returns the registration's name for people: its trigger, or its pattern of keys."""
        if self.commands:
            return f"{' '.join(self.commands)} {self.prefix}"
        return self.trigger or self.prefix

    def plan(self, records: list[Any]) -> RunPlan:
        """Returns the plan over these records: on all shards for triggers and for steps that move records."""
        reader = GIVEN_TO_ALL if self.trigger and self.mode == "async" else GIVEN
        moves = reader == GIVEN_TO_ALL or any(step.kind in GLOBAL for step in self.steps)
        return RunPlan(reader, records, self.steps, self.convert, self.mode != "async" or not moves, self.collect)

    @property
    def rights(self) -> Rights:
        """Returns the author's rights. Where writers wait for a KeysReader, its function's writes trigger none."""
        rights = Rights.of_session(self.session, self.user)
        return rights.nested() if self.reader == "KeysReader" and self.mode == "sync" else rights

    def enter(self, run: Run) -> None:
        """Gives the run of a client the rights that the registration asks for."""
        run.group = self.rights.context
        if self.privileged:
            run.rights = self.rights

    def follows(self) -> Command | None:
        """Returns the command to ask the module whether the user may see the keys; None where it sees none."""
        if self.reader == TIMER or self.trigger:
            return None
        writes = self.reader == "CommandReader" and any(command.writes for command in self.hooked)
        return follow("w" if writes else "r", self.prefix)

    def wire(self) -> list[str]:
        """Returns the items of this registration in a REGISTER frame."""
        items = [self.id, self.reader, self.mode, self.description or "", self.prefix, self.trigger]
        commands = tuple(command.wire() for command in self.hooked)
        for names in (self.events, self.types, commands):
            items += [str(len(names or ())), *(names or ())]
        return items

    def dump(self, queue: int | None) -> list[Any]:
        """Returns the entry of RG.DUMPREGISTRATIONS; with `queue`, also the fields that RedisGears lacks."""
        s = self.statistics
        runs = s.success + s.failures
        data = resp.pairs(
            mode=self.mode,
            numTriggered=s.triggered,
            numSuccess=s.success,
            numFailures=s.failures,
            numAborted=s.aborted,
            lastRunDurationMS=round(s.last),
            totalRunDurationMS=round(s.total),
            avgRunDurationMS=f"{s.total / runs if runs else 0:f}",
        )
        if self.reader == "StreamReader":
            average = s.total_lag / s.lags if s.lags else 0
            data += ["lastEstimatedLagMS", round(s.last_lag), "avgEstimatedLagMS", f"{average:f}"]
        data += ["lastError", s.last_error, "args", self._arguments()]
        if self.reader == "StreamReader":
            data += ["status", self.status]
        fields = resp.pairs(
            id=self.id,
            reader=self.reader,
            desc=self.description,
            RegistrationData=data,
            PD=f"{{'sessionName':'{self.session}', 'depsList':[]}}",
            ExecutionThreadPool="DefaultPool",
        )
        if queue is not None:
            statistics = resp.pairs(
                queue=queue,
                p50RunDurationUS=s.runs.percentile(0.5),
                p99RunDurationUS=s.runs.percentile(0.99),
                runHistogramUS=s.runs.pairs(),
            )
            fields += ["Statistics", statistics]
        return fields

    def _arguments(self) -> list[Any]:
        if self.reader == "CommandReader" and self.commands:
            return ["hook", self.commands[0], "keyprefix", self.prefix]
        if self.reader == "CommandReader":
            return ["trigger", self.trigger, "inorder", int(self.in_order)]
        if self.reader == TIMER:
            return ["seconds", f"{self.period:g}", "key", self.prefix or None]
        if self.reader == "StreamReader":
            return ["batchSize", self.stream.batch, "durationMS", self.stream.duration, "stream", self.prefix]
        lists = [None if names is None else list(names) for names in (self.events, self.types, self.commands)]
        return resp.pairs(regex=self.prefix, eventTypes=lists[0], keyTypes=lists[1], hookCommands=lists[2])


class Registrations:
    def __init__(self, stall: float, settings: WorkerSettings) -> None:
        self._stall = stall  # seconds a function may take, if nothing else is said
        self._settings = settings
        self._by_id: dict[str, Registration] = {}
        self._by_trigger: dict[str, Registration] = {}
        self._added: list[Callable[[Registration], None]] = []
        self._removed: list[Callable[[Registration], None]] = []
        self._queues: list[Callable[[Registration], int]] = []
        self._turns: dict[str, Turns] = {}  # by id; of readers of keys and streams
        self._run_once: set[str] = set()  # ids of those that have run in this worker

    def count_queue(self, count: Callable[[Registration], int]) -> None:
        """Adds a function that says how much of a registration's work waits or runs in one place."""
        self._queues.append(count)

    def queue_of(self, registration: Registration) -> int:
        return sum(count(registration) for count in self._queues)

    def listen(self, on_add: Callable[[Registration], None], on_removal: Callable[[Registration], None]) -> None:
        self._added.append(on_add)
        self._removed.append(on_removal)

    def turns_of(self, registration: Registration) -> Turns | None:
        """Returns the turns of its runs; None where they are not bounded (CommandReader), and for one that is gone."""
        return self._turns.get(registration.id)

    def prepare(self, registration: Registration, run: Run) -> None:
        """Gives a run of the registration its name, bound and turns."""
        run.name, run.seconds = registration.title(), self._seconds_of(registration)
        run.turns = self.turns_of(registration)

    def _seconds_of(self, registration: Registration) -> float:
        """Returns how many seconds a run may hold a thread; the first run may load what it needs."""
        if registration.reader == "CommandReader":
            return self._stall  # its client waits no longer
        usual = max(self._stall, self._settings.number("ExecutionMaxIdleTime") / 1000)
        seconds = max(usual, registration.idle)
        return seconds if registration.id in self._run_once else max(seconds, FIRST_RUN * usual)

    def idle_of(self, id: str) -> float:
        """Returns the seconds without progress that end an execution; `id` is its registration's, or empty."""
        registration = self._by_id.get(id)
        return self._settings.idle() if registration is None else registration.idle or self._settings.idle()

    def has_run(self, registration: Registration) -> None:
        self._run_once.add(registration.id)

    def clear_statistics(self) -> None:
        for registration in self:
            registration.statistics = RegistrationStatistics()

    def __iter__(self) -> Iterator[Registration]:
        return iter(self._by_id.values())

    def get(self, id: str) -> Registration | None:
        return self._by_id.get(id)

    def has(self, registration: Registration) -> bool:
        """Returns whether this very registration is there, and no later one of its id."""
        return self._by_id.get(registration.id) is registration

    def triggered_by(self, trigger: str) -> Registration | None:
        return self._by_trigger.get(trigger)

    def add(self, registration: Registration) -> None:
        assert registration.id not in self._by_id
        self._by_id[registration.id] = registration
        if registration.trigger:
            self._by_trigger[registration.trigger] = registration
        if registration.reader != "CommandReader":
            self._turns[registration.id] = Turns(registration.concurrency)
        for listener in self._added:
            listener(registration)

    def remove(self, id: str, drop: bool) -> Registration | None:
        """Removes a registration: what runs ends, and what waits is run, too, or dropped."""
        registration = self._by_id.pop(id, None)
        if registration is not None and self._by_trigger.get(registration.trigger) is registration:
            del self._by_trigger[registration.trigger]
        if registration is not None:
            registration.is_dropped = drop
            self._turns.pop(id, None)
            self._run_once.discard(id)
            for listener in self._removed:
                listener(registration)
        return registration
