"""Commands that functions hook: what a hook gets of one, and what `call_next` runs.

A hook gets the command in place of Redis. Of several hooks of one command the newest runs; its `call_next` runs the one
before it, and that of the oldest runs the command itself, with the rights of the client.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis import ResponseError

from shardqa.worker import resp
from shardqa.worker.calls import Argument
from shardqa.worker.gears.pipeline.inner_commands import InnerCommands
from shardqa.worker.gears.pipeline.readers import event_records, text
from shardqa.worker.gears.pipeline.run import Run, Unset
from shardqa.worker.gears.registrations.plain_run import run_within
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.gears.sources.events import Events
from shardqa.worker.gears.sources.registration_runs import RegistrationRuns
from shardqa.worker.io import Io
from shardqa.worker.runtime import KeyEvent

KEEP = b"-KEEP\r\n"  # tells the module to reply what Redis gave


@dataclass(frozen=True, slots=True)
class HookCall:
    """The work of `call_next` in a hook. Any thread but the reading one."""

    commands: InnerCommands
    name: str  # of the command, as it was sent
    rest: tuple[Registration, ...]  # the hooks behind this one

    def next(self, run: Run, arguments: Sequence[Argument]) -> Any:
        """Runs the next hook or the command. Raises redis.ResponseError."""
        command = (self.name, *arguments)
        if not self.rest:
            return text(self.commands.execute(run.caller, command))
        return self._next_hook(run, list(command))

    def _next_hook(self, run: Run, command: list[Any]) -> Any:
        registration, *rest = self.rest
        hook = HookCall(self.commands, self.name, tuple(rest))
        return text(reply_of(*run_within(run.threads, run.caller, registration, command, command, hook)))


def reply_of(run: Run, results: list[Any]) -> Any:
    """Returns the reply of a hooked command: the only result. Raises ResponseError for several."""
    if run.reply is not Unset.UNSET:
        return run.reply
    if len(results) != 1:
        raise ResponseError(f"ERR Command hook must return exactly one result, not {len(results)}")
    return results[0]


class Hooks:
    """The hooked commands under way. Loop's thread."""

    def __init__(
        self, io: Io, commands: InnerCommands, sessions: Sessions, runs: RegistrationRuns, events: Events
    ) -> None:
        self._calls = io.calls
        self._threads = io.threads
        self._events = events
        self._commands = commands
        self._sessions = sessions
        self._runs = runs

    async def answer(self, run: Run, words: list[bytes]) -> bytes:
        """HOOK: n, registration id…, n, command, argument…; then registration id, event, key, type of each event."""
        count = int(words[0])
        ids, rest = [word.decode() for word in words[1 : count + 1]], words[count + 1 :]
        length = int(rest[0])
        command, events = rest[1 : length + 1], rest[length + 1 :]
        run.command = text(command)
        if ids:
            return await self._hooked(run, ids, command)
        return await self._caused(run, [events[at : at + 4] for at in range(0, len(events), 4)])

    async def _find(self, id: str) -> Registration | None:
        return await self._sessions.replays.settled(lambda: self._sessions.registration(id))

    async def _hooked(self, run: Run, ids: list[str], command: list[bytes]) -> bytes:
        chain = [registration for id in ids if (registration := await self._find(id)) is not None]
        if not chain:  # unregistered while it was on its way
            return await self._calls.raw(run.caller, command)
        run.hook = HookCall(self._commands, text(command[0]), tuple(chain[1:]))
        chain[0].enter(run)
        results = await self._runs.run(run, chain[0], [list(run.command)])
        if results is None:
            return resp.error(run.errors[0])
        return resp.encode(reply_of(run, results))

    async def _caused(self, run: Run, events: list[list[bytes]]) -> bytes:
        for id, event, key, type in events:
            registration = await self._find(id.decode())
            if registration is None:
                continue
            key_event = KeyEvent(event.decode(), key.decode("utf-8", "surrogateescape"), type.decode())
            if registration.commands is None:  # its writer waits, and has no other part in it
                await asyncio.shield(self._threads.task(self._events.run(registration, key_event)))
                continue
            registration.enter(run)
            (record,) = await event_records(self._calls, run.rights, [key_event], registration.read_value)
            if await self._runs.run(run, registration, [record]) is None:
                return resp.error(run.errors[0])
        return KEEP if run.reply is Unset.UNSET else resp.encode(run.reply)
