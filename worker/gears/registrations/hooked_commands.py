"""The commands that functions can hook."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from shardqa.worker.calls import Command

OURS = ("rg.", "ai.", "shardqa.")
REFUSED = {"restore", "restore-asking", "migrate", "select", "swapdb", "asking", "readonly", "readwrite"}
REFUSED |= {"wait", "waitaof", "reset", "quit", "hello", "auth", "command"}
"""Functions may not run them, so a hook could never call the next."""


@dataclass(frozen=True, slots=True)
class HookedCommand:
    name: str  # lower case
    writes: bool
    first: int  # place of its first key; 0: it has none there
    last: int  # negative: from the end
    awaits: bool = False  # what registered it follows keys with mode='sync', and gets their other events, too

    def wire(self) -> str:
        """Returns the line that the module reads (hooked_command.c)."""
        return f"{self.name} {'W' if self.awaits else 'w' if self.writes else 'r'} {self.first} {self.last}"


Execute = Callable[[Command], Any]

GET = HookedCommand("get", writes=False, first=1, last=1)


def hooked_command(execute: Execute, name: str, has_prefix: bool, verb: str) -> HookedCommand:
    """Returns the command to hook; `verb` is for the error. Any thread but the reading one. Raises ValueError."""
    name = name.lower()
    if name.startswith(OURS) or name in REFUSED:
        raise ValueError(f"command {name!r} can't be hooked: functions may not run it, so call_next could not")
    if name == GET.name:
        return GET  # the commonest needs no right to COMMAND
    (info,) = execute(("COMMAND", "INFO", name))
    if info is None:
        raise ValueError(f"Can not {verb} an unexisting command, bad reply: {name!r}")
    return _checked(info, name, has_prefix, verb)


def writing_commands(execute: Execute) -> tuple[HookedCommand, ...]:
    """Returns all commands that write to keys in fixed places: mode='sync' makes their clients wait."""
    commands = []
    for info in execute(("COMMAND",)):
        name = bytes(info[0]).decode().lower()
        if b"write" not in info[2] or name.startswith(OURS) or name in REFUSED:
            continue
        with suppress(ValueError):
            commands.append(replace(_checked(info, name, True, "hook"), awaits=True))
    return tuple(commands)


def _checked(info: list[Any], name: str, has_prefix: bool, verb: str) -> HookedCommand:
    """Returns the command of Redis' `info`. Raises ValueError for one that can't be hooked."""
    flags = {bytes(flag).decode() for flag in info[2]}
    if len(info) > 9 and info[9]:
        raise ValueError(f"command {name!r} can't be hooked: it is a family of commands")
    movable = "movablekeys" in flags or not info[3]
    if movable and (has_prefix or "blocking" in flags):
        raise ValueError(f"Can not {verb} a command with moveable keys by key prefix: {name!r}; leave the prefix out")
    if "noscript" in flags:
        raise ValueError(f"Can not {verb} a command which are not allowed inside a script: {name!r}")
    for flag, why in (
        ("blocking", "it blocks its client"),
        ("admin", "it is about the server itself"),
        ("pubsub", "it changes its connection"),
    ):
        if flag in flags and not (flag == "pubsub" and name == "publish"):
            raise ValueError(f"command {name!r} can't be hooked: {why}")
    return HookedCommand(name, "write" in flags, int(info[3]), int(info[4]))
