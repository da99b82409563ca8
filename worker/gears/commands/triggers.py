"""RG.TRIGGER and RG.TRIGGERONKEY: a registered function runs for a client, or for a function that executes them."""

from collections.abc import Sequence
from typing import Any

from redis import ResponseError

from shardqa.worker import resp
from shardqa.worker.calls import Rights, first, parse
from shardqa.worker.gears.commands.rg_commands import RgCommand
from shardqa.worker.gears.pipeline.readers import text
from shardqa.worker.gears.pipeline.run import Run, Unset
from shardqa.worker.gears.registrations.plain_run import run_within
from shardqa.worker.gears.registrations.registrations import Registrations
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.gears.sources.registration_runs import RegistrationRuns
from shardqa.worker.threads import Threads

NOT_FOUND = "ERR subcommand not found"


class Triggers:
    def __init__(self, registrations: Registrations, sessions: Sessions, runs: RegistrationRuns) -> None:
        self._registrations = registrations
        self._sessions = sessions
        self._runs = runs

    def table(self) -> dict[str, RgCommand]:
        return {
            "RG.TRIGGER": RgCommand(self._trigger, 1, None, binary=True),
            "RG.TRIGGERONKEY": RgCommand(self._trigger, 2, None, binary=True),
        }

    def run_within(self, threads: Threads, rights: Rights, command: Sequence[bytes]) -> Any:
        """Runs a trigger of mode 'sync'; returns the reply for a client. Any thread. Raises redis.ResponseError."""
        words = text([*command])
        registration = self._registrations.triggered_by(str(words[1])) if len(words) > 1 else None
        if registration is None:
            raise ResponseError(NOT_FOUND.removeprefix("ERR "))
        if registration.mode != "sync":
            raise ResponseError(
                f"blocking is not allowed: a function can execute {words[0]} of a trigger of mode='sync', and "
                f"{words[1]!r} is of mode={registration.mode!r}; GB().run() runs a pipeline from inside a function"
            )
        run, results = run_within(threads, rights, registration, words, words[1:])
        return first(parse(_reply_of(run, results), 1))

    async def _trigger(self, run: Run, arguments: list[bytes]) -> bytes:
        record = text(arguments)
        name = str(record[0])
        registration = self._registrations.triggered_by(name)
        if registration is None:  # a replay may still bring it
            registration = await self._sessions.replays.settled(lambda: self._registrations.triggered_by(name))
        if registration is None:
            return resp.error(NOT_FOUND)
        registration.enter(run)
        if registration.in_order:
            async with self._runs.turn(registration):
                results = await self._runs.run(run, registration, [record], in_queue=True)
        else:
            results = await self._runs.run(run, registration, [record])
        if results is None:
            return resp.error(run.errors[0])
        return _reply_of(run, results)


def _reply_of(run: Run, results: list[Any]) -> bytes:
    return resp.encode([*map(resp.lined, results)] if run.reply is Unset.UNSET else run.reply)
