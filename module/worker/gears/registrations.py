"""What is registered on this shard, and what each registration has done.

Owned by the event loop's thread: changed and read there only.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shardqa.module.worker.gears.execution import Step


@dataclass(slots=True)
class Statistics:
    """Times in milliseconds."""

    triggered: int = 0
    success: int = 0
    failures: int = 0
    aborted: int = 0
    last: float = 0.0
    total: float = 0.0
    last_error: str | None = None

    def finished(self, started: float, error: str | None) -> None:
        """`started` is of time.perf_counter()."""
        self.last = (time.perf_counter() - started) * 1000
        self.total += self.last
        if error is None:
            self.success += 1
        else:
            self.failures += 1
            self.last_error = error


@dataclass(slots=True)
class Registration:
    """The fields of a REGISTER frame, and what runs."""

    id: str
    session: str  # id
    user: str  # whose rights its functions have
    reader: str  # 'KeysReader' or 'CommandReader'
    mode: str
    description: str | None
    steps: tuple[Step, ...]
    convert: bool  # convertToStr
    prefix: str = ""  # KeysReader
    trigger: str = ""  # CommandReader
    events: tuple[str, ...] | None = None  # None: all
    types: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None
    read_value: bool = True
    statistics: Statistics = field(default_factory=Statistics)

    def wire(self) -> list[str]:
        """The items of this registration in a REGISTER frame."""
        items = [self.id, self.reader, self.mode, self.description or "", self.prefix, self.trigger]
        for names in (self.events, self.types, self.commands):
            items += [str(len(names or ())), *(names or ())]
        return items

    def dump(self) -> list[Any]:
        """As RG.DUMPREGISTRATIONS shows it."""
        s = self.statistics
        done = s.success + s.failures
        data = [
            *("mode", self.mode, "numTriggered", s.triggered, "numSuccess", s.success, "numFailures", s.failures),
            *("numAborted", s.aborted, "lastRunDurationMS", round(s.last), "totalRunDurationMS", round(s.total)),
            *("avgRunDurationMS", f"{s.total / done if done else 0:f}", "lastError", s.last_error),
            *("args", self._arguments()),
        ]
        return [
            *("id", self.id, "reader", self.reader, "desc", self.description, "RegistrationData", data),
            *("PD", f"{{'sessionName':'{self.session}', 'depsList':[]}}", "ExecutionThreadPool", "DefaultPool"),
        ]

    def _arguments(self) -> list[Any]:
        if self.reader == "CommandReader":
            return ["trigger", self.trigger, "inorder", 0]
        shown = [None if names is None else list(names) for names in (self.events, self.types, self.commands)]
        return ["regex", self.prefix, "eventTypes", shown[0], "keyTypes", shown[1], "hookCommands", shown[2]]


class Registrations:
    def __init__(self) -> None:
        self._by_id: dict[str, Registration] = {}
        self._by_trigger: dict[str, Registration] = {}

    def __iter__(self) -> Iterator[Registration]:
        return iter(self._by_id.values())

    def get(self, id: str) -> Registration | None:
        return self._by_id.get(id)

    def triggered_by(self, trigger: str) -> Registration | None:
        return self._by_trigger.get(trigger)

    def add(self, registration: Registration) -> None:
        assert registration.id not in self._by_id
        self._by_id[registration.id] = registration
        if registration.reader == "CommandReader":
            self._by_trigger[registration.trigger] = registration

    def remove(self, id: str) -> Registration | None:
        registration = self._by_id.pop(id, None)
        if registration is not None and self._by_trigger.get(registration.trigger) is registration:
            del self._by_trigger[registration.trigger]
        return registration
