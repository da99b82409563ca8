"""Keyspace events of registrations: those of one key run one after another, others side by side, bounded.

Loop's thread only.
"""

from collections import deque
from dataclasses import dataclass, field

from shardqa.module.worker.gears.commands import Commands
from shardqa.module.worker.gears.execution import Execution, enter
from shardqa.module.worker.gears.readers import event_record
from shardqa.module.worker.gears.registrations import Registration
from shardqa.module.worker.shard import Shard

RUNNING = 16  # events of one registration that run at once
MAX_QUEUED = 1_000_000  # events of one registration that wait; past it they are counted as aborted


@dataclass(frozen=True, slots=True)
class Happened:
    event: str
    key: str
    type: str


@dataclass(slots=True)
class Line:
    """What waits for one registration."""

    waiting: deque[Happened] = field(default_factory=deque)
    busy: dict[str, deque[Happened]] = field(default_factory=dict)  # key that runs now -> its later events


class Events:
    def __init__(self, shard: Shard, commands: Commands) -> None:
        self._shard = shard
        self._commands = commands
        self._lines: dict[str, Line] = {}
        shard.registrations.count_queue(self._waiting)
        shard.registrations.listen(lambda _: None, self._forget)

    def _waiting(self, registration: Registration) -> int:
        """Those under way are counted where they run."""
        line = self._lines.get(registration.id)
        return 0 if line is None else len(line.waiting) + sum(len(later) for later in line.busy.values())

    def _forget(self, registration: Registration) -> None:
        line = self._lines.get(registration.id)
        if line is not None and not line.busy:
            del self._lines[registration.id]

    def push(self, registration: Registration, happened: Happened) -> None:
        if registration.reader == "StreamReader":
            self._commands.streams.notify(registration, happened.key)
            return
        line = self._lines.setdefault(registration.id, Line())
        if happened.key in line.busy:
            line.busy[happened.key].append(happened)
        elif len(line.waiting) >= MAX_QUEUED:
            registration.statistics.aborted += 1
        else:
            line.waiting.append(happened)
            self._start(registration, line)

    def queued(self) -> int:
        return sum(len(line.waiting) + len(line.busy) for line in self._lines.values())

    def _start(self, registration: Registration, line: Line) -> None:
        while line.waiting and len(line.busy) < RUNNING:
            happened = line.waiting.popleft()
            if happened.key in line.busy:
                line.busy[happened.key].append(happened)
            else:
                line.busy[happened.key] = deque([happened])
                self._shard.threads.task(self._run_key(registration, line, happened.key))

    async def _run_key(self, registration: Registration, line: Line, key: str) -> None:
        events = line.busy[key]
        while events and self._shard.registrations.get(registration.id) is registration:
            await self._run(registration, events.popleft())
        del line.busy[key]
        self._start(registration, line)

    async def _run(self, registration: Registration, happened: Happened) -> None:
        execution = Execution(self._shard.threads, registration.rights)
        enter(execution)
        try:
            record = await event_record(
                self._shard, registration.rights, happened.key, happened.event, happened.type, registration.read_value
            )
            await self._commands.run_registration(execution, registration, [record], kept=True)
        except BaseException as error:  # noqa: BLE001 - nobody waits for it: the statistics tell
            registration.statistics.last_error = repr(error)
