"""GearsBuilder: what a script says it wants. It only records steps, a run or a registration; nothing runs here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardqa.module.worker.gears.execution import Kind, Step
from shardqa.module.worker.gears.registrations import Registration

if TYPE_CHECKING:
    from shardqa.module.worker.gears.sessions import Session

READERS = ("KeysReader", "KeysOnlyReader", "CommandReader", "PythonReader", "ShardsIDReader")
MODES = ("async", "async_local")
KEY_TYPES = ("string", "list", "set", "zset", "hash", "stream", "module", "empty")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run a script asked for."""

    reader: str
    argument: Any
    steps: tuple[Step, ...]
    convert: bool
    local: bool  # this shard alone
    collect: bool
    no_scan: bool
    read_value: bool


class Builder:
    def __init__(
        self, session: Session, reader: str = "KeysReader", defaultArg: Any = "*", desc: str | None = None
    ) -> None:
        if reader not in READERS:
            raise ValueError(f"reader {reader!r} does not exist here; choose one of {', '.join(READERS)}")
        self._session = session
        self._reader = reader
        self._default = defaultArg
        self._description = desc
        self._steps: list[Step] = []

    def map(self, function: Callable[[Any], Any]) -> Builder:
        return self._step(Kind.MAP, function)

    def flatmap(self, function: Callable[[Any], Any]) -> Builder:
        return self._step(Kind.FLATMAP, function)

    def filter(self, function: Callable[[Any], Any]) -> Builder:
        return self._step(Kind.FILTER, function)

    def foreach(self, function: Callable[[Any], Any]) -> Builder:
        return self._step(Kind.FOREACH, function)

    def count(self) -> Builder:
        self._steps.append(Step(Kind.COUNT))
        return self

    def _step(self, kind: Kind, function: Callable[[Any], Any]) -> Builder:
        if not callable(function):
            raise TypeError(f"{kind.value} wants a function, not {type(function).__name__}")
        self._steps.append(Step(kind, function))
        return self

    def run(
        self,
        arg: Any = None,
        convertToStr: bool = True,
        collect: bool = True,
        mode: str = "async",
        noScan: bool = False,
        readValue: bool = True,
    ) -> Any:
        """Runs at the end of the script; inside a function it returns an awaitable of (results, errors)."""
        if self._reader == "CommandReader":
            raise ValueError("a CommandReader has nothing to run over; register it with a trigger")
        _check_mode(mode)
        argument = self._default if arg is None else arg
        if self._reader == "PythonReader" and not callable(argument):
            raise TypeError(f"PythonReader wants a generator function, not {type(argument).__name__}")
        plan = RunPlan(
            self._reader, argument, tuple(self._steps), convertToStr, mode == "async_local", collect, noScan, readValue
        )
        return self._session.run(plan)

    def register(
        self,
        prefix: str = "*",
        convertToStr: bool = True,
        collect: bool = True,
        mode: str = "async",
        onRegistered: Callable[[], Any] | None = None,
        eventTypes: Sequence[str] | None = None,
        keyTypes: Sequence[str] | None = None,
        commands: Sequence[str] | None = None,
        readValue: bool = True,
        trigger: str | None = None,
        regex: str | None = None,
        noScan: bool = False,
    ) -> str:
        """Returns the registration's id; it takes effect when the whole script has succeeded."""
        del collect, noScan  # a registration's records come from this shard and never from a scan
        _check_mode(mode)
        if self._reader not in ("KeysReader", "CommandReader"):
            raise ValueError(f"{self._reader} can't be registered; KeysReader and CommandReader can")
        registration = Registration(
            id=self._session.next_id(),
            session=self._session.id,
            user=self._session.user,
            reader=self._reader,
            mode=mode,
            description=self._description,
            steps=tuple(self._steps),
            convert=convertToStr,
        )
        if self._reader == "CommandReader":
            if not trigger:
                raise ValueError("a CommandReader's register needs trigger='name', the word after RG.TRIGGER")
            registration.trigger = str(trigger)
        else:
            registration.prefix = str(prefix if regex is None else regex)
            registration.events = _names("eventTypes", eventTypes)
            registration.types = _key_types(keyTypes)
            registration.commands = _commands(commands, registration.events)
            registration.read_value = readValue
        self._session.register(registration, onRegistered)
        return registration.id


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise ValueError(
            f"mode {mode!r} is not supported: functions run beside Redis and never hold its thread; "
            "use 'async_local' (this shard) or 'async'"
        )


def _names(what: str, names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} wants a list of strings, not {names!r}")
    return tuple(name.lower() for name in names)


def _key_types(names: Sequence[str] | None) -> tuple[str, ...] | None:
    types = _names("keyTypes", names)
    for name in types or ():
        if name not in KEY_TYPES:
            raise ValueError(f"key type {name!r} does not exist; choose of {', '.join(KEY_TYPES)}")
    return types


def _commands(names: Sequence[str] | None, events: tuple[str, ...] | None) -> tuple[str, ...] | None:
    commands = _names("commands", names)
    if commands and (commands != ("get",) or events != ("keymiss",)):
        raise ValueError(
            f"commands={list(commands)} with eventTypes={list(events or ())} can't be hooked; "
            "commands=['get'] with eventTypes=['keymiss'] can"
        )
    return commands
